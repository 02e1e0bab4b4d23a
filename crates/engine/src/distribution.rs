//! A probability for each token that can come next, and how logits become one. Draws nothing.

use std::collections::HashSet;

use crate::forward::Row;
use crate::sampling::Sampling;
use crate::trace::TokenId;

/// Tokens with positive probability, ascending, and their probabilities, which sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    entries: Vec<(TokenId, f64)>,
}

impl Distribution {
    /// All probability on one token.
    pub fn point(token: TokenId) -> Self {
        Self { entries: vec![(token, 1.0)] }
    }

    /// From weights of any positive sum; `None` when no weight is positive. Tokens may come in any
    /// order, none twice.
    pub fn from_weights(weights: impl IntoIterator<Item = (TokenId, f64)>) -> Option<Self> {
        let mut entries: Vec<_> = weights.into_iter().filter(|&(_, weight)| weight > 0.0).collect();
        entries.sort_unstable_by_key(|&(token, _)| token);
        let sum: f64 = entries.iter().map(|&(_, weight)| weight).sum();
        entries.iter_mut().for_each(|(_, weight)| *weight /= sum);
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// The processed distribution of one row of logits: repetition penalty over `context`, then
    /// temperature, top-k, top-p and min-p. At temperature 0 a point mass on the likeliest token,
    /// the first of equals.
    pub fn processed(row: Row<'_>, sampling: &Sampling, context: &[TokenId]) -> Self {
        let mut penalised = Vec::new();
        let row = if sampling.repetition_penalty == 1.0 {
            row
        } else {
            penalised.extend_from_slice(row.logits());
            penalise(&mut penalised, sampling.repetition_penalty, context);
            Row::of(&penalised)
        };
        let (logits, highest) = (row.logits(), row.likeliest());
        if sampling.is_greedy() {
            return Self::point(highest);
        }
        let weights = softmax_weights(logits, logits[highest as usize], sampling.temperature);
        let kept = Filter { sampling }.apply(weights);
        // The likeliest token has weight 1 and passes every filter.
        Self::from_weights(kept).unwrap_or_else(|| Self::point(highest))
    }

    pub fn entries(&self) -> &[(TokenId, f64)] {
        &self.entries
    }

    /// 0 for tokens that cannot come.
    pub fn probability(&self, token: TokenId) -> f64 {
        let found = self.entries.binary_search_by_key(&token, |&(token, _)| token);
        found.map_or(0.0, |index| self.entries[index].1)
    }

    /// norm((self - other)+), what is left of the target once the draft took its share (Leviathan et
    /// al. 2023); `None` when nothing is left.
    pub fn residual(&self, other: &Self) -> Option<Self> {
        Self::from_weights(self.entries.iter().map(|&(token, p)| (token, p - other.probability(token))))
    }
}

/// Keskar et al. 2019: positive logits are divided, negative ones multiplied.
fn penalise(logits: &mut [f32], penalty: f32, context: &[TokenId]) {
    let seen: HashSet<TokenId> = context.iter().copied().collect();
    for token in seen {
        if let Some(logit) = logits.get_mut(token as usize) {
            *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
        }
    }
}

/// exp((logit - highest) / temperature); NaN logits weigh nothing.
fn softmax_weights(logits: &[f32], highest: f32, temperature: f32) -> Vec<(TokenId, f64)> {
    let scale = 1.0 / f64::from(temperature);
    let weigh = |logit: f32| ((f64::from(logit) - f64::from(highest)) * scale).exp();
    let weighed = logits.iter().enumerate().map(|(token, &logit)| (token as TokenId, weigh(logit)));
    weighed.filter(|&(_, weight)| weight > 0.0).collect()
}

/// Cuts the unlikely tail. Ties are broken by token id, so that the cut is the same everywhere.
struct Filter<'a> {
    sampling: &'a Sampling,
}

/// Likeliest first, then by token id.
fn descending(left: &(TokenId, f64), right: &(TokenId, f64)) -> std::cmp::Ordering {
    right.1.total_cmp(&left.1).then(left.0.cmp(&right.0))
}

impl Filter<'_> {
    fn apply(&self, mut weights: Vec<(TokenId, f64)>) -> Vec<(TokenId, f64)> {
        let top_k = self.sampling.top_k as usize;
        if top_k > 0 && top_k < weights.len() {
            weights.select_nth_unstable_by(top_k - 1, descending);
            weights.truncate(top_k);
        }
        if self.sampling.top_p < 1.0 {
            self.cut_to_top_p(&mut weights);
        }
        if self.sampling.min_p > 0.0 {
            let highest = weights.iter().map(|&(_, weight)| weight).fold(0.0, f64::max);
            let least = highest * f64::from(self.sampling.min_p);
            weights.retain(|&(_, weight)| weight >= least);
        }
        weights
    }

    /// Sorts only as many tokens as the share needs, which in a large vocabulary is few.
    fn cut_to_top_p(&self, weights: &mut Vec<(TokenId, f64)>) {
        let sum: f64 = weights.iter().map(|&(_, weight)| weight).sum();
        let share = f64::from(self.sampling.top_p) * sum;
        let mut sorted = 0;
        let mut held = 0.0;
        while sorted < weights.len() {
            let rest = &mut weights[sorted..];
            let step = rest.len().min(sorted.max(64) * 4);
            if step < rest.len() {
                rest.select_nth_unstable_by(step - 1, descending);
            }
            rest[..step].sort_unstable_by(descending);
            for index in sorted..sorted + step {
                held += weights[index].1;
                if held >= share {
                    weights.truncate(index + 1);
                    return;
                }
            }
            sorted += step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processed(logits: &[f32], change: impl FnOnce(&mut Sampling)) -> Vec<(TokenId, f64)> {
        let mut sampling = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
        change(&mut sampling);
        Distribution::processed(Row::of(logits), &sampling, &[0]).entries
    }

    /// Logits whose softmax is `probabilities`.
    fn logits(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln()).collect()
    }

    fn assert_close(found: &[(TokenId, f64)], expected: &[(TokenId, f64)]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.0, expected.0);
            assert!((found.1 - expected.1).abs() < 1e-6, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn temperature_one_without_filters_is_the_softmax() {
        let found = processed(&logits(&[0.5, 0.25, 0.25]), |_| ());
        assert_close(&found, &[(0, 0.5), (1, 0.25), (2, 0.25)]);
    }

    #[test]
    fn a_temperature_of_one_half_squares_the_ratios() {
        let found = processed(&logits(&[0.5, 0.25, 0.25]), |s| s.temperature = 0.5);
        assert_close(&found, &[(0, 4.0 / 6.0), (1, 1.0 / 6.0), (2, 1.0 / 6.0)]);
    }

    #[test]
    fn temperature_zero_takes_the_first_of_equals() {
        let found = processed(&[1.0, 3.0, 3.0], |s| s.temperature = 0.0);
        assert_close(&found, &[(1, 1.0)]);
    }

    #[test]
    fn a_tiny_temperature_does_not_overflow() {
        let found = processed(&[1.0, 300.0, 299.0], |s| s.temperature = 1e-30);
        assert_close(&found, &[(1, 1.0)]);
    }

    #[test]
    fn top_k_keeps_the_lower_id_of_equals() {
        let found = processed(&logits(&[0.25, 0.5, 0.25]), |s| s.top_k = 2);
        assert_close(&found, &[(0, 1.0 / 3.0), (1, 2.0 / 3.0)]);
    }

    #[test]
    fn top_p_keeps_the_token_that_crosses_the_share() {
        let found = processed(&logits(&[0.1, 0.5, 0.4]), |s| s.top_p = 0.6);
        assert_close(&found, &[(1, 0.5 / 0.9), (2, 0.4 / 0.9)]);
    }

    #[test]
    fn top_p_cuts_a_large_vocabulary_where_a_full_sort_would() {
        let weights: Vec<f32> = (0..5000).map(|i| ((i * 7919) % 5003) as f32 / 600.0).collect();
        let found = processed(&weights, |s| s.top_p = 0.9);
        let all = processed(&weights, |_| ());
        let mut sorted = all.clone();
        sorted.sort_by(descending);
        let sums = sorted.iter().scan(0.0, |sum, (_, p)| {
            *sum += p;
            Some(*sum)
        });
        let expected = sums.take_while(|&sum| sum < f64::from(0.9f32)).count() + 1;
        assert_eq!(found.len(), expected);
        assert!(expected > 256, "the case must need more than one step");
    }

    #[test]
    fn min_p_is_a_share_of_the_likeliest() {
        let found = processed(&logits(&[0.6, 0.3, 0.1]), |s| s.min_p = 0.4);
        assert_close(&found, &[(0, 0.6 / 0.9), (1, 0.3 / 0.9)]);
    }

    #[test]
    fn the_penalty_lowers_positive_and_negative_logits_alike() {
        let found = processed(&[2.0, 2.0], |s| s.repetition_penalty = 2.0);
        assert_close(&found, &[(0, 1.0 / (1.0 + 1f64.exp())), (1, 1f64.exp() / (1.0 + 1f64.exp()))]);
        let found = processed(&[-1.0, -1.0], |s| s.repetition_penalty = 2.0);
        assert_close(&found, &[(0, 1.0 / (1.0 + 1f64.exp())), (1, 1f64.exp() / (1.0 + 1f64.exp()))]);
    }

    #[test]
    fn tokens_that_are_not_numbers_are_never_drawn() {
        let found = processed(&[f32::NAN, 0.0, f32::NEG_INFINITY], |_| ());
        assert_close(&found, &[(1, 1.0)]);
    }

    #[test]
    fn the_residual_of_equals_is_nothing() {
        let p = Distribution::from_weights([(3, 1.0), (1, 3.0)]).unwrap();
        assert_eq!(p.residual(&p), None);
        assert_eq!(p.residual(&Distribution::point(1)), Some(Distribution::point(3)));
    }
}
