//! Offline evaluation of a drafter: expected acceptance on an existing text, and the speed that
//! follows from it on this device. Generates no text.

use std::ops::ControlFlow;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, Model, Want, catch_up};
use foretoken_model::error::Result;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;

use super::{DraftRequest, Drafter, Observation, measure, replay_for};
use crate::context::Context;
use crate::distribution::Distribution;
use crate::governor::{Costs, Governor};
use crate::sampler::Sampler;

/// Result of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Number of evaluated positions of the text.
    pub tokens: usize,
    /// Mean chance that a guess is accepted.
    pub acceptance: f64,
    /// Draft length with the highest expected speed; 0 for plain decoding.
    pub draft_length: usize,
    pub tokens_per_second: f64,
    pub plain_tokens_per_second: f64,
}

impl Evaluation {
    /// Speedup against plain decoding.
    pub fn speedup(&self) -> f64 {
        self.tokens_per_second / self.plain_tokens_per_second
    }
}

/// Maximum number of evaluated positions, at the end of the text.
const MAX_POSITIONS: usize = 96;

/// Positions whose logits come from one pass of the target.
const AT_ONCE: usize = 16;

/// Text to evaluate drafters on, and the cost of the target's passes after it.
#[derive(Debug)]
pub struct EvaluationText {
    text: Vec<TokenId>,
    sampling: Sampling,
    verify: Costs,
}

impl EvaluationText {
    /// Prefills the target with `text` (never empty), or with its end if it is longer than half the
    /// context. Tokens are sampled with `sampling`. `go_on` is called between passes; returns
    /// `None` if it returned `Break`.
    ///
    /// # Errors
    /// Errors of the target, and `Error::Setting` for a value out of range.
    pub fn prepare(
        target: &mut dyn Model,
        text: &[TokenId],
        sampling: &Sampling,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Self>> {
        let text = &text[text.len().saturating_sub(target.config().context / 2)..];
        sampling.validate()?;
        if catch_up(target, text, &mut |_, _| go_on())?.1.is_break() {
            return Ok(None);
        }
        let sampling = Sampling { mode: Mode::Fastest, ..sampling.clone() };
        Ok(Some(Self { text: text.to_vec(), sampling, verify: measure::verify(target, text)? }))
    }

    /// Evaluates `drafter`. `go_on` is called between passes; returns `None` if it returned
    /// `Break`.
    ///
    /// The chance of acceptance of a drawn guess is the overlap of both distributions, sum of
    /// min(p, q) (Leviathan et al. 2023). For a certain guess it is the target's probability of the
    /// token, and 0 where nothing is drafted. It is assumed to be equal at all depths.
    ///
    /// # Errors
    /// Errors of both models.
    pub fn evaluate(
        &self,
        target: &mut dyn Model,
        drafter: &mut dyn Drafter,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Evaluation>> {
        let Some(chances) = self.chances(target, drafter, go_on)? else { return Ok(None) };
        let cost = drafter.cost();
        let draft = if cost.is_free() {
            None
        } else {
            measure::draft(drafter, &self.text[..].into(), target, &self.text)?
        };
        let mut governor = Governor::new(self.verify.clone(), vec![(drafter.kind(), draft)]);
        cost.at_once().into_iter().for_each(|longest| governor.set_block_length(0, longest));
        let acceptance = chances.iter().sum::<f64>() / chances.len().max(1) as f64;
        let (draft_length, rate) = governor.expected_speed(0, acceptance);
        Ok(Some(Evaluation {
            tokens: chances.len(),
            acceptance,
            draft_length,
            tokens_per_second: rate * 1e3,
            plain_tokens_per_second: governor.plain_rate() * 1e3,
        }))
    }

    /// Chance that a guess is accepted, for each of the last positions.
    fn chances(
        &self,
        target: &mut dyn Model,
        drafter: &mut dyn Drafter,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Vec<f64>>> {
        let Self { text, sampling, .. } = self;
        let mut sampler = Sampler::new(sampling)?;
        let taps = drafter.taps().cloned().unwrap_or_default();
        let want = Want::all_rows().subset(Distribution::logit_subset(sampling)).features(&taps);
        let first = (text.len() + 1).saturating_sub(MAX_POSITIONS).max(1);
        let mut context = Context::from(&text[..first]);
        if replay_for(target, drafter, &context, go_on)?.is_break()
            || drafter.prepare(&context, &mut |_, _| go_on())?.is_break()
        {
            return Ok(None);
        }
        let mut chances = Vec::new();
        for start in (first..=text.len()).step_by(AT_ONCE) {
            let end = (start + AT_ONCE).min(text.len() + 1);
            let rows = TokenTree::chain(text[start - 1..end - 1].iter().copied());
            let pass = target.run(&rows, &want)?;
            let (logits, features) = (pass.logits(), pass.features());
            for (row, position) in (start..end).enumerate() {
                if go_on().is_break() {
                    return Ok(None);
                }
                context.extend(text[context.len()..position].iter().copied());
                sampler.follow(&context);
                let theirs = sampler.rules.distribution(logits.row(row), text[..position].into())?;
                let draft = drafter.draft(&context, &DraftRequest::chain(1), &mut sampler)?;
                chances.push(draft.guesses.first().map_or(0.0, |guess| match &guess.drawn_from {
                    Some(drawn_from) => 1.0 - theirs.excess(1.0, drawn_from),
                    None => theirs.probability(guess.token),
                }));
                if let Some(features) = features {
                    let (at, features) = (position - 1, Features::new(features.row(row), features.width()));
                    let tokens = &text[at..position];
                    drafter.observe(&Observation { at, tokens, rows: None, features: Some(features) })?;
                }
            }
        }
        Ok(Some(chances))
    }
}
