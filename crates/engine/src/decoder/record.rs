//! Trace record of a round.

use super::Writing;
use super::output::Emission;
use crate::accept::{Guess, Verdict};
use crate::draft::Drafting;
use crate::drafter_kind::DrafterKind;
use crate::trace::{Drafted, Extra, ExtraKind, Outcome, Round, Times};

impl Writing<'_> {
    /// Builds the trace record. `judged` is the target's probability for each judged guess. Guesses
    /// after the last emitted token count as discarded, whatever the verdict computed for them.
    pub(super) fn record(
        &self,
        drafting: &Drafting,
        verdict: &Verdict,
        judged: &[Option<f32>],
        emission: Emission,
    ) -> Round {
        let emitted = emission.tokens.len();
        let guesses = &drafting.guesses;
        let depths = guesses.depths();
        let accepted = &verdict.path[..verdict.path.len().min(emitted)];
        let mut texts = emission.texts.into_iter();
        let mut drafted = Vec::with_capacity(guesses.len());
        for (index, guess) in guesses.iter().enumerate() {
            let outcome = if accepted.contains(&index) {
                Outcome::Accepted
            } else if verdict.rejected.contains(&index) && depths[index] < emitted {
                Outcome::Rejected
            } else {
                Outcome::Discarded
            };
            let read = || self.output.tokenizer.piece(guess.token);
            let text = if outcome == Outcome::Accepted { texts.next() } else { None };
            let target = judged[index].filter(|_| outcome != Outcome::Discarded);
            drafted.push(Drafted {
                token: guess.token,
                text: text.unwrap_or_else(read),
                parent: guess.parent.map(|parent| parent as u32),
                draft_probability: guess.probability,
                target_probability: target,
                acceptance: target.map(|target| acceptance(guess, target)),
                outcome,
                drafter: guess.drafter,
                survival: drafting.survivals.get(index).map(|&survival| rounded(survival)),
            });
        }
        let last = accepted.last().copied();
        let kind = match guesses.len() {
            0 => ExtraKind::Plain,
            _ if guesses.iter().any(|guess| guess.parent == last) => ExtraKind::Recovered,
            _ => ExtraKind::Bonus,
        };
        let cut = emitted <= verdict.path.len();
        let extra = texts.next().filter(|_| !cut);
        Round {
            index: self.rounds.len() as u32,
            position: (self.context.len() - emitted) as u32,
            drafted,
            extra: extra.map(|text| Extra { token: verdict.extra, text, kind }),
            draft_length: drafting.length as u32,
            reason: drafting.reason,
            threshold: drafting.threshold,
            expected: drafting.expected().map(rounded),
            row_price: drafting.row_price.map(rounded),
            staged: drafting.staged,
            decision: drafting.decision.clone(),
            experts: None,
            times: Times::default(),
            at_ms: 0.0,
            logprobs: Vec::new(),
        }
    }
}

/// Chance of acceptance of a single guess.
fn acceptance(guess: &Guess, target: f32) -> f32 {
    match guess.drafter {
        DrafterKind::Model | DrafterKind::Head => (target / guess.probability).min(1.0),
        DrafterKind::Ngram | DrafterKind::Recycling => target,
        DrafterKind::Forced => 1.0,
    }
}

/// Rounds to four digits: further ones only take space in traces.
fn rounded(number: f32) -> f32 {
    (number * 1e4).round() / 1e4
}
