//! Speed-ups of stored replies: over all parts of a continued reply, at each round of a replay,
//! over all replies of a pair. The engine defines how a speed-up is measured (`trace/speedup.rs`).

use foretoken_engine::trace::{Round, Speedup};
use foretoken_store as store;

use crate::app::App;
use crate::error::Result;
use crate::ipc::{Message, PairSpeedup, Role};

/// Most replies of older versions that are measured before the pairs are listed.
const MAX_OLD_REPLIES: u32 = 200;

impl App {
    /// Fills in the speed-ups of a branch's replies, oldest first: each part of a continued reply
    /// gets the one of all parts so far.
    pub(crate) fn with_speedups(&self, mut messages: Vec<Message>) -> Vec<Message> {
        let mut before: Option<(i64, Option<Speedup>)> = None;
        for message in &mut messages {
            let reply = message.role == Role::Assistant;
            let earlier = before.filter(|(id, _)| reply && message.parent == Some(*id));
            let own = match &message.summary {
                Some(summary) => summary.speedup,
                // The application ended before the reply did.
                None if reply => self.trace(message.id).ok().and_then(|rounds| Speedup::of(&rounds)),
                None => None,
            };
            message.speedup =
                Speedup::of_parts(earlier.and_then(|(_, speedup)| speedup).into_iter().chain(own));
            before = reply.then_some((message.id, message.speedup));
        }
        messages
    }

    /// Returns the speed-up of a stored reply including the parts before it.
    pub(crate) fn speedup_until(&self, reply: i64) -> Result<Option<Speedup>> {
        let rows = self.store().messages_up_to(reply)?;
        let messages = rows.into_iter().map(Message::try_from).collect::<Result<_>>()?;
        Ok(self.with_speedups(messages).last().and_then(|message| message.speedup))
    }

    /// Returns the speed-up of the parts before a stored reply.
    pub(crate) fn speedup_before(&self, reply: i64) -> Result<Option<Speedup>> {
        let parent = self.store().message(reply)?.parent;
        Ok(parent.map(|parent| self.speedup_until(parent)).transpose()?.flatten())
    }

    /// Returns the speed-up of a reply after each of its rounds, including the parts before it.
    pub fn speedups(&self, reply: i64) -> Result<Vec<Option<Speedup>>> {
        let after_each = Speedup::after_each(&self.trace(reply)?);
        let earlier = self.speedup_before(reply)?;
        let with_earlier = |own: Option<Speedup>| Speedup::of_parts(earlier.into_iter().chain(own));
        Ok(after_each.into_iter().map(with_earlier).collect())
    }

    /// Returns the speed-up of a trace that is not stored, after each of its rounds.
    pub fn trace_speedups(rounds: &[Round]) -> Vec<Option<Speedup>> {
        Speedup::after_each(rounds)
    }

    /// Returns the speed-up over all replies of each pair of models.
    pub fn pair_speedups(&self) -> Result<Vec<PairSpeedup>> {
        self.measure_old_replies()?;
        let pairs = self.store().pair_times()?;
        let speedup = |pair: store::PairTimes| {
            let speedup = Speedup::new(pair.plain_ms, pair.elapsed_ms, pair.replies)?;
            Some(PairSpeedup { target: pair.target, draft: pair.draft, speedup })
        };
        Ok(pairs.into_iter().filter_map(speedup).collect())
    }

    /// Returns the row with a speed-up measured by its trace if an older version stored it without
    /// one.
    pub(crate) fn measured(&self, row: store::Message) -> store::Message {
        let is_old = row.summary.as_ref().is_some_and(|summary| !summary.contains("\"speedup\""));
        let rounds = if is_old { self.trace(row.id).unwrap_or_default() } else { Vec::new() };
        if rounds.is_empty() {
            return row;
        }
        match self.store_speedup(row.id, &rounds) {
            Ok(()) => self.store().message(row.id).unwrap_or(row),
            Err(error) => {
                tracing::warn!("the speed-up of an older reply could not be stored: {}", error.message);
                row
            }
        }
    }

    fn store_speedup(&self, reply: i64, rounds: &[Round]) -> Result<()> {
        let speedup = serde_json::to_string(&Speedup::of(rounds))?;
        Ok(self.store().set_speedup(reply, &speedup)?)
    }

    fn measure_old_replies(&self) -> Result<()> {
        let old = self.store().unmeasured_replies(MAX_OLD_REPLIES)?;
        old.into_iter().try_for_each(|reply| self.store_speedup(reply, &self.trace(reply)?))
    }
}
