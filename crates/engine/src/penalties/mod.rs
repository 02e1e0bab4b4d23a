//! Penalties and biases: the tokens whose logits are changed at a position of a text, and by how
//! much. `penalised` applies them to logits, `window` has the latest tokens, `counts` those of the
//! reply, `repeats` finds repeated sequences, `tokens` lists exempt tokens.
//!
//! Penalties depend only on the text up to the position, so that drafts stay exact: each node of a
//! tree has its own path and penalties.

mod counts;
mod penalised;
mod repeats;
mod tokens;
mod window;

use std::sync::Arc;

use self::counts::Counts;
pub use self::penalised::Penalised;
use self::repeats::Repeats;
pub use self::tokens::PenaltyTokens;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::{TokenId, is_media};

use self::window::Window;
use crate::context::{After, Context, Mark};

/// Penalties of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalty {
    pub token: TokenId,
    /// Amount that is added first.
    pub bias: f32,
    /// Factor that divides a positive logit and multiplies a negative one (Keskar et al. 2019).
    pub factor: f32,
    /// Amount that is subtracted afterwards: the penalties of DRY, presence and frequency.
    pub less: f32,
}

impl Penalty {
    /// Changes nothing yet.
    fn none(token: TokenId) -> Self {
        Self { token, bias: 0.0, factor: 1.0, less: 0.0 }
    }

    /// Applies the penalties to a logit.
    pub fn apply(&self, logit: f32) -> f32 {
        let logit = logit + self.bias;
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
    /// Biases by ascending token.
    bias: Vec<(TokenId, f32)>,
    /// Repetition penalty; 1 is off.
    repetition: f32,
    /// Penalty of a token that occurs in the reply, and for each time that it does.
    presence: f32,
    frequency: f32,
    /// Tokens in the range of the repetition penalty.
    window: Option<Window>,
    repeats: Option<Repeats>,
    /// Tokens of the reply.
    counts: Option<Counts>,
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
        let Sampling { repetition_penalty, presence_penalty, frequency_penalty, .. } = *sampling;
        let reach = |last_n: i32| usize::try_from(last_n).unwrap_or(usize::MAX);
        let window = sampling.penalises_tokens().then(|| Window::new(reach(sampling.repeat_last_n)));
        let repeats = sampling.penalises_sequences().then(|| Repeats::new(sampling));
        let mut bias = sampling.logit_bias.clone();
        bias.sort_unstable_by_key(|&(token, _)| token);
        Self {
            tokens,
            bias,
            repetition: repetition_penalty,
            presence: presence_penalty,
            frequency: frequency_penalty,
            window,
            repeats,
            counts: sampling.penalises_counts().then(|| Counts::new(0)),
            read: 0,
            mark: Mark::default(),
        }
    }

    /// Leaves the first `prompt` tokens out of those that presence and frequency penalise.
    #[must_use]
    pub fn after_prompt(self, prompt: usize) -> Self {
        Self { counts: self.counts.map(|_| Counts::new(prompt)), ..self }
    }

    /// Returns true if no logit is ever changed.
    pub fn is_off(&self) -> bool {
        self.window.is_none() && self.repeats.is_none() && self.counts.is_none() && self.bias.is_empty()
    }

    /// Processes the new tokens of `context`, after which [`Self::at`] takes constant time.
    pub fn follow(&mut self, context: &Context) {
        if self.is_off() {
            return;
        }
        if context.unchanged_since(self.mark) < self.read {
            self.window.iter_mut().for_each(Window::clear);
            self.repeats.iter_mut().for_each(Repeats::clear);
            self.counts.iter_mut().for_each(Counts::clear);
            self.read = 0;
        }
        for end in self.read + 1..=context.len() {
            self.window.iter_mut().for_each(|window| window.push(&context[..end]));
            self.repeats.iter_mut().for_each(|repeats| repeats.push(&context[..end]));
            self.counts.iter_mut().for_each(|counts| counts.push(&context[..end]));
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
            let tokens = tokens.filter(|&token| !self.tokens.is_exempt(token) && !is_media(token));
            list.extend(tokens.map(|token| Penalty { factor: self.repetition, ..Penalty::none(token) }));
        }
        for (token, less) in self.dry(after) {
            of(&mut list, token).less = less;
        }
        for (token, count) in self.counts.iter().flat_map(|counts| counts.at(after, self.read)) {
            if !self.tokens.is_exempt(token) {
                of(&mut list, token).less += self.presence + self.frequency * count as f32;
            }
        }
        for &(token, bias) in &self.bias {
            of(&mut list, token).bias = bias;
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
            let counts_guesses = self.window.is_some() || self.counts.is_some();
            let drafted = path.last().copied().filter(|_| counts_guesses);
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
        let is_free =
            |token| self.tokens.is_exempt(token) || self.tokens.is_breaker(token) || is_media(token);
        found.retain(|&(token, _)| !is_free(token));
        found
    }
}

/// The penalty of a token in a list, added where it is missing.
fn of(list: &mut PenaltyList, token: TokenId) -> &mut Penalty {
    let found = list.binary_search_by_key(&token, |penalty| penalty.token);
    let index = found.unwrap_or_else(|index| {
        list.insert(index, Penalty::none(token));
        index
    });
    &mut list[index]
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

    #[test]
    fn presence_and_frequency_penalise_tokens_of_the_reply_along_its_path() {
        let sampling = Sampling { presence_penalty: 0.5, frequency_penalty: 0.25, ..Sampling::greedy() };
        let mut penalties =
            Penalties::with_tokens(&sampling, Arc::new(PenaltyTokens::of_ids(&[9], &[]))).after_prompt(2);
        let mut context = Context::new(vec![5, 6, 7, 7, 9]);
        penalties.follow(&context);
        let less = |penalties: &Penalties, after: After<'_>| -> Vec<(TokenId, f32)> {
            penalties.at(after).iter().map(|penalty| (penalty.token, penalty.less)).collect()
        };
        let after = |guesses| After { text: &[5, 6, 7, 7, 9], guesses };
        assert_eq!(less(&penalties, after(&[])), [(7, 1.0)], "neither the prompt nor a marker");
        assert_eq!(less(&penalties, after(&[5, 7])), [(5, 0.75), (7, 1.25)]);
        assert_eq!(penalties.tokens(after(&[]).text, [vec![5]].into_iter()), [5, 7]);
        context.truncate(3);
        penalties.follow(&context);
        assert_eq!(less(&penalties, (&context[..]).into()), [(7, 0.75)]);
        let negative = Sampling { presence_penalty: -2.0, ..Sampling::greedy() };
        assert_eq!(less(&Penalties::new(&negative), (&[3u32][..]).into()), [(3, -2.0)]);
    }

    #[test]
    fn a_bias_is_added_before_the_other_penalties() {
        let sampling = Sampling {
            repetition_penalty: 2.0,
            logit_bias: vec![(4, 3.0), (3, -100.0)],
            ..Sampling::greedy()
        };
        let penalties = Penalties::new(&sampling);
        let list = penalties.at(&[4]);
        assert_eq!(list.iter().map(|penalty| penalty.token).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(list.iter().map(|penalty| penalty.apply(1.0)).collect::<Vec<_>>(), [-99.0, 2.0]);
        assert_eq!(penalties.tokens(&[1], [].into_iter()), [1, 3, 4]);
    }

    proptest! {
        #[test]
        fn incremental_penalties_equal_those_of_a_full_search(
            steps in prop::collection::vec((prop::collection::vec(0u32..3, 0..12), 0usize..4), 1..12),
            guesses in prop::collection::vec(0u32..3, 0..6),
            allowed in 1u32..6,
            reach in prop_oneof![Just(-1i32), 1i32..40],
            window in prop_oneof![Just(-1i32), 1i32..20],
            prompt in 0usize..2,
        ) {
            let (presence_penalty, frequency_penalty) = (0.5, 0.25);
            let repeats = Sampling { repetition_penalty: 1.2, repeat_last_n: window, ..dry(allowed, reach) };
            let sampling = Sampling { presence_penalty, frequency_penalty, ..repeats };
            let mut penalties = Penalties::new(&sampling).after_prompt(prompt);
            let mut context = Context::new(vec![1]);
            for (tokens, cut) in steps {
                context.truncate(context.len().saturating_sub(cut).max(1));
                context.extend(tokens);
                penalties.follow(&context);
                let after = After { text: &context, guesses: &guesses };
                let whole = [&context[..], &guesses[..]].concat();
                prop_assert_eq!(&penalties.at(after), &Penalties::new(&sampling).after_prompt(prompt).at(&whole));
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
