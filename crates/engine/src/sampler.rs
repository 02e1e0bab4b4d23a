//! Sampler of a reply: its rules and its random generator.

use std::sync::Arc;

use foretoken_forward::{LogitSubset, Row};
use foretoken_model::error::Result;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;

use crate::accept::{Guess, Guesses};
use crate::constraint::Masks;
use crate::context::{After, Context};
use crate::distribution::{Distribution, Legal, require_usable};
use crate::drafter_kind::DrafterKind;
use crate::penalties::{Penalised, Penalties, Penalty, PenaltyTokens};
use crate::random::{Generator, Randomness};

/// See the module.
pub struct Sampler {
    pub(crate) rules: Rules,
    pub(crate) generator: Generator,
}

/// Settings, penalties and constraint of a reply, which decide what may follow a text and how
/// likely.
pub(crate) struct Rules {
    pub(crate) sampling: Sampling,
    pub(crate) penalties: Penalties,
    /// `None` without a constraint.
    pub(crate) masks: Option<Masks>,
}

impl Rules {
    /// The target's distribution of the token that follows `after`, from its `row` there.
    ///
    /// # Errors
    /// As [`Distribution::processed`] and [`Masks::at`].
    pub(crate) fn distribution(&mut self, row: Row<'_>, after: After<'_>) -> Result<Distribution> {
        let penalties = self.penalties.at(after);
        match &mut self.masks {
            None => Distribution::processed(row, &self.sampling, &penalties),
            Some(masks) => Distribution::constrained(row, &self.sampling, &penalties, &*masks.at(after)?),
        }
    }

    /// Returns whether the constraint allows each of `tokens` at `after`.
    ///
    /// # Errors
    /// As [`Masks::at`].
    pub(crate) fn allows(&mut self, after: After<'_>, tokens: &[TokenId]) -> Result<bool> {
        let Some(masks) = &mut self.masks else { return Ok(true) };
        let mask = masks.at(after)?;
        Ok(tokens.iter().all(|&token| mask.allows(token)))
    }
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
        let penalties = Penalties::with_tokens(sampling, tokens);
        Ok(Self {
            rules: Rules { sampling: sampling.clone(), penalties, masks: None },
            generator: Generator::new(sampling),
        })
    }

    /// Leaves the first `prompt` tokens of a text out of those of the reply.
    #[must_use]
    pub fn after_prompt(mut self, prompt: usize) -> Self {
        self.rules.penalties = self.rules.penalties.after_prompt(prompt);
        self
    }

    /// Restricts the reply to the tokens that `masks` allow.
    #[must_use]
    pub fn constrained(mut self, masks: Option<Masks>) -> Self {
        self.rules.masks = masks;
        self
    }

    /// Processes the new tokens of `context`, so that penalties cost no more after a long text.
    pub fn follow(&mut self, context: &Context) {
        self.rules.penalties.follow(context);
        self.rules.masks.iter_mut().for_each(|masks| masks.follow(context));
    }

    /// The only token that may follow `after`; `None` if there are several, or without a
    /// constraint.
    ///
    /// # Errors
    /// As [`Masks::at`].
    pub fn forced(&mut self, after: After<'_>) -> Result<Option<TokenId>> {
        self.rules.masks.as_mut().map_or(Ok(None), |masks| masks.forced(after))
    }

    /// Drops certain guesses at `after` that the constraint does not allow.
    ///
    /// # Errors
    /// As [`Masks::at`].
    pub fn allowed(&mut self, after: After<'_>, guesses: Guesses) -> Result<Guesses> {
        match &mut self.rules.masks {
            Some(masks) => masks.cut(after, guesses),
            None => Ok(guesses),
        }
    }

    /// Factor of DRY on the odds of `token` at `after`; 1 without a penalty.
    pub(crate) fn dry_odds(&self, after: After<'_>, token: TokenId) -> f32 {
        let dry = self.rules.penalties.dry(after);
        let found = dry.iter().find(|&&(other, _)| other == token);
        let sampling = &self.rules.sampling;
        let temperature = if sampling.is_greedy() { 1.0 } else { sampling.temperature };
        found.map_or(1.0, |&(_, less)| (-less / temperature).exp())
    }

    /// Part of the logits that `count` guesses per row need. A constraint may allow any others.
    pub fn logit_subset(&self, count: usize) -> LogitSubset {
        match Distribution::logit_subset(&self.rules.sampling) {
            LogitSubset::Peaks if count <= 1 => LogitSubset::Peaks,
            _ if self.rules.masks.is_some() => LogitSubset::Everything,
            LogitSubset::Peaks => LogitSubset::Likely { temperature: 1.0, margin: 0.0, top: count },
            subset => subset,
        }
    }

    /// Returns true if guesses are drawn from a distribution: neither greedy nor coupled.
    pub fn draws(&self) -> bool {
        !self.rules.sampling.is_greedy() && self.rules.sampling.mode == Mode::Fastest
    }

    /// Prepares to draw siblings that follow `context` from a draft model's `row`; `None` if it has
    /// no token that the constraint allows.
    ///
    /// # Errors
    /// As [`Distribution::processed`] and [`Masks::at`].
    pub fn slots<'a, 'b>(
        &mut self,
        row: Row<'a>,
        context: impl Into<After<'b>>,
    ) -> Result<Option<Slots<'a>>> {
        require_usable(row)?;
        let (context, Rules { sampling, penalties, masks }) = (context.into(), &mut self.rules);
        let penalties = penalties.at(context);
        let distribution = match masks {
            None => Distribution::processed(row, sampling, &penalties)?,
            Some(masks) => match Legal::of(row, &*masks.at(context)?)? {
                Some(legal) => Distribution::processed(legal.row(), sampling, &penalties)?,
                None => return Ok(None),
            },
        };
        Ok(Some(Slots { row, position: context.position(), whole: Arc::new(distribution), drawn: None }))
    }

    /// Samples up to `count` different tokens to follow `context` from a draft model's `row`, as
    /// siblings. The caller sets their parent.
    ///
    /// Greedy and coupled choices are certain guesses: the softmax is not the distribution they
    /// were drawn from. Others are drawn without replacement, and their confidence does not depend
    /// on the drawn token.
    ///
    /// # Errors
    /// As [`Self::slots`].
    pub fn guess<'a>(
        &mut self,
        row: Row<'_>,
        context: impl Into<After<'a>>,
        count: usize,
    ) -> Result<Vec<Guess>> {
        if self.rules.sampling.is_greedy() {
            return self.likeliest(row, context, count);
        }
        let Some(mut slots) = self.slots(row, context)? else { return Ok(Vec::new()) };
        std::iter::from_fn(|| slots.draw(self).transpose()).take(count).collect()
    }

    /// Returns the `count` likeliest tokens to follow `context` by a draft model's `row`, as
    /// certain guesses, whatever the settings. The caller sets their parent.
    ///
    /// # Errors
    /// As [`Self::slots`].
    pub fn likeliest<'a>(
        &mut self,
        row: Row<'_>,
        context: impl Into<After<'a>>,
        count: usize,
    ) -> Result<Vec<Guess>> {
        require_usable(row)?;
        let context = context.into();
        let penalties = self.rules.penalties.at(context);
        let Some(masks) = &mut self.rules.masks else { return top(row, &penalties, count) };
        let mask = masks.at(context)?;
        if count == 1 && mask.allows(Penalised::new(row, &penalties)?.likeliest()) {
            return top(row, &penalties, count);
        }
        Legal::of(row, &mask)?.map_or(Ok(Vec::new()), |legal| top(legal.row(), &penalties, count))
    }

    /// Guess for a token that was drawn with these settings from `distribution`, the processed
    /// `row`.
    pub(crate) fn as_guess(
        &self,
        token: TokenId,
        row: Row<'_>,
        distribution: &Arc<Distribution>,
    ) -> Result<Guess> {
        let sampling = &self.rules.sampling;
        let guess = certain(token, shown_probability(sampling, row, distribution, token)?);
        if sampling.is_greedy() || sampling.mode == Mode::Reproducible {
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

/// The `count` likeliest tokens of a row with penalties, as certain guesses.
fn top(row: Row<'_>, penalties: &[Penalty], count: usize) -> Result<Vec<Guess>> {
    let top = Penalised::new(row, penalties)?.top(count)?.into_iter();
    top.map(|(token, _)| Ok(certain(token, row.probability(token)?))).collect()
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
