//! Sampler of a reply: settings, random generator and penalties.

use std::sync::Arc;

use foretoken_forward::{LogitSubset, Row};
use foretoken_model::error::Result;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;

use crate::accept::Guess;
use crate::context::{After, Context};
use crate::distribution::{Distribution, require_usable};
use crate::drafter_kind::DrafterKind;
use crate::penalties::{Penalised, Penalties, PenaltyTokens};
use crate::random::{Generator, Randomness};

#[derive(Debug)]
pub struct Sampler {
    pub(crate) sampling: Sampling,
    pub(crate) generator: Generator,
    pub(crate) penalties: Penalties,
}

impl Sampler {
    /// Creates a sampler with penalties on all tokens.
    ///
    /// # Errors
    /// `Error::Setting` for a value out of its range.
    pub fn new(sampling: &Sampling) -> Result<Self> {
        Self::with_tokens(sampling, Arc::default())
    }

    /// Creates a sampler whose penalties exempt some tokens.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_tokens(sampling: &Sampling, tokens: Arc<PenaltyTokens>) -> Result<Self> {
        sampling.validate()?;
        Ok(Self {
            sampling: sampling.clone(),
            generator: Generator::new(sampling),
            penalties: Penalties::with_tokens(sampling, tokens),
        })
    }

    /// Processes the new tokens of `context`, so that penalties cost no more after a long text.
    pub fn follow(&mut self, context: &Context) {
        self.penalties.follow(context);
    }

    /// Factor of DRY on the odds of `token` at `after`; 1 without a penalty.
    pub(crate) fn dry_odds(&self, after: After<'_>, token: TokenId) -> f32 {
        let dry = self.penalties.dry(after);
        let found = dry.iter().find(|&&(other, _)| other == token);
        let temperature = if self.sampling.is_greedy() { 1.0 } else { self.sampling.temperature };
        found.map_or(1.0, |&(_, less)| (-less / temperature).exp())
    }

    /// Part of the logits that `count` guesses per row need.
    pub fn logit_subset(&self, count: usize) -> LogitSubset {
        match Distribution::logit_subset(&self.sampling) {
            LogitSubset::Peaks if count > 1 => {
                LogitSubset::Likely { temperature: 1.0, margin: 0.0, top: count }
            }
            subset => subset,
        }
    }

    /// Returns true if guesses are drawn from a distribution: neither greedy nor coupled.
    pub fn draws(&self) -> bool {
        !self.sampling.is_greedy() && self.sampling.mode == Mode::Fastest
    }

    /// Prepares to draw siblings that follow `context` from a draft model's `row`.
    ///
    /// # Errors
    /// As [`Distribution::processed`].
    pub fn slots<'a, 'b>(&self, row: Row<'a>, context: impl Into<After<'b>>) -> Result<Slots<'a>> {
        require_usable(row)?;
        let context = context.into();
        let distribution = Distribution::processed(row, &self.sampling, &self.penalties.at(context))?;
        Ok(Slots { row, position: context.position(), whole: Arc::new(distribution), drawn: None })
    }

    /// Samples up to `count` different tokens to follow `context` from a draft model's `row`, as
    /// siblings. The caller sets their parent.
    ///
    /// Greedy and coupled choices are certain guesses: the softmax is not the distribution they
    /// were drawn from. Others are drawn without replacement, and their confidence does not depend
    /// on the drawn token.
    ///
    /// # Errors
    /// As [`Distribution::processed`].
    pub fn guess<'a>(
        &mut self,
        row: Row<'_>,
        context: impl Into<After<'a>>,
        count: usize,
    ) -> Result<Vec<Guess>> {
        if self.sampling.is_greedy() {
            return self.likeliest(row, context, count);
        }
        let mut slots = self.slots(row, context)?;
        std::iter::from_fn(|| slots.draw(self).transpose()).take(count).collect()
    }

    /// Returns the `count` likeliest tokens to follow `context` by a draft model's `row`, as
    /// certain guesses, whatever the settings. The caller sets their parent.
    ///
    /// # Errors
    /// As [`Distribution::processed`].
    pub fn likeliest<'a>(
        &mut self,
        row: Row<'_>,
        context: impl Into<After<'a>>,
        count: usize,
    ) -> Result<Vec<Guess>> {
        require_usable(row)?;
        let penalties = self.penalties.at(context.into());
        let top = Penalised::new(row, &penalties)?.top(count)?.into_iter();
        top.map(|(token, _)| Ok(certain(token, row.probability(token)?))).collect()
    }

    /// Guess for a token that was drawn with these settings from `distribution`, the processed
    /// `row`.
    pub(crate) fn as_guess(
        &self,
        token: TokenId,
        row: Row<'_>,
        distribution: &Arc<Distribution>,
    ) -> Result<Guess> {
        let guess = certain(token, shown_probability(&self.sampling, row, distribution, token)?);
        if self.sampling.is_greedy() || self.sampling.mode == Mode::Reproducible {
            return Ok(guess);
        }
        let confidence = distribution.largest() as f32;
        Ok(Guess { drawn_from: Some(Arc::clone(distribution)), confidence, ..guess })
    }
}

/// Siblings that are drawn from a row one after the other, without replacement.
pub struct Slots<'a> {
    row: Row<'a>,
    position: usize,
    whole: Arc<Distribution>,
    /// The last drawn token, and the distribution it was drawn from if that is not the whole one.
    drawn: Option<(TokenId, Option<Distribution>)>,
}

impl Slots<'_> {
    /// Confidence in the next sibling, which does not depend on its token.
    pub fn confidence(&self) -> f32 {
        self.whole.largest() as f32
    }

    /// Draws the next sibling; `None` if there are no more tokens.
    ///
    /// # Errors
    /// As [`Row::logits`].
    pub fn draw(&mut self, sampler: &mut Sampler) -> Result<Option<Guess>> {
        let rest = match self.drawn.take() {
            None => None,
            Some((token, rest)) => match rest.as_ref().unwrap_or(&self.whole).without(token) {
                None => return Ok(None),
                rest => rest,
            },
        };
        let token = sampler.generator.draw(self.position, rest.as_ref().unwrap_or(&self.whole));
        self.drawn = Some((token, rest));
        sampler.as_guess(token, self.row, &self.whole).map(Some)
    }
}

/// Certain guess with this probability.
fn certain(token: TokenId, probability: f32) -> Guess {
    Guess {
        token,
        parent: None,
        drawn_from: None,
        probability,
        confidence: probability,
        drafter: DrafterKind::Model,
    }
}

/// Probability to show for a token: the processed one, or at temperature 0, where that is 0 or 1,
/// the model's own.
pub(crate) fn shown_probability(
    sampling: &Sampling,
    row: Row<'_>,
    processed: &Distribution,
    token: TokenId,
) -> Result<f32> {
    if sampling.is_greedy() { row.probability(token) } else { Ok(processed.probability(token) as f32) }
}
