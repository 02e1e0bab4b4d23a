//! Sampling settings together with the generator that carries them out, for one reply.

use crate::accept::Guess;
use crate::distribution::Distribution;
use crate::error::Result;
use crate::forward::Row;
use crate::random::{Generator, Randomness};
use crate::sampling::{Mode, Sampling};
use crate::trace::TokenId;

#[derive(Debug)]
pub struct Sampler {
    pub(crate) sampling: Sampling,
    pub(crate) generator: Generator,
}

impl Sampler {
    /// # Errors
    /// `Error::Setting` for a value out of its range.
    pub fn new(sampling: &Sampling) -> Result<Self> {
        sampling.validate()?;
        Ok(Self { sampling: sampling.clone(), generator: Generator::new(sampling) })
    }

    /// A drafted token to follow `context`, chosen as the settings say from a draft model's `row` of logits.
    ///
    /// Greedy and coupled choices are certain guesses: the softmax they were taken from is not the
    /// distribution they were drawn from.
    pub fn guess(&mut self, row: Row<'_>, context: &[TokenId]) -> Guess {
        let distribution = Distribution::processed(row, &self.sampling, context);
        let token = self.generator.draw(context.len(), &distribution);
        let probability = shown_probability(&self.sampling, row, &distribution, token);
        let certain = self.sampling.is_greedy() || self.sampling.mode == Mode::Reproducible;
        Guess { token, drawn_from: (!certain).then_some(distribution), probability }
    }
}

/// The probability to show for a token: the processed one, or at temperature 0, where that is 0 or
/// 1, the model's own.
pub(crate) fn shown_probability(
    sampling: &Sampling,
    row: Row<'_>,
    processed: &Distribution,
    token: TokenId,
) -> f32 {
    if sampling.is_greedy() { row.probability(token) } else { processed.probability(token) as f32 }
}
