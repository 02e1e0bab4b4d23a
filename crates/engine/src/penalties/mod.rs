//! Repetition penalties: the penalised tokens at a position of a text, and their amounts.
//! `penalised` applies them to logits, `repeats` finds repeated sequences, `tokens` lists exempt
//! tokens.
//!
//! Penalties depend only on the text up to the position, so that drafts stay exact: each node of a
//! tree has its own path and penalties.

mod penalised;
mod repeats;
mod tokens;
mod window;

use std::sync::Arc;

pub use self::penalised::Penalised;
use self::repeats::Repeats;
pub use self::tokens::PenaltyTokens;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;

use self::window::Window;
use crate::context::{After, Context, Mark};

/// Penalties of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalty {
    pub token: TokenId,
    /// Factor that divides a positive logit and multiplies a negative one (Keskar et al. 2019).
    pub factor: f32,
    /// Amount that is subtracted afterwards: DRY's penalty.
    pub less: f32,
}

impl Penalty {
    /// Applies the penalties to a logit.
    pub fn apply(&self, logit: f32) -> f32 {
        let divided = if logit > 0.0 { logit / self.factor } else { logit * self.factor };
        (divided - self.less).max(f32::MIN)
    }
}

/// Penalties by ascending token.
pub type PenaltyList = Vec<Penalty>;

/// Penalties of a reply. They follow a growing text, so that the cost of a position at its end does
/// not depend on its length.
#[derive(Debug, Default)]
pub struct Penalties {
    tokens: Arc<PenaltyTokens>,
    /// Repetition penalty; 1 is off.
    repetition: f32,
    /// Tokens in the range of the repetition penalty.
    window: Option<Window>,
    repeats: Option<Repeats>,
    /// Number of processed tokens of the text.
    read: usize,
    mark: Mark,
}

impl Penalties {
    /// Creates penalties without exempt tokens.
    pub fn new(sampling: &Sampling) -> Self {
        Self::with_tokens(sampling, Arc::default())
    }

    pub fn with_tokens(sampling: &Sampling, tokens: Arc<PenaltyTokens>) -> Self {
        let repetition = sampling.repetition_penalty;
        let reach = |last_n: i32| usize::try_from(last_n).unwrap_or(usize::MAX);
        let window = sampling.penalises_tokens().then(|| Window::new(reach(sampling.repeat_last_n)));
        let repeats = sampling.penalises_sequences().then(|| Repeats::new(sampling));
        Self { tokens, repetition, window, repeats, read: 0, mark: Mark::default() }
    }

    /// Returns true if no logit is ever changed.
    pub fn is_off(&self) -> bool {
        self.window.is_none() && self.repeats.is_none()
    }

    /// Processes the new tokens of `context`, after which [`Self::at`] takes constant time.
    pub fn follow(&mut self, context: &Context) {
        if self.is_off() {
            return;
        }
        if context.unchanged_since(self.mark) < self.read {
            self.window.iter_mut().for_each(Window::clear);
            self.repeats.iter_mut().for_each(Repeats::clear);
            self.read = 0;
        }
        for end in self.read + 1..=context.len() {
            self.window.iter_mut().for_each(|window| window.push(&context[..end]));
            self.repeats.iter_mut().for_each(|repeats| repeats.push(&context[..end]));
        }
        (self.read, self.mark) = (context.len(), context.mark());
    }

    /// Penalties at `after`. Its text must begin with the one that was [followed](Self::follow);
    /// further tokens are searched one by one.
    pub fn at<'a>(&self, after: impl Into<After<'a>>) -> PenaltyList {
        let after = after.into();
        let mut list: PenaltyList = Vec::new();
        if let Some(window) = &self.window {
            let tokens = window.tokens(after, self.read).into_iter();
            let tokens = tokens.filter(|&token| !self.tokens.is_exempt(token));
            list.extend(tokens.map(|token| Penalty { token, factor: self.repetition, less: 0.0 }));
        }
        for (token, less) in self.dry(after) {
            match list.binary_search_by_key(&token, |penalty| penalty.token) {
                Ok(found) => list[found].less = less,
                Err(index) => list.insert(index, Penalty { token, factor: 1.0, less }),
            }
        }
        list
    }

    /// Tokens with a penalty after `context` or after one of the `paths` of guesses, ascending.
    /// Each guess has a path that ends with it.
    pub fn tokens(&self, context: &[TokenId], paths: impl Iterator<Item = Vec<TokenId>>) -> Vec<TokenId> {
        if self.is_off() {
            return Vec::new();
        }
        let mut tokens: Vec<TokenId> = self.at(context).iter().map(|penalty| penalty.token).collect();
        for path in paths {
            let dry = self.dry(After { text: context, guesses: &path }).into_iter();
            let drafted = self.window.as_ref().and(path.last().copied());
            tokens.extend(dry.map(|(token, _)| token).chain(drafted));
        }
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// Tokens that would continue a repeated sequence, and their DRY penalties.
    pub fn dry<'a>(&self, after: impl Into<After<'a>>) -> Vec<(TokenId, f32)> {
        let Some(repeats) = &self.repeats else { return Vec::new() };
        let mut found = repeats.at(after.into(), self.read, &self.tokens);
        found.retain(|&(token, _)| !self.tokens.is_exempt(token) && !self.tokens.is_breaker(token));
        found
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dry(allowed: u32, reach: i32) -> Sampling {
        Sampling {
            dry_multiplier: 0.8,
            dry_base: 1.75,
            dry_allowed_length: allowed,
            dry_penalty_last_n: reach,
            ..Sampling::greedy()
        }
    }

    /// Reference by definition: for each earlier occurrence of the end of the text, the next token
    /// and the sequence's length.
    fn by_definition(text: &[TokenId], sampling: &Sampling) -> Vec<(TokenId, f32)> {
        let reach = usize::try_from(sampling.dry_penalty_last_n).unwrap_or(usize::MAX);
        let text = &text[text.len().saturating_sub(reach)..];
        let mut longest = std::collections::BTreeMap::new();
        for end in 1..text.len() {
            let common = text[..end].iter().rev().zip(text.iter().rev());
            let length = common.take_while(|(left, right)| left == right).count() as u32;
            if length >= sampling.dry_allowed_length {
                let entry = longest.entry(text[end]).or_insert(0);
                *entry = length.max(*entry);
            }
        }
        let penalty = |length: u32| {
            sampling.dry_multiplier * sampling.dry_base.powi((length - sampling.dry_allowed_length) as i32)
        };
        longest.into_iter().map(|(token, length)| (token, penalty(length))).collect()
    }

    #[test]
    fn a_token_that_continues_a_repeated_sequence_is_penalised_by_its_length() {
        let penalties = Penalties::new(&dry(2, -1));
        assert_eq!(penalties.dry(&[1, 2, 3, 4, 1, 2]), [(3, 0.8)]);
        assert_eq!(penalties.dry(&[1, 2, 3, 4, 1, 2, 3]), [(4, 0.8 * 1.75)]);
        assert_eq!(penalties.dry(&[1, 2, 3, 4, 1]), []);
        assert_eq!(Penalties::new(&dry(2, 5)).dry(&[1, 2, 3, 4, 1, 2]), [], "out of reach");
    }

    #[test]
    fn sequences_end_at_breakers_and_at_a_templates_markers() {
        let tokens = Arc::new(PenaltyTokens::of_ids(&[9], &[7]));
        let penalties = Penalties::with_tokens(&dry(2, -1), tokens);
        assert_eq!(penalties.dry(&[1, 2, 3, 9, 1, 2]), [(3, 0.8)]);
        assert_eq!(penalties.dry(&[1, 9, 3, 4, 1, 9]), [], "a marker begins a new sequence");
        assert_eq!(penalties.dry(&[1, 7, 3, 4, 1, 7]), [], "a breaker does");
        assert_eq!(penalties.dry(&[1, 2, 9, 4, 1, 2]), [], "a marker has no penalty");
        assert_eq!(penalties.dry(&[1, 2, 7, 4, 1, 2]), [], "a breaker has none");
    }

    #[test]
    fn the_repetition_penalty_covers_the_last_tokens_except_markers() {
        let tokens = Arc::new(PenaltyTokens::of_ids(&[9], &[]));
        let sampling = Sampling { repetition_penalty: 1.5, repeat_last_n: 3, ..Sampling::greedy() };
        let of = |text: &[TokenId]| -> Vec<TokenId> {
            let penalties = Penalties::with_tokens(&sampling, Arc::clone(&tokens));
            penalties.at(text).iter().map(|penalty| penalty.token).collect()
        };
        assert_eq!(of(&[5, 4, 3, 3, 9]), [3]);
        assert_eq!(of(&[5, 4, 9, 3]), [3, 4]);
        let off = Sampling { repeat_last_n: 0, ..sampling.clone() };
        assert!(Penalties::new(&off).is_off());
    }

    proptest! {
        #[test]
        fn incremental_penalties_equal_those_of_a_full_search(
            steps in prop::collection::vec((prop::collection::vec(0u32..3, 0..12), 0usize..4), 1..12),
            guesses in prop::collection::vec(0u32..3, 0..6),
            allowed in 1u32..6,
            reach in prop_oneof![Just(-1i32), 1i32..40],
            window in prop_oneof![Just(-1i32), 1i32..20],
        ) {
            let sampling = Sampling { repetition_penalty: 1.2, repeat_last_n: window, ..dry(allowed, reach) };
            let mut penalties = Penalties::new(&sampling);
            let mut context = Context::new(vec![1]);
            for (tokens, cut) in steps {
                context.truncate(context.len().saturating_sub(cut).max(1));
                context.extend(tokens);
                penalties.follow(&context);
                let after = After { text: &context, guesses: &guesses };
                let whole = [&context[..], &guesses[..]].concat();
                prop_assert_eq!(&penalties.at(after), &Penalties::new(&sampling).at(&whole));
                let found = penalties.dry(after);
                let expected = by_definition(&whole, &sampling);
                prop_assert_eq!(found.len(), expected.len(), "{:?}, {:?}", &found, &expected);
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert_eq!(found.0, expected.0);
                    prop_assert!((found.1 / expected.1 - 1.0).abs() < 1e-4 || expected.1.is_infinite());
                }
            }
        }
    }
}
