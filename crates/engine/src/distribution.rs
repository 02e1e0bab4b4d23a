//! Probability distributions over tokens, and their computation from logits. Draws nothing.

use foretoken_forward::{LogitSubset, Row};
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;

use crate::penalties::{Penalised, Penalty};

/// Tokens with positive probability, ascending, and their probabilities, which sum to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    entries: Vec<(TokenId, f64)>,
}

impl Distribution {
    /// Point mass on one token.
    pub fn point(token: TokenId) -> Self {
        Self { entries: vec![(token, 1.0)] }
    }

    /// Normalizes weights; `None` if no weight is positive. Tokens may come in any order, none
    /// twice.
    pub fn from_weights(weights: impl IntoIterator<Item = (TokenId, f64)>) -> Option<Self> {
        let mut entries: Vec<_> = weights.into_iter().filter(|&(_, weight)| weight > 0.0).collect();
        entries.sort_unstable_by_key(|&(token, _)| token);
        let sum: f64 = entries.iter().map(|&(_, weight)| weight).sum();
        entries.iter_mut().for_each(|(_, weight)| *weight /= sum);
        (!entries.is_empty()).then_some(Self { entries })
    }

    /// Processed distribution of a row of logits: penalties (by ascending token), temperature,
    /// top-k, top-p and min-p. At temperature 0, a point mass on the likeliest token, the first of
    /// equals.
    ///
    /// # Errors
    /// `Error::NotFinite` for a row without a finite logit; `Error::Compute` if the logits cannot
    /// be fetched.
    pub fn processed(row: Row<'_>, sampling: &Sampling, penalties: &[Penalty]) -> Result<Self> {
        require_usable(row)?;
        let row = &Penalised::new(row, penalties)?;
        let highest = row.likeliest();
        if sampling.is_greedy() {
            return Ok(Self::point(highest));
        }
        let filter = Filter { sampling, highest: row.largest() };
        let kept = filter.apply(row)?;
        // The likeliest token has weight 1 and passes every filter.
        Ok(Self::from_weights(kept).unwrap_or_else(|| Self::point(highest)))
    }

    /// Part of a row that [`Self::processed`] nearly always needs, in addition to the logits of
    /// tokens with penalties.
    pub fn logit_subset(sampling: &Sampling) -> LogitSubset {
        let Sampling { temperature, top_k, .. } = *sampling;
        let lower = if sampling.penalises_tokens() || sampling.penalises_sequences() { LOWERED } else { 0.0 };
        let within = |cut: f64| reach(cut, temperature) as f32 + lower;
        if sampling.is_greedy() {
            return LogitSubset::Peaks;
        }
        match Search::of(sampling) {
            Search::Top => LogitSubset::Likely { temperature, margin: 0.0, top: top_k as usize },
            Search::All => LogitSubset::Everything,
            Search::Above(cut) => LogitSubset::Likely { temperature, margin: within(cut), top: 0 },
            Search::Share => LogitSubset::Likely { temperature, margin: within(CUTS[0]), top: 0 },
        }
    }

    pub fn entries(&self) -> &[(TokenId, f64)] {
        &self.entries
    }

    /// Probability of `token`; 0 if it is not in the distribution.
    pub fn probability(&self, token: TokenId) -> f64 {
        let found = self.entries.binary_search_by_key(&token, |&(token, _)| token);
        found.map_or(0.0, |index| self.entries[index].1)
    }

    /// norm((scale self - other)+), the residual distribution after a rejection (Leviathan et al.
    /// 2023; scaled: Sun et al. 2024); `None` if nothing is left.
    pub fn residual(&self, scale: f64, other: &Self) -> Option<Self> {
        Self::from_weights(self.beyond(scale, other))
    }

    /// Sum of (scale self - other)+.
    pub fn excess(&self, scale: f64, other: &Self) -> f64 {
        self.beyond(scale, other).map(|(_, weight)| weight.max(0.0)).sum()
    }

    /// scale self - other, for the tokens of self.
    fn beyond(&self, scale: f64, other: &Self) -> impl Iterator<Item = (TokenId, f64)> {
        // Both ascend, so one pass over each is enough.
        let mut others = other.entries.iter().peekable();
        self.entries.iter().map(move |&(token, p)| {
            while others.next_if(|&&(other, _)| other < token).is_some() {}
            let taken = others.peek().filter(|&&&(other, _)| other == token).map_or(0.0, |&&(_, q)| q);
            (token, scale * p - taken)
        })
    }

    /// Distribution without `token`, normalized; `None` if nothing is left.
    pub fn without(&self, token: TokenId) -> Option<Self> {
        Self::from_weights(self.entries.iter().copied().filter(|&(other, _)| other != token))
    }

    /// Largest probability.
    pub fn largest(&self) -> f64 {
        self.entries.iter().map(|&(_, probability)| probability).fold(0.0, f64::max)
    }
}

/// Rejects a row from which no token can be chosen.
///
/// # Errors
/// `Error::NotFinite`.
pub(crate) fn require_usable(row: Row<'_>) -> Result<()> {
    if row.is_usable() { Ok(()) } else { Err(Error::NotFinite) }
}

/// Order by descending probability, then by token id.
fn descending(left: &(TokenId, f64), right: &(TokenId, f64)) -> std::cmp::Ordering {
    right.1.total_cmp(&left.1).then(left.0.cmp(&right.0))
}

/// Tokens and their weights, e^((logit - highest) / temperature).
type Weights = Vec<(TokenId, f64)>;

/// Filters that cut the unlikely tail. Ties are broken by token id, so that the cut is the same
/// everywhere.
struct Filter<'a> {
    sampling: &'a Sampling,
    /// Highest logit; its token has weight 1.
    highest: f32,
}

/// Largest top-k that is searched without sorting.
const FEW: usize = 128;

/// Amount by which penalties rarely lower the highest logit further.
const LOWERED: f32 = 2.0;

/// Weights down to which top-p searches first.
const CUTS: [f64; 4] = [1e-4, 1e-5, 1e-6, 1e-8];

/// Number of tokens among which the last one of top-p is found by sorting.
const SORTED: usize = 64;

/// Search for the tokens that the filters keep.
enum Search {
    /// The k likeliest.
    Top,
    All,
    /// Tokens with at least this weight.
    Above(f64),
    /// The likeliest tokens that hold the share of top-p.
    Share,
}

impl Search {
    fn of(sampling: &Sampling) -> Self {
        let Sampling { top_k, top_p, min_p, .. } = *sampling;
        match top_k as usize {
            1..=FEW => Self::Top,
            0 if top_p < 1.0 => Self::Share,
            0 if min_p > 0.0 => Self::Above(f64::from(min_p) / 2.0),
            _ => Self::All,
        }
    }
}

/// Distance from the highest logit of a logit with weight `cut`.
fn reach(cut: f64, temperature: f32) -> f64 {
    -cut.ln() * f64::from(temperature)
}

impl Filter<'_> {
    /// Tokens and their weights, e^((logit - highest) / temperature); NaN logits are left out.
    fn apply(&self, row: &Penalised<'_>) -> Result<Weights> {
        let (mut weights, sum) = self.candidates(row)?;
        let top_k = self.sampling.top_k as usize;
        if top_k > 0 && top_k < weights.len() {
            weights.select_nth_unstable_by(top_k - 1, descending);
            weights.truncate(top_k);
        }
        if self.sampling.top_p < 1.0 {
            let sum = sum.unwrap_or_else(|| weights.iter().map(|&(_, weight)| weight).sum());
            self.cut_to_top_p(&mut weights, sum);
        }
        let least = f64::from(self.sampling.min_p);
        weights.retain(|&(_, weight)| weight >= least);
        Ok(weights)
    }

    /// Small set of tokens that contains all that the filters keep, and the sum of all weights if
    /// the set is not everything.
    fn candidates(&self, row: &Penalised<'_>) -> Result<(Weights, Option<f64>)> {
        let share = match Search::of(self.sampling) {
            Search::Top => {
                let mut weights = Vec::new();
                let top = row.top(self.sampling.top_k as usize)?;
                top.into_iter().for_each(|(token, logit)| self.weigh(token, logit, &mut weights));
                return Ok((weights, None));
            }
            Search::All => return Ok((self.above(row, 0.0)?, None)),
            Search::Above(cut) => return Ok((self.above(row, cut)?, None)),
            Search::Share => f64::from(self.sampling.top_p),
        };
        let sum = f64::from(row.sum_exp(1.0 / self.sampling.temperature)?);
        for cut in CUTS {
            let weights = self.above(row, cut)?;
            let held: f64 = weights.iter().map(|&(_, weight)| weight).sum();
            if held >= sum * share {
                return Ok((weights, Some(sum)));
            }
        }
        Ok((self.above(row, 0.0)?, None))
    }

    /// Tokens with at least the weight `cut`.
    fn above(&self, row: &Penalised<'_>, cut: f64) -> Result<Weights> {
        let least = (f64::from(self.highest) - reach(cut, self.sampling.temperature)) as f32;
        let mut weights = Vec::new();
        row.at_least(least, |token, logit| self.weigh(token, logit, &mut weights))?;
        Ok(weights)
    }

    fn weigh(&self, token: TokenId, logit: f32, weights: &mut Weights) {
        let scale = 1.0 / f64::from(self.sampling.temperature);
        let weight = ((f64::from(logit) - f64::from(self.highest)) * scale).exp();
        if weight > 0.0 {
            weights.push((token, weight));
        }
    }

    /// Keeps the likeliest tokens that hold the share of top-p, in their order. Searches for the
    /// last of them by halves, since sorting thousands of tokens takes as long as a layer of a
    /// small model.
    fn cut_to_top_p(&self, weights: &mut Weights, sum: f64) {
        let share = f64::from(self.sampling.top_p) * sum;
        let mut searched = weights.clone();
        let (mut held, mut rest) = (0.0, &mut searched[..]);
        while rest.len() > SORTED {
            let (likelier, _, _) = rest.select_nth_unstable_by(rest.len() / 2, descending);
            let half: f64 = likelier.iter().map(|&(_, weight)| weight).sum();
            if held + half >= share {
                let end = likelier.len();
                rest = &mut rest[..end];
            } else {
                held += half;
                let begin = likelier.len();
                rest = &mut rest[begin..];
            }
        }
        rest.sort_unstable_by(descending);
        let last = rest.iter().find(|&&(_, weight)| {
            held += weight;
            held >= share
        });
        // Sums in another order may differ in the last bit, so that none reaches the share.
        if let Some(last) = last.or(rest.last()).copied() {
            weights.retain(|weight| descending(weight, &last).is_le());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::collections::HashSet;

    use super::*;
    use crate::penalties::Penalties;

    fn processed(logits: &[f32], change: impl FnOnce(&mut Sampling)) -> Vec<(TokenId, f64)> {
        let mut sampling = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
        change(&mut sampling);
        let penalties = Penalties::new(&sampling).at(&[0]);
        Distribution::processed(Row::of(logits), &sampling, &penalties).unwrap().entries
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

    /// Reference by definition, over all tokens in 64 bits.
    fn by_definition(logits: &[f32], sampling: &Sampling) -> Vec<(TokenId, f64)> {
        let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weigh = |logit: f32| (f64::from(logit - highest) / f64::from(sampling.temperature)).exp();
        let mut sorted: Vec<_> = (0..).zip(logits.iter().map(|&logit| weigh(logit))).collect();
        sorted.sort_by(descending);
        if sampling.top_k > 0 {
            sorted.truncate(sampling.top_k as usize);
        }
        let share = sorted.iter().map(|&(_, w)| w).sum::<f64>() * f64::from(sampling.top_p);
        let mut held = 0.0;
        sorted.retain(|&(_, weight)| {
            let wanted = held < share;
            held += weight;
            wanted
        });
        sorted.retain(|&(_, weight)| weight >= f64::from(sampling.min_p));
        Distribution::from_weights(sorted).unwrap().entries
    }

    proptest! {
        #[test]
        fn fast_filters_give_the_result_of_the_definition(
            logits in prop::collection::vec(-8f32..8.0, 1..3000),
            temperature in prop_oneof![Just(0.2f32), Just(0.7), Just(1.0), Just(3.0)],
            top_k in prop_oneof![Just(0u32), Just(1), Just(40), Just(200)],
            top_p in prop_oneof![Just(1f32), Just(0.95), Just(0.3), Just(0.9999)],
            min_p in prop_oneof![Just(0f32), Just(0.05), Just(0.9)],
        ) {
            let sampling = Sampling { temperature, top_k, top_p, min_p, ..Sampling::default() };
            let found = Distribution::processed(Row::of(&logits), &sampling, &[]).unwrap().entries;
            let expected = by_definition(&logits, &sampling);
            // The share is reached to six digits: tokens in only one of the results have almost no
            // probability.
            let missing = |from: &[(TokenId, f64)], of: &[(TokenId, f64)]| -> f64 {
                let here: HashSet<TokenId> = from.iter().map(|&(token, _)| token).collect();
                of.iter().filter(|&(token, _)| !here.contains(token)).map(|&(_, p)| p).sum()
            };
            let largest = expected.iter().map(|&(_, p)| p).fold(0.0, f64::max);
            let one = expected.iter().map(|&(_, p)| p).fold(largest, f64::min);
            prop_assert!(missing(&found, &expected).max(missing(&expected, &found)) < 1e-5 + 1.001 * one);
            for (token, p) in &found {
                let same = expected.iter().find(|other| other.0 == *token);
                prop_assert!(same.is_none_or(|other| (other.1 - p).abs() < 1e-3 * p), "{token}: {p}, {same:?}");
            }
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

    /// Min-p before the temperature would keep two.
    #[test]
    fn the_temperature_comes_before_the_filters() {
        let kept = processed(&logits(&[0.5, 0.3, 0.2]), |sampling| {
            (sampling.temperature, sampling.min_p) = (2.0, 0.5);
        });
        assert_eq!(kept.len(), 3);
        let kept = processed(&logits(&[0.5, 0.3, 0.2]), |sampling| sampling.min_p = 0.5);
        assert_eq!(kept.len(), 2);
    }

    #[test]
    fn the_penalty_lowers_positive_and_negative_logits_alike() {
        let found = processed(&[2.0, 2.0], |s| s.repetition_penalty = 2.0);
        assert_close(&found, &[(0, 1.0 / (1.0 + 1f64.exp())), (1, 1f64.exp() / (1.0 + 1f64.exp()))]);
        let found = processed(&[-1.0, -1.0], |s| s.repetition_penalty = 2.0);
        assert_close(&found, &[(0, 1.0 / (1.0 + 1f64.exp())), (1, 1f64.exp() / (1.0 + 1f64.exp()))]);
    }

    #[test]
    fn tokens_with_nan_logits_are_never_drawn() {
        let found = processed(&[f32::NAN, 0.0, f32::NEG_INFINITY], |_| ());
        assert_close(&found, &[(1, 1.0)]);
    }

    #[test]
    fn the_residual_of_equal_distributions_is_empty() {
        let p = Distribution::from_weights([(3, 1.0), (1, 3.0)]).unwrap();
        assert_eq!(p.residual(1.0, &p), None);
        assert_eq!(p.residual(1.0, &Distribution::point(1)), Some(Distribution::point(3)));
    }
}
