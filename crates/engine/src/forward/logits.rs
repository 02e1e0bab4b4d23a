//! What a pass gives back: scores of every token of the vocabulary, and of each row its peak, which
//! greedy choices and shown probabilities need and which the pass finds on the side.

use super::cpu::sum_exp;
use crate::trace::TokenId;

/// A row for each node asked for; lives until the model's next pass.
#[derive(Debug, Clone, Copy)]
pub struct Logits<'a> {
    values: &'a [f32], // [rows, stride]
    vocabulary: usize,
    stride: usize,
    peaks: &'a [Peak], // [rows]
}

/// Scores of what may follow one node.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    logits: &'a [f32], // [vocabulary]
    peak: Peak,
}

/// A row's likeliest token, and what its softmax is divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    token: TokenId,
    /// The sum of e^(logit - largest logit).
    sum: f32,
}

impl Peak {
    /// From the largest number of each slice of `size` logits and its sum of e^(logit - largest).
    pub(super) fn of_slices(logits: &[f32], slices: &[(f32, f32)], size: usize) -> Self {
        let largest = slices.iter().fold(f32::NEG_INFINITY, |largest, slice| largest.max(slice.0));
        let sum = slices.iter().map(|slice| slice.1 * (slice.0 - largest).exp()).sum();
        let first = slices.iter().position(|slice| slice.0 == largest).unwrap_or(0) * size;
        let found = logits[first..].iter().position(|&logit| logit == largest);
        match found {
            Some(offset) => Self { token: (first + offset) as TokenId, sum },
            // Some are not numbers, and the kernels make nothing of those.
            None => Self::of(logits),
        }
    }

    fn of(logits: &[f32]) -> Self {
        let token = likeliest(logits);
        let largest = logits[token as usize];
        Self { token, sum: logits.iter().map(|logit| (logit - largest).exp()).sum() }
    }
}

impl<'a> Logits<'a> {
    /// Rows of `vocabulary` numbers, `stride` apart.
    pub(super) fn new(values: &'a [f32], vocabulary: usize, stride: usize, peaks: &'a [Peak]) -> Self {
        Self { values, vocabulary, stride, peaks }
    }

    pub fn row(&self, index: usize) -> Row<'a> {
        Row { logits: &self.values[index * self.stride..][..self.vocabulary], peak: self.peaks[index] }
    }
}

impl PartialEq for Logits<'_> {
    fn eq(&self, other: &Self) -> bool {
        let rows = self.peaks.len();
        rows == other.peaks.len() && (0..rows).all(|row| self.row(row).logits == other.row(row).logits)
    }
}

impl<'a> Row<'a> {
    pub fn of(logits: &'a [f32]) -> Self {
        Self { logits, peak: Peak::of(logits) }
    }

    pub(super) fn peak(&self) -> Peak {
        self.peak
    }

    /// `[vocabulary]`
    pub fn logits(&self) -> &'a [f32] {
        self.logits
    }

    /// The token of the highest logit, the first of equals.
    pub fn likeliest(&self) -> TokenId {
        self.peak.token
    }

    /// The tokens of the `count` highest logits, highest first, of equals the lower id first.
    pub fn top(&self, count: usize) -> Vec<TokenId> {
        let mut top = vec![self.likeliest()];
        if count > 1 {
            top = self.best(count);
        }
        top
    }

    fn best(&self, count: usize) -> Vec<TokenId> {
        // Few pass the last of the best so far, so that they can be kept in order.
        let mut best: Vec<(f32, TokenId)> = Vec::with_capacity(count + 1);
        let mut least = f32::NEG_INFINITY;
        for (start, chunk) in (0..).step_by(CHUNK).zip(self.logits.chunks(CHUNK)) {
            if largest(chunk) <= least {
                continue;
            }
            for (token, &logit) in (start..).zip(chunk) {
                if logit > least {
                    let at = best.partition_point(|&(other, _)| other >= logit);
                    best.insert(at, (logit, token));
                    best.truncate(count);
                    if best.len() == count {
                        least = best[count - 1].0;
                    }
                }
            }
        }
        best.into_iter().map(|(_, token)| token).collect()
    }

    /// The tokens whose logits are at least so high, ascending, and their logits.
    pub fn at_least(&self, least: f32) -> impl Iterator<Item = (TokenId, f32)> {
        let chunks = (0..).step_by(CHUNK).zip(self.logits.chunks(CHUNK));
        let chunks = chunks.filter(move |(_, chunk)| largest(chunk) >= least);
        let all = chunks.flat_map(|(start, chunk)| (start..).zip(chunk.iter().copied()));
        all.filter(move |&(_, logit)| logit >= least)
    }

    /// The sum over all tokens of e^(scale (logit - largest)), to six digits.
    pub fn sum_exp(&self, scale: f32) -> f32 {
        let largest = self.logits[self.peak.token as usize];
        if scale == 1.0 { self.peak.sum } else { sum_exp(self.logits, largest, scale) }
    }

    /// The first `vocabulary` tokens alone.
    #[must_use]
    pub fn first(self, vocabulary: usize) -> Self {
        if vocabulary < self.logits.len() { Self::of(&self.logits[..vocabulary]) } else { self }
    }

    /// The model's own probability of `token` (temperature 1, no filter), for display; 0 where the
    /// logits are not numbers.
    pub fn probability(&self, token: TokenId) -> f32 {
        let largest = self.logits[self.peak.token as usize];
        let probability = (self.logits[token as usize] - largest).exp() / self.peak.sum;
        if probability.is_finite() { probability } else { 0.0 }
    }
}

/// Logits that are looked at together, most of which are too small to matter.
const CHUNK: usize = 64;

/// In a way that compilers make vectors of; NaN counts as nothing.
fn largest(chunk: &[f32]) -> f32 {
    chunk.iter().fold(f32::NEG_INFINITY, |largest, &logit| if logit > largest { logit } else { largest })
}

/// The token of the highest logit, the first of equals; NaN counts as lowest.
pub fn likeliest(logits: &[f32]) -> TokenId {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            best = (token, logit);
        }
    }
    best.0 as TokenId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_from_slices_is_the_peak() {
        let logits: Vec<f32> = (0..100).map(|i| ((i * 37) % 61) as f32 / 7.0).collect();
        let slices: Vec<(f32, f32)> = logits
            .chunks(16)
            .map(|slice| {
                let largest = slice.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                (largest, slice.iter().map(|logit| (logit - largest).exp()).sum())
            })
            .collect();
        let (found, expected) = (Peak::of_slices(&logits, &slices, 16), Peak::of(&logits));
        assert_eq!(found.token, expected.token);
        assert!((found.sum / expected.sum - 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_not_a_number_is_never_likeliest() {
        let logits = [f32::NAN, 1.0, 3.0, 3.0];
        assert_eq!(Peak::of_slices(&logits, &[(f32::NAN, f32::NAN)], 4).token, 2);
        assert_eq!(Row::of(&logits).probability(2), 0.0);
    }

    #[test]
    fn the_top_is_in_order_and_the_lower_of_equals_comes_first() {
        let logits = [1.0, 5.0, f32::NAN, 3.0, 5.0, f32::NEG_INFINITY, 3.0];
        assert_eq!(Row::of(&logits).top(4), [1, 4, 3, 6]);
        assert_eq!(Row::of(&logits).top(1), [1]);
        assert_eq!(Row::of(&logits).top(9), [1, 4, 3, 6, 0]);
    }

    #[test]
    fn fewer_tokens_have_their_own_peak() {
        let logits = [1.0, 2.0, 3.0];
        let row = Row::of(&logits).first(2);
        assert_eq!((row.likeliest(), row.logits().len()), (1, 2));
        assert!((row.probability(1) - 1.0 / (1.0 + (-1f32).exp())).abs() < 1e-6);
    }
}
