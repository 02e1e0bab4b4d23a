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
    /// What differs from the settings, as it stood in the line before the reply.
    remark: String,
    /// The last one heard of.
    decision: Option<Decision>,
    pub shown: Option<Why>,
    /// When the line may change again.
    due: Instant,
}

impl Reporter {
    /// A line that changed more often could not be read.
    const EVERY: Duration = Duration::from_millis(300);

    /// For a reply drafted by who is called `label`, where the line was `before`.
    pub fn new(label: &str, before: &Why) -> Self {
        // Where nothing was to be drafted the text says why, which is no longer so once something is.
        let remark = if before.state == Speculating::Off { String::new() } else { before.text.clone() };
        Self { label: label.to_owned(), remark, decision: None, shown: None, due: Instant::now() }
    }

    pub fn hear(&mut self, round: &Round, board: &Board) {
        if round.decision.is_some() {
            self.decision.clone_from(&round.decision);
        }
        let Some(mut why) = why(round, self.decision.as_ref(), &self.label) else { return };
        why.text.clone_from(&self.remark);
        let now = Instant::now();
        if self.shown.as_ref() != Some(&why) && now >= self.due {
            board.update(|status| status.why = why.clone());
            self.due = now + Self::EVERY;
        }
        self.shown = Some(why);
    }
}

/// Whether drafts are made, by what was done in a round; `None` for one that says nothing about the others.
fn why(round: &Round, decision: Option<&Decision>, label: &str) -> Option<Why> {
    match round.reason {
        LengthReason::Off
        | LengthReason::FirstToken
        | LengthReason::NoMatch
        | LengthReason::NoRoom
        | LengthReason::EndOfText => None,
        // Plain decoding on trial.
        LengthReason::Probe if round.draft_length == 0 => None,
        // No length changes anything about these.
        LengthReason::DrafterFailed | LengthReason::CannotPay => Some(paused(round.reason, None)),
        LengthReason::WouldNotPay | LengthReason::Probe => {
            Some(paused(LengthReason::WouldNotPay, decision.and_then(best_expected)))
        }
        // A draft of a fixed length, or one that ended at once, that had no room.
        _ if round.draft_length == 0 => None,
        _ => Some(on(label, Some(round.draft_length))),
    }
}

fn on(label: &str, length: Option<u32>) -> Why {
    let (state, drafter) = (Speculating::On, Some(label.to_owned()));
    Why { state, drafter, length, reason: None, expected: None, text: String::new() }
}

fn paused(reason: LengthReason, expected: Option<f32>) -> Why {
    let (state, reason) = (Speculating::Paused, Some(reason));
    Why { state, drafter: None, length: None, reason, expected, text: String::new() }
}

/// Expected tokens per second at a draft length against plain decoding.
fn expected(decision: &Decision, length: usize) -> Option<f32> {
    Some(decision.tokens_per_second.get(length)? / decision.tokens_per_second.first()?)
}

/// Expected speed of the best draft, where even that one is slower than plain decoding; to two digits, as it is
/// shown, so that the line changes no more often than it reads differently.
fn best_expected(decision: &Decision) -> Option<f32> {
    let all = (1..decision.tokens_per_second.len()).filter_map(|length| expected(decision, length));
    let best = all.max_by(f32::total_cmp)?;
    (best < 1.0).then(|| (best * 100.0).round() / 100.0)
}

pub fn off(reason: &str) -> Why {
    Why::off(reason)
}

pub fn ready_to_speculate(label: &str, settings: &Settings) -> Why {
    let length = match settings.speculation.length {
        DraftLength::Auto => None,
        DraftLength::Fixed(length) => Some(length),
        DraftLength::Off => return off("it is turned off in the settings"),
    };
    on(label, length)
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
            experts: None,
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

    fn line(reason: LengthReason, draft_length: u32, tokens_per_second: f32) -> Option<Why> {
        let decision = promising(tokens_per_second);
        why(&round(reason, draft_length), Some(&decision), "Draft")
    }

    #[test]
    fn the_line_never_shows_an_expectation_as_if_it_were_measured_but_says_what_drafting_would_cost() {
        let why = line(LengthReason::Governed, 1, 213.0).unwrap();
        assert_eq!(why, on("Draft", Some(1)));
        let why = line(LengthReason::WouldNotPay, 0, 92.4).unwrap();
        assert_eq!(why, paused(LengthReason::WouldNotPay, Some(0.92)));
        let why = line(LengthReason::Probe, 1, 92.4).unwrap();
        assert_eq!(why, paused(LengthReason::WouldNotPay, Some(0.92)), "a draft on trial");
        let why = line(LengthReason::CannotPay, 0, 50.0).unwrap();
        assert_eq!(why, paused(LengthReason::CannotPay, None));
    }

    #[test]
    fn what_differs_from_the_settings_is_added_sentence_by_sentence() {
        let mut why = off("no draft is chosen.");
        assert_eq!(why.text, "no draft is chosen");
        why.add("The GPU has no room.");
        assert_eq!(why.text, "no draft is chosen. The GPU has no room");
        let mut why = on("n-gram", None);
        why.add("The chosen draft cannot be used: it is torn");
        assert_eq!(why.text, "The chosen draft cannot be used: it is torn");
    }

    #[test]
    fn what_differs_from_the_settings_is_still_said_once_a_round_was_heard() {
        let board = Board::starting();
        let mut before = on("n-gram", None);
        before.add("The chosen draft cannot be used: it is torn.");
        let mut reporter = Reporter::new("n-gram", &before);
        reporter.hear(&round(LengthReason::Fixed, 4), &board);
        let shown = board.status().why;
        assert_eq!(shown, Why { length: Some(4), ..before });
        let mut next = Reporter::new("n-gram", &shown);
        next.hear(&round(LengthReason::CannotPay, 0), &board);
        let paused = Why { text: shown.text, ..paused(LengthReason::CannotPay, None) };
        assert_eq!(next.shown, Some(paused));
    }

    #[test]
    fn why_nothing_was_to_be_drafted_is_not_said_of_what_is() {
        let board = Board::starting();
        let mut reporter = Reporter::new("n-gram", &off("no draft is chosen"));
        reporter.hear(&round(LengthReason::Fixed, 4), &board);
        assert_eq!(board.status().why, on("n-gram", Some(4)));
    }

    #[test]
    fn a_round_without_a_draft_never_speculates() {
        for reason in [LengthReason::Fixed, LengthReason::Unlikely, LengthReason::NoMatch, LengthReason::Off]
        {
            assert_eq!(line(reason, 0, 200.0), None, "{reason:?}");
        }
    }
}
