//! The why line: whether replies are drafted, and the reason, before a reply and while it is written.

use std::time::{Duration, Instant};

use foretoken_engine::speculation::DraftLength;
use foretoken_engine::trace::{Decision, LengthReason, Round};

use crate::board::Board;
use crate::ipc::{Settings, Speculating, Why};

/// Puts the why line on the board while a reply is written.
pub struct Reporter {
    /// Who drafts.
    label: String,
    /// The last one heard of.
    decision: Option<Decision>,
    pub said: Option<Why>,
    /// When the line may change again.
    due: Instant,
}

impl Reporter {
    /// A line that changed more often could not be read.
    const EVERY: Duration = Duration::from_millis(300);

    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), decision: None, said: None, due: Instant::now() }
    }

    pub fn hear(&mut self, round: &Round, board: &Board) {
        if round.decision.is_some() {
            self.decision.clone_from(&round.decision);
        }
        let Some(why) = why(round, self.decision.as_ref(), &self.label) else { return };
        let now = Instant::now();
        if self.said.as_ref() != Some(&why) && now >= self.due {
            board.update(|status| status.why = why.clone());
            self.due = now + Self::EVERY;
        }
        self.said = Some(why);
    }
}

/// Whether drafts are made, by what was done in a round; `None` for one that says nothing about the others.
fn why(round: &Round, decision: Option<&Decision>, label: &str) -> Option<Why> {
    let paused = |reason: String| Some(Why { state: Speculating::Paused, text: format!("paused: {reason}") });
    match round.reason {
        LengthReason::Off
        | LengthReason::FirstToken
        | LengthReason::NoMatch
        | LengthReason::NoRoom
        | LengthReason::EndOfText => None,
        // Plain decoding on trial.
        LengthReason::Probe if round.draft_length == 0 => None,
        LengthReason::DrafterFailed => {
            paused("the draft failed in this reply; the next one tries again".to_owned())
        }
        LengthReason::CannotPay => {
            paused("drafting would cost time even if every token were accepted".to_owned())
        }
        LengthReason::WouldNotPay | LengthReason::Probe => paused(match decision.and_then(loss) {
            Some(loss) if loss < 0.5 => "drafting promises too little".to_owned(),
            Some(loss) => format!("drafting would cost {loss:.0} %"),
            None => "drafting would cost time".to_owned(),
        }),
        // A draft of a fixed length, or one that ended at once, that had no room.
        _ if round.draft_length == 0 => None,
        _ => {
            let length = round.draft_length;
            let gain = decision.and_then(|decision| gain(decision, length as usize));
            let gain = gain.map_or(String::new(), |gain| format!(", about {gain:.1}x"));
            let text = format!("speculating, K = {length}{gain}, drafted by {label}");
            Some(Why { state: Speculating::On, text })
        }
    }
}

/// Tokens per second at a draft length against plain decoding.
fn gain(decision: &Decision, length: usize) -> Option<f32> {
    Some(decision.tokens_per_second.get(length)? / decision.tokens_per_second.first()?)
}

/// Percent of the speed that even the best draft would cost.
fn loss(decision: &Decision) -> Option<f32> {
    let gains = (1..decision.tokens_per_second.len()).filter_map(|length| gain(decision, length));
    let best = gains.max_by(f32::total_cmp)?;
    (best < 1.0).then_some((1.0 - best) * 100.0)
}

pub fn off(reason: &str) -> Why {
    Why { state: Speculating::Off, text: format!("off: {reason}") }
}

pub fn ready_to_speculate(label: &str, settings: &Settings) -> Why {
    let length = match settings.speculation.length {
        DraftLength::Auto => "K chosen by speed".to_owned(),
        DraftLength::Fixed(length) => format!("K = {length}"),
    };
    Why { state: Speculating::On, text: format!("speculating, {length}, drafted by {label}") }
}

#[cfg(test)]
mod tests {
    use foretoken_engine::trace::Times;

    use super::*;

    fn round(reason: LengthReason, draft_length: u32) -> Round {
        Round {
            index: 0,
            position: 0,
            drafted: Vec::new(),
            extra: None,
            draft_length,
            reason,
            threshold: None,
            staged: false,
            decision: None,
            times: Times::default(),
            at_ms: 0.0,
        }
    }

    /// That plain decoding makes 100 tokens a second, and drafts of one token so many.
    fn promising(tokens_per_second: f32) -> Decision {
        Decision {
            before: None,
            chosen: 0,
            drafting_ms: Vec::new(),
            verify_ms: Vec::new(),
            acceptance: Vec::new(),
            tokens_per_second: vec![100.0, tokens_per_second],
        }
    }

    fn said(reason: LengthReason, draft_length: u32, tokens_per_second: f32) -> Option<String> {
        let decision = promising(tokens_per_second);
        why(&round(reason, draft_length), Some(&decision), "Draft").map(|why| why.text)
    }

    #[test]
    fn the_line_says_what_drafting_brings_or_would_cost() {
        let line = said(LengthReason::Governed, 1, 210.0).unwrap();
        assert_eq!(line, "speculating, K = 1, about 2.1x, drafted by Draft");
        let line = said(LengthReason::WouldNotPay, 0, 92.0).unwrap();
        assert_eq!(line, "paused: drafting would cost 8 %");
        let line = said(LengthReason::WouldNotPay, 0, 99.9).unwrap();
        assert_eq!(line, "paused: drafting promises too little");
    }

    #[test]
    fn a_round_without_a_draft_never_speculates() {
        for reason in [LengthReason::Fixed, LengthReason::Unlikely, LengthReason::NoMatch, LengthReason::Off]
        {
            assert_eq!(said(reason, 0, 200.0), None, "{reason:?}");
        }
    }
}
