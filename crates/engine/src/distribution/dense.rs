//! Distribution over most tokens of a vocabulary: a weight for every token, by its id. Sums are
//! made block by block, in a fixed order that compilers can vectorise.

use std::sync::Arc;

use foretoken_model::token::TokenId;

use super::buffers::Buffer;

/// Weights per block.
const BLOCK: usize = 1024;

/// Weights that are added side by side.
const LANES: usize = 8;

/// Share of the sum that tokens beside the likeliest have at least, unless they are counted.
const CERTAIN: f64 = 1e-9;

/// See the module.
#[derive(Debug, Clone)]
pub struct Dense(Arc<Weights>);

#[derive(Debug)]
struct Weights {
    weights: Buffer,  // [vocabulary]
    blocks: Vec<f64>, // sums of blocks
    sum: f64,
    largest: f64,
}

impl Dense {
    /// Distribution in proportion to `weights`; the only token with a positive weight if there is
    /// just one, and `None` if there is none. `prepare` may change each block before it is added;
    /// its first argument is the block's first token.
    pub fn new(
        mut weights: Buffer,
        mut prepare: impl FnMut(usize, &mut [f64]),
    ) -> Option<Result<Self, TokenId>> {
        let mut likeliest = 0.0f64;
        let mut blocks = Vec::with_capacity(weights.len().div_ceil(BLOCK));
        for (index, block) in weights.chunks_mut(BLOCK).enumerate() {
            prepare(index * BLOCK, block);
            likeliest = likeliest.max(largest(block));
            blocks.push(sum(block));
        }
        let largest = likeliest;
        let sum: f64 = blocks.iter().sum();
        if sum <= 0.0 {
            return None;
        }
        if sum - largest < CERTAIN * sum {
            let mut positive = (0..).zip(weights.iter()).filter(|&(_, &weight)| weight > 0.0);
            if let (Some((token, _)), None) = (positive.next(), positive.next()) {
                return Some(Err(token));
            }
        }
        Some(Ok(Self(Arc::new(Weights { weights, blocks, sum, largest }))))
    }

    pub fn probability(&self, token: TokenId) -> f64 {
        self.0.weights.get(token as usize).map_or(0.0, |weight| weight / self.0.sum)
    }

    pub fn largest(&self) -> f64 {
        self.0.largest / self.0.sum
    }

    /// Tokens with positive probability, ascending, and their probabilities.
    pub fn iter(&self) -> impl Iterator<Item = (TokenId, f64)> {
        let scale = 1.0 / self.0.sum;
        let weights = (0..).zip(self.0.weights.iter());
        weights.filter(|&(_, &weight)| weight > 0.0).map(move |(token, weight)| (token, weight * scale))
    }

    /// Token at which the running sum of probabilities passes `uniform` (0..1).
    pub fn token_at(&self, uniform: f64) -> TokenId {
        let Weights { weights, blocks, sum, .. } = &*self.0;
        let mut left = uniform * sum;
        let mut found = 0;
        for (block, &sum) in blocks.iter().enumerate().filter(|&(_, &sum)| sum > 0.0) {
            found = block;
            if left < sum {
                break;
            }
            left -= sum;
        }
        let mut last = 0;
        let start = found * BLOCK;
        for (token, &weight) in (start..).zip(weights[start..].iter().take(BLOCK)) {
            if weight > 0.0 {
                last = token;
                left -= weight;
                if left < 0.0 {
                    break;
                }
            }
        }
        last as TokenId
    }

    /// Sum of (scale self - other)+.
    pub fn excess(&self, scale: f64, other: &Self) -> f64 {
        let (p, q) = (&*self.0, &*other.0);
        let (scale, less) = (scale / p.sum, 1.0 / q.sum);
        let common = p.weights.len().min(q.weights.len());
        let (ours, rest) = p.weights.split_at(common);
        let blocks = ours.chunks(BLOCK).zip(q.weights[..common].chunks(BLOCK));
        blocks.map(|(p, q)| excess(p, q, scale, less)).sum::<f64>()
            + rest.chunks(BLOCK).map(|block| scale * sum(block)).sum::<f64>()
    }

    /// Sum of (scale self - other)+, for the tokens and probabilities of another distribution.
    pub fn excess_over(&self, scale: f64, other: impl Iterator<Item = (TokenId, f64)>) -> f64 {
        let (mut covered, mut left) = (0.0, 0.0);
        for (token, q) in other {
            let p = self.probability(token);
            covered += p;
            left += (scale * p - q).max(0.0);
        }
        scale * (1.0 - covered).max(0.0) + left
    }

    /// Weights of (scale self - other)+.
    pub fn beyond(&self, scale: f64, other: &Self) -> Buffer {
        let (p, q) = (&*self.0, &*other.0);
        let (scale, less) = (scale / p.sum, 1.0 / q.sum);
        let mut weights = Buffer::of_length(p.weights.len());
        let common = p.weights.len().min(q.weights.len());
        let (ours, rest) = weights.split_at_mut(common);
        for ((weight, p), q) in ours.iter_mut().zip(p.weights.iter()).zip(q.weights.iter()) {
            *weight = positive(scale * p - less * q);
        }
        rest.iter_mut().zip(&p.weights[common..]).for_each(|(weight, p)| *weight = scale * p);
        weights
    }

    /// Weights of (scale self - other)+, for the tokens and probabilities of another distribution.
    pub fn beyond_entries(&self, scale: f64, other: impl Iterator<Item = (TokenId, f64)>) -> Buffer {
        let mut weights = Buffer::of_length(self.0.weights.len());
        let factor = scale / self.0.sum;
        weights.iter_mut().zip(self.0.weights.iter()).for_each(|(weight, p)| *weight = factor * p);
        for (token, q) in other {
            if let Some(weight) = weights.get_mut(token as usize) {
                *weight = positive(scale * self.probability(token) - q);
            }
        }
        weights
    }

    /// Weights without the one of `token`.
    pub fn without(&self, token: TokenId) -> Buffer {
        let mut weights = Buffer::of_length(self.0.weights.len());
        weights.copy_from_slice(&self.0.weights);
        if let Some(weight) = weights.get_mut(token as usize) {
            *weight = 0.0;
        }
        weights
    }
}

/// Positive part of a difference. The form lets compilers vectorise it.
#[inline]
fn positive(difference: f64) -> f64 {
    if difference > 0.0 { difference } else { 0.0 }
}

/// Sum of a block: lanes side by side, then one after the other.
fn sum(block: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = block.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, weight) in lanes.iter_mut().zip(chunk) {
            *lane += weight;
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

fn largest(block: &[f64]) -> f64 {
    let mut lanes = [0.0f64; LANES];
    let (chunks, rest) = block.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &weight) in lanes.iter_mut().zip(chunk) {
            *lane = if weight > *lane { weight } else { *lane };
        }
    }
    lanes.iter().chain(rest).copied().fold(0.0, f64::max)
}

/// Sum of (scale p - less q)+ over a block.
fn excess(p: &[f64], q: &[f64], scale: f64, less: f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let ((ps, p_rest), (qs, q_rest)) = (p.as_chunks::<LANES>(), q.as_chunks::<LANES>());
    for (p, q) in ps.iter().zip(qs) {
        for ((lane, p), q) in lanes.iter_mut().zip(p).zip(q) {
            *lane += positive(scale * p - less * q);
        }
    }
    let rest = p_rest.iter().zip(q_rest).map(|(p, q)| positive(scale * p - less * q));
    lanes.iter().sum::<f64>() + rest.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::distribution::{Buffer, Distribution, Form};

    fn dense(weights: &[f64]) -> Distribution {
        let mut buffer = Buffer::of_length(weights.len());
        buffer.copy_from_slice(weights);
        Distribution::from_buffer(buffer, |_, _| ()).unwrap()
    }

    fn list(weights: &[f64]) -> Distribution {
        Distribution::from_weights((0..).zip(weights.iter().copied())).unwrap()
    }

    /// Weights of which at least one is positive, beyond a block at times.
    fn weights() -> impl Strategy<Value = Vec<f64>> {
        let weight = || prop_oneof![2 => 0f64..1.0, 1 => Just(0.0), 1 => Just(0.5)];
        let length = prop_oneof![1usize..40, 1000usize..3100];
        (length.prop_flat_map(move |length| prop::collection::vec(weight(), length)), 0usize..3100).prop_map(
            |(mut weights, at)| {
                let at = at % weights.len();
                weights[at] = 0.7;
                weights
            },
        )
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-12
    }

    fn equal(left: Option<&Distribution>, right: Option<&Distribution>) -> bool {
        match (left, right) {
            (Some(left), Some(right)) => {
                let (left, right) = (left.entries(), right.entries());
                // Where both are equal, rounding may leave a residual.
                let differs = |&(token, p): &(u32, f64), in_other: &[(u32, f64)]| {
                    let found = in_other.binary_search_by_key(&token, |entry| entry.0);
                    !close(p, found.map_or(0.0, |index| in_other[index].1))
                };
                !left.iter().any(|entry| differs(entry, &right))
                    && !right.iter().any(|entry| differs(entry, &left))
            }
            (left, right) => left.is_none() && right.is_none(),
        }
    }

    proptest! {
        #[test]
        fn a_dense_distribution_equals_the_list_of_its_tokens(
            p in weights(), q in weights(), scale in 0.1f64..1.0, token in 0u32..40, uniform in 0f64..1.0,
        ) {
            let (ours, theirs) = ([dense(&p), list(&p)], [dense(&q), list(&q)]);
            prop_assert!(equal(Some(&ours[0]), Some(&ours[1])));
            prop_assert!(close(ours[0].largest(), ours[1].largest()));
            prop_assert!(close(ours[0].probability(token), ours[1].probability(token)));
            prop_assert_eq!(ours[0].token_at(uniform), ours[1].token_at(uniform));
            prop_assert!(equal(ours[0].without(token).as_ref(), ours[1].without(token).as_ref()));
            let (excess, residual) = (ours[1].excess(scale, &theirs[1]), ours[1].residual(scale, &theirs[1]));
            for (p, q) in [(0, 0), (0, 1), (1, 0)] {
                prop_assert!(close(ours[p].excess(scale, &theirs[q]), excess));
                if excess > 1e-3 {
                    prop_assert!(equal(ours[p].residual(scale, &theirs[q]).as_ref(), residual.as_ref()));
                }
            }
        }
    }

    #[test]
    fn a_dense_distribution_with_one_token_is_a_point_mass() {
        let mut weights = vec![0.0; 2000];
        weights[1500] = 1e-300;
        assert_eq!(dense(&weights).only(), Some(1500));
        weights[3] = 1.0;
        let both = dense(&weights);
        assert_eq!(both.only(), None);
        assert!(matches!(both.form, Form::Dense(_)));
        assert_eq!(both.without(3).unwrap().only(), Some(1500));
        assert_eq!(both.without(3).unwrap().without(1500), None);
    }
}
