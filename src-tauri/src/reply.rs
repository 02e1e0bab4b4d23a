//! Asking and answering: a message is stored once its reply can begin, the reply while it is written. Rounds
//! go to the page straight from the engine thread; this thread keeps the record.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use foretoken_engine::decoder::{self, Progress};
use foretoken_engine::model::{ChatMessage, Role};
use foretoken_engine::trace::Round;
use foretoken_store::{self as store, Ending};

use crate::app::App;
use crate::engine::Listener;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, Reply, ReplyEvent};

/// A killed program loses at most this much of a reply.
const RECORD_EVERY: Duration = Duration::from_millis(500);

/// Where the events of a reply go.
pub type Events = Arc<dyn Fn(ReplyEvent) + Send + Sync>;

/// What is answered.
enum Question {
    /// A new message in a conversation, or in a new one.
    Sent { conversation: Option<i64>, text: String },
    /// The message before this reply, which makes room for another.
    Again { reply: i64 },
}

impl App {
    /// Stores `text` and replies to it. Nothing is stored when the prompt is refused.
    ///
    /// # Errors
    /// `Busy`, `NoTarget`, `EmptyPrompt`, `PromptTooLong`, `NotFound` before the reply begins. A
    /// reply that fails later is returned with its problem.
    pub fn send(self: &Arc<Self>, conversation: Option<i64>, text: &str, events: Events) -> Result<Reply> {
        let _turn = self.take_turn()?;
        let text = text.trim();
        if text.is_empty() {
            return Err(foretoken_engine::Error::EmptyPrompt.into());
        }
        let mut messages = match conversation {
            Some(id) => spoken(self.store().messages(id)?),
            None => Vec::new(),
        };
        say(&mut messages, Role::User, text);
        self.answer(messages, Question::Sent { conversation, text: text.to_owned() }, events)
    }

    /// Writes the last reply of its conversation anew.
    ///
    /// # Errors
    /// As [`Self::send`], and `NotFound` for what is not the last reply of a conversation.
    pub fn regenerate(self: &Arc<Self>, reply: i64, events: Events) -> Result<Reply> {
        let _turn = self.take_turn()?;
        let message = self.store().message(reply)?;
        let mut messages = self.store().messages(message.conversation)?;
        let last = messages.pop().filter(|last| last.id == reply && last.role == store::Role::Assistant);
        if last.is_none() {
            let message = "Only the last reply of a conversation can be written anew.";
            return Err(CommandError::new(ErrorCode::NotFound, message));
        }
        self.answer(spoken(messages), Question::Again { reply }, events)
    }

    /// One reply at a time: what is read from now on until the turn is dropped does not change.
    pub(crate) fn take_turn(&self) -> Result<MutexGuard<'_, ()>> {
        match self.replying.try_lock() {
            Ok(turn) => Ok(turn),
            Err(TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message =
                    "A reply, a check or an arena is under way: wait for its end, or stop it first.";
                Err(CommandError::new(ErrorCode::Busy, message))
            }
        }
    }

    fn answer(
        self: &Arc<Self>,
        messages: Vec<ChatMessage>,
        question: Question,
        events: Events,
    ) -> Result<Reply> {
        let (record, records) = mpsc::channel();
        let clerk = Clerk { app: Arc::clone(self), question, events, record };
        let outcome = self.engine.reply(messages, Box::new(clerk));
        let written = self.record(&records);
        let outcome = outcome.recv().unwrap_or_else(|_| Err(engine_gone()));
        match written {
            Some(written) => self.close(written, outcome),
            // Refused before anything was stored.
            None => Err(outcome.err().unwrap_or_else(engine_gone)),
        }
    }

    /// Stores rounds as they come, in batches, until the engine thread lets go of the other end.
    fn record(&self, records: &Receiver<Record>) -> Option<Written> {
        let mut written = None;
        let mut due = Instant::now() + RECORD_EVERY;
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            match records.recv_timeout(wait) {
                Ok(Record::Begun(reply)) => written = Some(Written::new(reply, self.settings().keep_traces)),
                Ok(Record::Round(round)) => {
                    if let Some(written) = &mut written {
                        written.add(&round);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    due = Instant::now() + RECORD_EVERY;
                    written.iter_mut().for_each(|written| self.append(written));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    written.iter_mut().for_each(|written| self.append(written));
                    return written;
                }
            }
        }
    }

    /// A store that fails for a while, a full disk say, costs the reply nothing: what could not be
    /// stored is tried again with the next batch.
    fn append(&self, written: &mut Written) {
        let rounds: Vec<(u32, &str)> =
            written.pending.iter().map(|(index, json)| (*index, json.as_str())).collect();
        if !written.grown {
            return;
        }
        match self.store().append_rounds(written.reply, &written.text, &rounds) {
            Ok(()) => {
                written.pending.clear();
                written.grown = false;
            }
            Err(error) => tracing::error!(%error, "rounds could not be stored; trying again"),
        }
    }

    fn close(&self, written: Written, outcome: Result<decoder::Reply>) -> Result<Reply> {
        let (finish, summary, problem) = match outcome {
            Ok(reply) => {
                let finish = serde_json::to_value(reply.summary.finish)?;
                (finish.as_str().map(str::to_owned), Some(serde_json::to_string(&reply.summary)?), None)
            }
            Err(error) => (None, None, Some(error.message)),
        };
        let ending = Ending {
            text: &written.text,
            finish: finish.as_deref(),
            summary: summary.as_deref(),
            problem: problem.as_deref(),
        };
        let mut store = self.store();
        let reply = store.finish_reply(written.reply, ending)?;
        let conversation = store.conversation(reply.conversation)?.into();
        Ok(Reply { conversation, reply: reply.try_into()? })
    }
}

pub(crate) fn engine_gone() -> CommandError {
    let message =
        "The engine stopped working: the log has the reason. Start Foretoken again; nothing stored is lost.";
    CommandError::new(ErrorCode::Internal, message)
}

/// What was said so far. Replies that have no text say nothing.
pub(crate) fn spoken(messages: Vec<store::Message>) -> Vec<ChatMessage> {
    let mut said = Vec::new();
    for message in messages.iter().filter(|message| !message.text.is_empty()) {
        let role = match message.role {
            store::Role::User => Role::User,
            store::Role::Assistant => Role::Assistant,
        };
        say(&mut said, role, &message.text);
    }
    said
}

/// Adds a turn. Two in a row by the same speaker, as after a reply that was stopped at once, become
/// one: some templates insist on taking turns.
fn say(said: &mut Vec<ChatMessage>, role: Role, text: &str) {
    match said.last_mut() {
        Some(last) if last.role == role => {
            last.content.push_str("\n\n");
            last.content.push_str(text);
        }
        _ => said.push(ChatMessage { role, content: text.to_owned() }),
    }
}

/// Sent from the engine thread to the one that keeps the record.
enum Record {
    Begun(i64),
    Round(Box<Round>),
}

/// A reply so far, and the rounds that are not stored yet.
struct Written {
    reply: i64,
    /// Whether its rounds are kept.
    traced: bool,
    text: String,
    /// Whether there is more than what is stored.
    grown: bool,
    pending: Vec<(u32, String)>,
}

impl Written {
    fn new(reply: i64, traced: bool) -> Self {
        Self { reply, traced, text: String::new(), grown: false, pending: Vec::new() }
    }

    fn add(&mut self, round: &Round) {
        self.text.extend(round.emitted().map(|(_, text)| text));
        self.grown = true;
        if !self.traced {
            return;
        }
        match serde_json::to_string(round) {
            Ok(json) => self.pending.push((round.index, json)),
            Err(error) => tracing::error!(%error, "a round cannot be written as JSON"),
        }
    }
}

/// Listens on the engine thread: stores the question, tells the page, hands rounds to the record.
struct Clerk {
    app: Arc<App>,
    question: Question,
    events: Events,
    record: Sender<Record>,
}

impl Clerk {
    fn begin(&mut self, target: &str, draft: Option<&str>) -> Result<ReplyEvent> {
        let mut store = self.app.store();
        let (user, reply) = match &self.question {
            Question::Again { reply } => (None, store.replace_reply(*reply, target, draft)?),
            Question::Sent { conversation, text } => {
                let (user, reply) = store.ask(*conversation, text, target, draft)?;
                (Some(user), reply)
            }
        };
        let conversation = store.conversation(reply.conversation)?.into();
        let user = user.map(TryInto::try_into).transpose()?;
        Ok(ReplyEvent::Started { conversation, user, reply: reply.try_into()? })
    }
}

impl Listener for Clerk {
    fn admitted(&mut self, target: &str, draft: Option<&str>) -> Result<()> {
        let started = self.begin(target, draft)?;
        if let ReplyEvent::Started { reply, .. } = &started {
            // The receiver waits until this end is dropped.
            let _ = self.record.send(Record::Begun(reply.id));
        }
        (self.events)(started);
        Ok(())
    }

    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Prompt { done, total } => {
                (self.events)(ReplyEvent::Prompt { done: done as u32, total: total as u32 });
            }
            Progress::Round(round) => {
                (self.events)(ReplyEvent::Round { round: round.clone() });
                let _ = self.record.send(Record::Round(Box::new(round.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: store::Role, text: &str) -> store::Message {
        store::Message {
            id: 1,
            conversation: 1,
            role,
            text: text.to_owned(),
            created_at: 0,
            finish: None,
            summary: None,
            target: None,
            draft: None,
            problem: None,
        }
    }

    #[test]
    fn speakers_take_turns_also_after_a_reply_without_text() {
        use store::Role::{Assistant, User};
        let stored = [(User, "One?"), (Assistant, ""), (User, "Two?"), (Assistant, "Two."), (User, "Three?")];
        let said = spoken(stored.into_iter().map(|(role, text)| message(role, text)).collect());
        let said: Vec<_> = said.iter().map(|turn| (turn.role, turn.content.as_str())).collect();
        assert_eq!(said, [(Role::User, "One?\n\nTwo?"), (Role::Assistant, "Two."), (Role::User, "Three?")]);
    }
}
