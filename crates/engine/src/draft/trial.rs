//! A draft on trial: how often a target would accept its guesses on a text that is there already, and what
//! that is worth on this device. Writes nothing.

use std::ops::ControlFlow;

use super::{DraftRequest, Drafter, Seen, let_hear, measure};
use crate::context::Context;
use crate::distribution::Distribution;
use crate::error::Result;
use crate::forward::{Features, Model, Want, catch_up};
use crate::governor::{Costs, Governor};
use crate::sampler::Sampler;
use crate::sampling::{Mode, Sampling};
use crate::token::TokenId;
use crate::tree::TokenTree;

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Places of the text that were tried.
    pub tokens: usize,
    /// The mean chance that a drafted token is accepted.
    pub acceptance: f64,
    /// The draft length that promises most; 0 where plain decoding does.
    pub draft_length: usize,
    pub tokens_per_second: f64,
    pub plain_tokens_per_second: f64,
}

impl Trial {
    /// Against plain decoding.
    pub fn speedup(&self) -> f64 {
        self.tokens_per_second / self.plain_tokens_per_second
    }
}

/// Places that are tried at most: the last ones of the text.
const PLACES: usize = 96;

/// Places whose scores are had from one pass of the target.
const AT_ONCE: usize = 16;

/// What drafts are tried on: the end of a text, and what the target's passes cost after it.
#[derive(Debug)]
pub struct Ground {
    text: Vec<TokenId>,
    sampling: Sampling,
    verify: Costs,
}

impl Ground {
    /// Lets the target read `text` (never empty), or the end of it where it is longer than half the context.
    /// `go_on` is asked between passes; `None` when it says `Break`. Tokens are drawn as `sampling` says.
    ///
    /// # Errors
    /// Those of the target, and `Error::Setting` for a value out of its range.
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

    /// Tries `drafter`. `go_on` is asked between passes; `None` when it says `Break`.
    ///
    /// The chance of acceptance is the overlap of the two distributions, the sum of min(p, q) (Leviathan et
    /// al. 2023); of a certain guess, the target's probability of it; where nothing is drafted, nothing. It is
    /// taken for the same at all depths.
    ///
    /// # Errors
    /// Those of the two models.
    pub fn attempt(
        &self,
        target: &mut dyn Model,
        drafter: &mut dyn Drafter,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Trial>> {
        let Some(chances) = self.chances(target, drafter, go_on)? else { return Ok(None) };
        let cost = drafter.cost();
        let draft = if cost.is_free() {
            None
        } else {
            measure::draft(drafter, &self.text[..].into(), target, &self.text)?
        };
        let mut governor = Governor::new(self.verify.clone(), vec![(drafter.kind(), draft)]);
        cost.at_once().into_iter().for_each(|longest| governor.drafts_at_once(0, longest));
        let acceptance = chances.iter().sum::<f64>() / chances.len().max(1) as f64;
        let (draft_length, rate) = governor.promise(0, acceptance);
        Ok(Some(Trial {
            tokens: chances.len(),
            acceptance,
            draft_length,
            tokens_per_second: rate * 1e3,
            plain_tokens_per_second: governor.plain_rate() * 1e3,
        }))
    }

    /// Of each of the last places, how likely a drafted token is accepted.
    fn chances(
        &self,
        target: &mut dyn Model,
        drafter: &mut dyn Drafter,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Vec<f64>>> {
        let Self { text, sampling, .. } = self;
        let mut sampler = Sampler::new(sampling)?;
        let taps = drafter.taps().cloned().unwrap_or_default();
        let want = Want::all_rows().interest(Distribution::interest(sampling)).features(&taps);
        let first = (text.len() + 1).saturating_sub(PLACES).max(1);
        let mut context = Context::from(&text[..first]);
        if let_hear(target, drafter, &context, go_on)?.is_break()
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
            for (row, place) in (start..end).enumerate() {
                if go_on().is_break() {
                    return Ok(None);
                }
                context.extend(text[context.len()..place].iter().copied());
                sampler.follow(&context);
                let penalties = sampler.penalties.at(&text[..place]);
                let theirs = Distribution::processed(logits.row(row), sampling, &penalties)?;
                let draft = drafter.draft(&context, &DraftRequest::chain(1), &mut sampler)?;
                chances.push(draft.guesses.first().map_or(0.0, |guess| match &guess.drawn_from {
                    Some(drawn_from) => 1.0 - theirs.excess(1.0, drawn_from),
                    None => theirs.probability(guess.token),
                }));
                if let Some(features) = features {
                    let (at, features) = (place - 1, Features::new(features.row(row), features.width()));
                    let tokens = &text[at..place];
                    drafter.observe(&Seen { at, tokens, rows: None, features: Some(features) })?;
                }
            }
        }
        Ok(Some(chances))
    }
}
