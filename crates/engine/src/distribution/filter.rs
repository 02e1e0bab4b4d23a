//! Filters that cut the unlikely tail: top-k, top-p and min-p, after the temperature. Ties are
//! broken by token id, so that the cut is the same everywhere.

use std::ops::ControlFlow;

use foretoken_forward::LogitSubset;
use foretoken_model::error::Result;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;

use super::Distribution;
use super::buffers::Buffer;
use crate::penalties::Penalised;

/// Processed distribution of a row at a temperature above 0; NaN logits are left out. `None` if no
/// token is left.
///
/// # Errors
/// Errors of `Row::logits`.
pub fn apply(sampling: &Sampling, row: &Penalised<'_>) -> Result<Option<Distribution>> {
    Filter { sampling, highest: row.largest() }.apply(row)
}

/// See [`Distribution::logit_subset`].
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

/// Order by descending probability, then by token id.
pub(super) fn descending(left: &(TokenId, f64), right: &(TokenId, f64)) -> std::cmp::Ordering {
    right.1.total_cmp(&left.1).then(left.0.cmp(&right.0))
}

/// Tokens and their weights, e^((logit - highest) / temperature).
type Weights = Vec<(TokenId, f64)>;

struct Filter<'a> {
    sampling: &'a Sampling,
    /// Highest logit; its token has weight 1.
    highest: f32,
}

/// Set of tokens that contains all that the filters keep.
enum Candidates {
    /// Few tokens, and the sum of all weights if these are not all.
    List(Weights, Option<f64>),
    /// All tokens, and the sum of their weights if it is known.
    Dense(Option<f64>),
}

/// Largest top-k that is searched without sorting.
const FEW: usize = 128;

/// Maximum number of tokens in a list of candidates.
const LISTED: usize = 4096;

/// Factor by which a list usually grows from one cut to the next.
const GROWTH: usize = 3;

/// Amount by which penalties rarely lower the highest logit further.
const LOWERED: f32 = 2.0;

/// Weights down to which top-p searches first.
const CUTS: [f64; 4] = [1e-4, 1e-5, 1e-6, 1e-8];

/// Number of tokens among which the last one of top-p is found by sorting.
const SORTED: usize = 64;

/// Lowest temperature of a dense distribution. At a lower one, weights that a dense distribution
/// rounds to 0 may matter.
const DENSE_FROM: f32 = 0.1;

/// Share of top-p up to which tokens below the last cut never matter.
const ALWAYS_WITHIN: f64 = 0.99;

/// Buckets of weights in a search for the last token of top-p.
const BUCKETS: usize = 4096;

/// Bits of a weight below those that number its bucket: 64 buckets for each power of two.
const BUCKET_SHIFT: u32 = 46;

/// Leading bits of the likeliest token's weight, 1, whose bucket is the first.
const HIGHEST_BUCKET: u64 = 1f64.to_bits() >> BUCKET_SHIFT;

/// Weights that are compared with the bounds of a bucket side by side.
const LANES: usize = 16;

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
    fn apply(&self, row: &Penalised<'_>) -> Result<Option<Distribution>> {
        match self.candidates(row)? {
            Candidates::List(weights, sum) => Ok(Distribution::from_weights(self.cut_list(weights, sum))),
            Candidates::Dense(sum) => self.dense(row, sum),
        }
    }

    /// Tokens of the list that the filters keep.
    fn cut_list(&self, mut weights: Weights, sum: Option<f64>) -> Weights {
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
        weights
    }

    fn candidates(&self, row: &Penalised<'_>) -> Result<Candidates> {
        let Sampling { temperature, top_k, top_p, .. } = *self.sampling;
        let is_dense = temperature >= DENSE_FROM;
        let share = match Search::of(self.sampling) {
            Search::Top => {
                let mut weights = Vec::new();
                let top = row.top(top_k as usize)?;
                top.into_iter().for_each(|(token, logit)| self.weigh(token, logit, &mut weights));
                return Ok(Candidates::List(weights, None));
            }
            Search::All if is_dense && top_k == 0 => return Ok(Candidates::Dense(None)),
            Search::All => return Ok(Candidates::List(self.all(row)?, None)),
            Search::Above(cut) => {
                return Ok(match self.above(row, cut, LISTED)? {
                    Some(weights) => Candidates::List(weights, None),
                    None if is_dense => Candidates::Dense(None),
                    None => Candidates::List(self.all(row)?, None),
                });
            }
            Search::Share => f64::from(top_p),
        };
        let sum = f64::from(row.sum_exp(1.0 / temperature)?);
        for cut in CUTS {
            let most = if is_dense { LISTED } else { usize::MAX };
            let Some(weights) = self.above(row, cut, most)? else { return Ok(Candidates::Dense(Some(sum))) };
            let held: f64 = weights.iter().map(|&(_, weight)| weight).sum();
            if held >= sum * share {
                return Ok(Candidates::List(weights, Some(sum)));
            }
            if is_dense && weights.len() > LISTED / GROWTH {
                return Ok(Candidates::Dense(Some(sum)));
            }
        }
        Ok(if is_dense { Candidates::Dense(None) } else { Candidates::List(self.all(row)?, None) })
    }

    fn all(&self, row: &Penalised<'_>) -> Result<Weights> {
        Ok(self.above(row, 0.0, usize::MAX)?.unwrap_or_default())
    }

    /// Tokens with at least the weight `cut`; `None` if there are more than `most`.
    fn above(&self, row: &Penalised<'_>, cut: f64, most: usize) -> Result<Option<Weights>> {
        let least = (f64::from(self.highest) - reach(cut, self.sampling.temperature)) as f32;
        let mut logits = Vec::new();
        let found = row.at_least(least, |token, logit| {
            if logits.len() == most {
                return ControlFlow::Break(());
            }
            logits.push((token, logit));
            ControlFlow::Continue(())
        })?;
        if found.is_break() {
            return Ok(None);
        }
        let mut weights = Vec::with_capacity(logits.len());
        logits.into_iter().for_each(|(token, logit)| self.weigh(token, logit, &mut weights));
        Ok(Some(weights))
    }

    fn weigh(&self, token: TokenId, logit: f32, weights: &mut Weights) {
        let scale = 1.0 / f64::from(self.sampling.temperature);
        let weight = ((f64::from(logit) - f64::from(self.highest)) * scale).exp();
        if weight > 0.0 {
            weights.push((token, weight));
        }
    }

    /// Distribution over all tokens that top-p and min-p keep. `sum` is the sum of all weights if
    /// it is known.
    fn dense(&self, row: &Penalised<'_>, sum: Option<f64>) -> Result<Option<Distribution>> {
        let mut weights = Buffer::any();
        row.weights(1.0 / f64::from(self.sampling.temperature), weights.as_vec())?;
        let share = f64::from(self.sampling.top_p);
        let mut last = None;
        if share < 1.0 {
            let all = || weights.iter().sum();
            let sum = sum.filter(|sum| share <= ALWAYS_WITHIN || self.within_cuts(&weights) >= sum * share);
            last = last_of_share(&weights, share * sum.unwrap_or_else(all));
        }
        let (last, least) = last.unwrap_or((TokenId::MAX, 0.0));
        let ties = last as usize + 1;
        let min_p = f64::from(self.sampling.min_p);
        Ok(Distribution::from_buffer(weights, |start, block| {
            // Of the tokens with the least weight, those up to the last are kept.
            let (kept, cut) = block.split_at_mut(ties.saturating_sub(start).min(block.len()));
            kept.iter_mut().for_each(|weight| *weight = keep(*weight, *weight >= least));
            cut.iter_mut().for_each(|weight| *weight = keep(*weight, *weight > least));
            if min_p > 0.0 {
                block.iter_mut().for_each(|weight| *weight = keep(*weight, *weight >= min_p));
            }
        }))
    }

    /// Sum of the weights down to the last of the cuts.
    fn within_cuts(&self, weights: &[f64]) -> f64 {
        let [.., last] = CUTS;
        weights.iter().map(|&weight| keep(weight, weight >= last)).sum()
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
        if let Some(last) = last_in_order(rest, held, share) {
            weights.retain(|weight| descending(weight, &last).is_le());
        }
    }
}

/// The weight if it is kept, or 0. The form lets compilers vectorise it.
fn keep(weight: f64, is_kept: bool) -> f64 {
    if is_kept { weight } else { 0.0 }
}

/// The last of the likeliest tokens that hold `share`, and its weight; `None` if all are needed.
/// Sums the weights by buckets of their size and sorts a single bucket.
fn last_of_share(weights: &[f64], share: f64) -> Option<(TokenId, f64)> {
    let bucket = |weight: f64| {
        let below = HIGHEST_BUCKET.saturating_sub(weight.to_bits() >> BUCKET_SHIFT);
        (below as usize).min(BUCKETS - 1)
    };
    let mut sums = [0.0; BUCKETS];
    for &weight in weights {
        sums[bucket(weight)] += weight;
    }
    let mut held = 0.0;
    let found = sums.iter().position(|sum| {
        let reached = held + sum >= share;
        if !reached {
            held += sum;
        }
        reached
    })?;
    last_in_order(&mut members(weights, found), held, share)
}

/// Sorts tokens that follow others with the sum `held`, and returns the one with which the sum
/// reaches `share`.
fn last_in_order(tokens: &mut [(TokenId, f64)], mut held: f64, share: f64) -> Option<(TokenId, f64)> {
    tokens.sort_unstable_by(descending);
    let last = tokens.iter().find(|&&(_, weight)| {
        held += weight;
        held >= share
    });
    // Sums in another order may differ in the last bit, so that none reaches the share.
    last.or(tokens.last()).copied()
}

/// Tokens whose weight is in this bucket, ascending.
fn members(weights: &[f64], bucket: usize) -> Weights {
    let bound = |bucket: usize| f64::from_bits((HIGHEST_BUCKET - bucket as u64) << BUCKET_SHIFT);
    let low = if bucket + 1 == BUCKETS { f64::MIN_POSITIVE } else { bound(bucket) };
    let high = if bucket == 0 { f64::INFINITY } else { bound(bucket - 1) };
    let is_member = |weight: f64| (weight >= low) & (weight < high);
    let mut members = Vec::new();
    for (start, chunk) in (0..).step_by(LANES).zip(weights.chunks(LANES)) {
        if chunk.iter().fold(false, |any, &weight| any | is_member(weight)) {
            let found = (start..).zip(chunk).filter(|&(_, &weight)| is_member(weight));
            members.extend(found.map(|(token, &weight)| (token, weight)));
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_last_token_of_a_share_is_that_of_a_full_sort(
            // Few distinct weights, so that there are ties.
            weights in prop::collection::vec((0u32..90).prop_map(|n| (-f64::from(n) / 3.0).exp()), 1..600),
            share in 1e-6f64..0.9999,
        ) {
            let share = share * weights.iter().sum::<f64>();
            let mut sorted: Weights = (0..).zip(weights.iter().copied()).collect();
            sorted.sort_by(descending);
            let mut held = 0.0;
            let expected = sorted.iter().find(|&&(_, weight)| {
                held += weight;
                held >= share
            });
            prop_assert_eq!(last_of_share(&weights, share), expected.copied());
        }
    }
}
