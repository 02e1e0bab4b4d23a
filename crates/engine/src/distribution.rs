//! Probability distributions over tokens, and their computation from logits. Draws nothing.
//!
//! - `filter`: temperature, top-k, top-p and min-p
//! - `dense`: a weight for every token, where most have one
//! - `buffers`: memory for these weights
//! - `legal`: rows without the tokens that a constraint does not allow

mod buffers;
mod dense;
mod filter;
mod legal;

use std::borrow::Cow;

use foretoken_forward::{LogitSubset, Row};
use foretoken_grammar::Mask;
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;

use self::buffers::Buffer;
use self::dense::Dense;
pub(crate) use self::legal::Legal;
use crate::penalties::{Penalised, Penalty};

/// Tokens with positive probability and their probabilities, which sum to 1.
#[derive(Debug, Clone)]
pub struct Distribution {
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// Tokens with positive probability, ascending, and their probabilities.
    List(Vec<(TokenId, f64)>),
    Dense(Dense),
}

impl Distribution {
    /// Point mass on one token.
    pub fn point(token: TokenId) -> Self {
        Self { form: Form::List(vec![(token, 1.0)]) }
    }

    /// Normalizes weights; `None` if no weight is positive. Tokens may come in any order, none
    /// twice.
    pub fn from_weights(weights: impl IntoIterator<Item = (TokenId, f64)>) -> Option<Self> {
        let mut entries: Vec<_> = weights.into_iter().filter(|&(_, weight)| weight > 0.0).collect();
        entries.sort_unstable_by_key(|&(token, _)| token);
        let sum: f64 = entries.iter().map(|&(_, weight)| weight).sum();
        entries.iter_mut().for_each(|(_, weight)| *weight /= sum);
        (!entries.is_empty()).then_some(Self { form: Form::List(entries) })
    }

    /// Normalizes a weight for each token, by its id; `None` if no weight is positive. `prepare`
    /// may change each block first; its first argument is the block's first token.
    fn from_buffer(weights: Buffer, prepare: impl FnMut(usize, &mut [f64])) -> Option<Self> {
        Some(match Dense::new(weights, prepare)? {
            Ok(dense) => Self { form: Form::Dense(dense) },
            Err(only) => Self::point(only),
        })
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
        // The likeliest token has weight 1 and passes every filter.
        Ok(filter::apply(sampling, row)?.unwrap_or_else(|| Self::point(highest)))
    }

    /// As [`Self::processed`], over the tokens of `mask` alone: they are taken before the filters,
    /// which could leave none of them. A single token has probability 1, whatever its logit.
    ///
    /// # Errors
    /// As [`Self::processed`], also if no token of the mask has a finite logit.
    pub fn constrained(
        row: Row<'_>,
        sampling: &Sampling,
        penalties: &[Penalty],
        mask: &Mask,
    ) -> Result<Self> {
        if let Some(only) = mask.forced() {
            return Ok(Self::point(only));
        }
        require_usable(row)?;
        if sampling.is_greedy() {
            let likeliest = Penalised::new(row, penalties)?.likeliest();
            if mask.allows(likeliest) {
                return Ok(Self::point(likeliest));
            }
        }
        let legal = Legal::of(row, mask)?.ok_or(Error::NotFinite)?;
        Self::processed(legal.row(), sampling, penalties)
    }

    /// Part of a row that [`Self::processed`] nearly always needs, in addition to the logits of
    /// tokens with penalties.
    pub fn logit_subset(sampling: &Sampling) -> LogitSubset {
        filter::logit_subset(sampling)
    }

    /// Tokens with positive probability, ascending, and their probabilities.
    pub fn entries(&self) -> Cow<'_, [(TokenId, f64)]> {
        match &self.form {
            Form::List(entries) => Cow::Borrowed(entries),
            Form::Dense(dense) => Cow::Owned(dense.iter().collect()),
        }
    }

    /// The token of a point mass.
    pub fn only(&self) -> Option<TokenId> {
        match &self.form {
            Form::List(entries) => match entries[..] {
                [(token, _)] => Some(token),
                _ => None,
            },
            Form::Dense(_) => None,
        }
    }

    /// Token at which the running sum of probabilities passes `uniform` (0..1).
    pub fn token_at(&self, uniform: f64) -> TokenId {
        let entries = match &self.form {
            Form::List(entries) => entries,
            Form::Dense(dense) => return dense.token_at(uniform),
        };
        let mut left = uniform;
        let mut last = 0;
        for &(token, probability) in entries {
            last = token;
            left -= probability;
            if left < 0.0 {
                break;
            }
        }
        last
    }

    /// Calls `each` with every token of positive probability, ascending, and its probability.
    pub fn for_each(&self, mut each: impl FnMut(TokenId, f64)) {
        match &self.form {
            Form::List(entries) => entries.iter().for_each(|&(token, p)| each(token, p)),
            Form::Dense(dense) => dense.iter().for_each(|(token, p)| each(token, p)),
        }
    }

    /// Probability of `token`; 0 if it is not in the distribution.
    pub fn probability(&self, token: TokenId) -> f64 {
        match &self.form {
            Form::List(entries) => {
                let found = entries.binary_search_by_key(&token, |&(token, _)| token);
                found.map_or(0.0, |index| entries[index].1)
            }
            Form::Dense(dense) => dense.probability(token),
        }
    }

    /// norm((scale self - other)+), the residual distribution after a rejection (Leviathan et al.
    /// 2023; scaled: Sun et al. 2024); `None` if nothing is left.
    pub fn residual(&self, scale: f64, other: &Self) -> Option<Self> {
        match (&self.form, &other.form) {
            (Form::List(entries), _) => Self::from_weights(beyond(entries, scale, other)),
            (Form::Dense(p), Form::Dense(q)) => Self::from_buffer(p.beyond(scale, q), |_, _| ()),
            (Form::Dense(p), Form::List(q)) => {
                Self::from_buffer(p.beyond_entries(scale, q.iter().copied()), |_, _| ())
            }
        }
    }

    /// Sum of (scale self - other)+.
    pub fn excess(&self, scale: f64, other: &Self) -> f64 {
        match (&self.form, &other.form) {
            (Form::List(entries), _) => {
                beyond(entries, scale, other).map(|(_, weight)| weight.max(0.0)).sum()
            }
            (Form::Dense(p), Form::Dense(q)) => p.excess(scale, q),
            (Form::Dense(p), Form::List(q)) => p.excess_over(scale, q.iter().copied()),
        }
    }

    /// Distribution without `token`, normalized; `None` if nothing is left.
    pub fn without(&self, token: TokenId) -> Option<Self> {
        match &self.form {
            Form::List(entries) => {
                Self::from_weights(entries.iter().copied().filter(|&(other, _)| other != token))
            }
            Form::Dense(dense) => Self::from_buffer(dense.without(token), |_, _| ()),
        }
    }

    /// Largest probability.
    pub fn largest(&self) -> f64 {
        match &self.form {
            Form::List(entries) => entries.iter().map(|&(_, probability)| probability).fold(0.0, f64::max),
            Form::Dense(dense) => dense.largest(),
        }
    }
}

impl PartialEq for Distribution {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

/// scale p - q, for the entries of p.
fn beyond(
    entries: &[(TokenId, f64)],
    scale: f64,
    other: &Distribution,
) -> impl Iterator<Item = (TokenId, f64)> {
    let mut others = match &other.form {
        Form::List(entries) => &entries[..],
        Form::Dense(_) => &[],
    }
    .iter()
    .peekable();
    entries.iter().map(move |&(token, p)| {
        let q = match &other.form {
            // Both ascend, so one pass over each is enough.
            Form::List(_) => {
                while others.next_if(|&&(other, _)| other < token).is_some() {}
                others.peek().filter(|&&&(other, _)| other == token).map_or(0.0, |&&(_, q)| q)
            }
            Form::Dense(dense) => dense.probability(token),
        };
        (token, scale * p - q)
    })
}

/// Rejects a row from which no token can be chosen.
///
/// # Errors
/// `Error::NotFinite`.
pub(crate) fn require_usable(row: Row<'_>) -> Result<()> {
    if row.is_usable() { Ok(()) } else { Err(Error::NotFinite) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::collections::{HashMap, HashSet};

    use super::filter::descending;
    use super::*;
    use crate::penalties::Penalties;

    fn processed(logits: &[f32], change: impl FnOnce(&mut Sampling)) -> Vec<(TokenId, f64)> {
        let mut sampling = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
        change(&mut sampling);
        let penalties = Penalties::new(&sampling).at(&[0]);
        Distribution::processed(Row::of(logits), &sampling, &penalties).unwrap().entries().into_owned()
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
        Distribution::from_weights(sorted).unwrap().entries().into_owned()
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
            let found = Distribution::processed(Row::of(&logits), &sampling, &[]).unwrap().entries().into_owned();
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
    fn filters_of_a_flat_row_keep_what_a_full_sort_keeps() {
        let logits: Vec<f32> = (0..20_000).map(|i| ((i * 7919) % 15_013) as f32 / 1500.0).collect();
        for (temperature, top_p, min_p) in
            [(1.0, 0.95, 0.0), (2.0, 0.95, 0.0), (2.0, 0.995, 0.1), (3.0, 0.5, 0.02), (1.5, 1.0, 0.01)]
        {
            let sampling = Sampling { temperature, top_p, min_p, ..Sampling::default() };
            let found = Distribution::processed(Row::of(&logits), &sampling, &[]).unwrap();
            assert!(matches!(found.form, Form::Dense(_)), "the case must not be a list");
            let (found, expected) = (found.entries(), by_definition(&logits, &sampling));
            // The sum over all tokens has six digits.
            assert!(found.len().abs_diff(expected.len()) <= 2, "{} is not {}", found.len(), expected.len());
            let kept: HashMap<TokenId, f64> = found.iter().copied().collect();
            for (token, p) in expected {
                assert!(kept.get(&token).is_none_or(|found| (found / p - 1.0).abs() < 1e-3), "{token}");
            }
        }
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
