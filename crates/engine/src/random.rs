//! Randomness: a generator for the fastest mode, a counter-based one for the reproducible mode,
//! and, in tests, an oracle that takes every branch.

use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::distribution::Distribution;

/// Random choices of speculative decoding.
pub trait Randomness {
    /// Returns true with `probability` (clamped to 0..=1).
    fn accepts(&mut self, probability: f64) -> bool;

    /// Draws a token of `distribution` for a position of the text.
    fn draw(&mut self, position: usize, distribution: &Distribution) -> TokenId;
}

/// Random generator of a reply.
#[derive(Debug)]
pub enum Generator {
    /// Independent draws.
    Independent(Box<StdRng>),
    /// Gumbel-coupled draws (Daliri et al. 2024): argmax(ln p + G(seed, position, token)). The
    /// drawn token does not depend on the drawer or on the number of draws.
    Coupled { seed: u64 },
}

impl Generator {
    /// Generator for `sampling`; without a seed, a random one is used.
    pub fn new(sampling: &Sampling) -> Self {
        let seed = sampling.seed.map_or_else(rand::random, u64::from);
        match sampling.mode {
            Mode::Fastest => Self::Independent(Box::new(StdRng::seed_from_u64(seed))),
            Mode::Reproducible => Self::Coupled { seed },
        }
    }
}

impl Randomness for Generator {
    fn accepts(&mut self, probability: f64) -> bool {
        match self {
            Self::Independent(generator) => generator.random::<f64>() < probability,
            // Coupled drafts are certain guesses and accepted by equality, without a random choice.
            Self::Coupled { .. } => probability >= 1.0,
        }
    }

    fn draw(&mut self, position: usize, distribution: &Distribution) -> TokenId {
        if let Some(only) = distribution.only() {
            return only;
        }
        match self {
            Self::Independent(generator) => distribution.token_at(generator.random()),
            Self::Coupled { seed } => draw_by_gumbel(*seed, position, distribution),
        }
    }
}

/// ln p + G(seed, position, token); the token with the highest score is drawn.
pub(crate) fn coupled_score(seed: u64, position: usize, token: TokenId, probability: f64) -> f64 {
    probability.ln() - (-uniform(stream(seed, position), token).ln()).ln()
}

/// Token with the highest [`coupled_score`], which has the least -ln(u) / p.
fn draw_by_gumbel(seed: u64, position: usize, distribution: &Distribution) -> TokenId {
    let stream = stream(seed, position);
    let mut best = (0, f64::INFINITY);
    distribution.for_each(|token, probability| {
        let uniform = uniform(stream, token);
        // -ln(u) is 1 - u or more: most tokens cannot win, and need no logarithm.
        if 1.0 - uniform < best.1 * probability {
            let time = -uniform.ln() / probability;
            if time < best.1 {
                best = (token, time);
            }
        }
    });
    best.0
}

/// Random stream of a position.
fn stream(seed: u64, position: usize) -> u64 {
    mix(seed ^ mix(position as u64))
}

/// Uniform number between 0 and 1, a function of its arguments; -ln(-ln u) is a standard Gumbel
/// variate.
fn uniform(stream: u64, token: TokenId) -> f64 {
    let bits = mix(stream.wrapping_add((u64::from(token) + 1).wrapping_mul(GOLDEN_GAMMA)));
    // 53 bits, moved off 0 by half a step.
    ((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Output function of SplitMix64 (Steele, Lea and Flood 2014), a bijection of 64 bits; over
/// multiples of the golden gamma it is a counter-based generator.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN_GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_with_the_highest_score_is_drawn() {
        for position in 0..300 {
            let weight = |token: TokenId| 1.0 / f64::from(1 + mix(u64::from(token) + position) as u32 % 1000);
            let distribution =
                Distribution::from_weights((0..500).map(|token| (token, weight(token)))).unwrap();
            let score = |&(token, probability): &(TokenId, f64)| {
                coupled_score(7, position as usize, token, probability)
            };
            let entries = distribution.entries();
            let expected = entries.iter().max_by(|left, right| score(left).total_cmp(&score(right)));
            let drawn = Generator::Coupled { seed: 7 }.draw(position as usize, &distribution);
            assert_eq!(Some(drawn), expected.map(|&(token, _)| token));
        }
    }
}
