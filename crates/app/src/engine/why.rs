//! State of drafting with its reason, before a reply and while it is written.

use std::time::{Duration, Instant};

use foretoken_engine::speculation::DraftLength;
use foretoken_engine::trace::{Decision, LengthReason, Round};

use crate::ipc::{DraftRemark, OffReason, Settings, Speculating, Why};
use crate::observable::Observable;

/// Updates the state of drafting in the status while a reply is written.
pub struct Reporter {
    /// Label of the drafter.
    label: String,
    /// Deviations from the settings, taken from the state before the reply.
    remarks: Vec<DraftRemark>,
    /// Last decision of the governor.
    decision: Option<Decision>,
    pub shown: Option<Why>,
    /// Time of the next update.
    due: Instant,
}

impl Reporter {
    /// Least time between updates, so that the line can be read.
    const MIN_INTERVAL: Duration = Duration::from_millis(300);

    /// Creates a reporter; `label` is the drafter's name and `before` the state before the reply.
    pub fn new(label: &str, before: &Why) -> Self {
        // A reason for drafting nothing no longer holds once something is drafted.
        let mut remarks = if before.state == Speculating::Off { Vec::new() } else { before.remarks.clone() };
        // A drafter that failed in an earlier reply drafts again.
        remarks.retain(|remark| !matches!(remark, DraftRemark::Failed { .. }));
        Self { label: label.to_owned(), remarks, decision: None, shown: None, due: Instant::now() }
    }

    /// Returns the state to show after the reply, with the reason if a drafter failed in it.
    pub fn end(self, failure: Option<&str>, now: &Why) -> Option<Why> {
        let Some(failure) = failure else { return self.shown };
        let mut why = self.shown.unwrap_or_else(|| now.clone());
        why.remark(DraftRemark::Failed { detail: failure.to_owned() });
        Some(why)
    }

    pub fn observe(&mut self, round: &Round, status: &Observable) {
        if round.decision.is_some() {
            self.decision.clone_from(&round.decision);
        }
        let Some(mut why) = why(round, self.decision.as_ref(), &self.label) else { return };
        why.remarks.clone_from(&self.remarks);
        let now = Instant::now();
        if self.shown.as_ref() != Some(&why) && now >= self.due {
            status.update(|status| status.why = why.clone());
            self.due = now + Self::MIN_INTERVAL;
        }
        self.shown = Some(why);
    }
}

/// Returns the state after a round; `None` for a round that says nothing about later ones.
fn why(round: &Round, decision: Option<&Decision>, label: &str) -> Option<Why> {
    match round.reason {
        LengthReason::Off
        | LengthReason::FirstToken
        | LengthReason::NoMatch
        | LengthReason::NoRoom
        | LengthReason::EndOfText => None,
        // A trial of plain decoding.
        LengthReason::Probe if round.draft_length == 0 => None,
        // The draft length has no effect on these drafters.
        LengthReason::DrafterFailed | LengthReason::CannotPay => Some(paused(round.reason, None)),
        LengthReason::WouldNotPay | LengthReason::Probe => {
            Some(paused(LengthReason::WouldNotPay, decision.and_then(best_expected)))
        }
        // A draft of fixed length, or one that ended early, without space left.
        _ if round.draft_length == 0 => None,
        _ => Some(on(label, Some(round.draft_length))),
    }
}

fn on(label: &str, length: Option<u32>) -> Why {
    Why { drafter: Some(label.to_owned()), length, ..Why::of(Speculating::On) }
}

fn paused(reason: LengthReason, expected: Option<f32>) -> Why {
    Why { reason: Some(reason), expected, ..Why::of(Speculating::Paused) }
}

/// Returns the expected speed at a draft length, relative to plain decoding.
fn expected(decision: &Decision, length: usize) -> Option<f32> {
    Some(decision.tokens_per_second.get(length)? / decision.tokens_per_second.first()?)
}

/// Returns the expected speed of the best draft if even that is slower than plain decoding; rounded
/// to the two digits shown, so the line changes only when its text does.
fn best_expected(decision: &Decision) -> Option<f32> {
    let all = (1..decision.tokens_per_second.len()).filter_map(|length| expected(decision, length));
    let best = all.max_by(f32::total_cmp)?;
    (best < 1.0).then(|| (best * 100.0).round() / 100.0)
}

pub fn ready_to_speculate(label: &str, settings: &Settings) -> Why {
    let length = match settings.speculation.length {
        DraftLength::Auto => None,
        DraftLength::Fixed(length) => Some(length),
        DraftLength::Off => return Why::off(OffReason::Settings),
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
            expected: None,
            row_price: None,
            staged: false,
            decision: None,
            experts: None,
            times: Times::default(),
            at_ms: 0.0,
            logprobs: Vec::new(),
        }
    }

    /// A decision that expects 100 tokens/s from plain decoding and `tokens_per_second` from drafts
    /// of one token.
    fn expecting(tokens_per_second: f32) -> Decision {
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
        let decision = expecting(tokens_per_second);
        why(&round(reason, draft_length), Some(&decision), "Draft")
    }

    #[test]
    fn an_expectation_is_not_shown_as_measured_but_says_what_drafting_would_cost() {
        let why = line(LengthReason::Governed, 1, 213.0).unwrap();
        assert_eq!(why, on("Draft", Some(1)));
        let why = line(LengthReason::WouldNotPay, 0, 92.4).unwrap();
        assert_eq!(why, paused(LengthReason::WouldNotPay, Some(0.92)));
        let why = line(LengthReason::Probe, 1, 92.4).unwrap();
        assert_eq!(why, paused(LengthReason::WouldNotPay, Some(0.92)), "a draft on trial");
        let why = line(LengthReason::CannotPay, 0, 50.0).unwrap();
        assert_eq!(why, paused(LengthReason::CannotPay, None));
    }

    fn unusable(detail: &str) -> DraftRemark {
        DraftRemark::Unusable { detail: detail.to_owned() }
    }

    fn failed(detail: &str) -> DraftRemark {
        DraftRemark::Failed { detail: detail.to_owned() }
    }

    #[test]
    fn a_remark_replaces_the_earlier_one_of_its_kind() {
        let mut why = on("n-gram", None);
        for remark in [failed("it panicked."), unusable("it is torn."), failed("it is slow.")] {
            why.remark(remark);
        }
        assert_eq!(why.remarks, [unusable("it is torn."), failed("it is slow.")]);
    }

    #[test]
    fn a_deviation_from_the_settings_stays_after_the_first_round_but_a_failure_does_not() {
        let status = Observable::starting();
        let mut before = on("n-gram", None);
        before.remark(unusable("it is torn."));
        let mut failing = before.clone();
        failing.remark(failed("it panicked."));
        let mut reporter = Reporter::new("n-gram", &failing);
        reporter.observe(&round(LengthReason::Fixed, 4), &status);
        let shown = status.get().why;
        assert_eq!(shown, Why { length: Some(4), ..before });
        let mut next = Reporter::new("n-gram", &shown);
        next.observe(&round(LengthReason::CannotPay, 0), &status);
        let paused = Why { remarks: shown.remarks, ..paused(LengthReason::CannotPay, None) };
        assert_eq!(next.shown, Some(paused));
    }

    #[test]
    fn a_reason_for_not_drafting_disappears_once_something_is_drafted() {
        let status = Observable::starting();
        let mut reporter = Reporter::new("n-gram", &Why::off(OffReason::NoDraft));
        reporter.observe(&round(LengthReason::Fixed, 4), &status);
        assert_eq!(status.get().why, on("n-gram", Some(4)));
    }

    #[test]
    fn a_round_without_a_draft_never_counts_as_speculating() {
        for reason in [LengthReason::Fixed, LengthReason::Unlikely, LengthReason::NoMatch, LengthReason::Off]
        {
            assert_eq!(line(reason, 0, 200.0), None, "{reason:?}");
        }
    }
}
