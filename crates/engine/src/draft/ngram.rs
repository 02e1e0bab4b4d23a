//! N-gram drafter without a model: repeats what followed the same tokens earlier in this
//! conversation or in other ones (SuffixDecoding, Oliaro et al. 2024). Its guesses are certain.

use foretoken_model::error::Result;
use foretoken_model::token::{TokenId, is_media};

use super::suffix_automaton::{Continuation, Match, Suffix, SuffixAutomaton};
use super::{Draft, DraftRequest, Drafter};
use crate::accept::{Guess, Guesses};
use crate::context::{After, Context, Mark};
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

/// A draft ends where the chance of reaching it falls below this.
const MIN_SURVIVAL: f64 = 0.1;

/// Maximum number of remembered tokens of other conversations.
const MEMORY: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct NgramDrafter {
    /// Tokens of the conversation in the automaton.
    observed: Vec<TokenId>,
    /// Mark of the conversation's context.
    mark: Mark,
    automaton: SuffixAutomaton,
    /// Other conversations, and the longest suffix of this one that occurs in them.
    earlier: SuffixAutomaton,
    matched: Match,
}

impl NgramDrafter {
    fn catch_up(&mut self, context: &Context) {
        let same = context.common(&self.observed, context.unchanged_since(self.mark));
        self.mark = context.mark();
        if same < self.observed.len() {
            self.observed.clear();
            (self.automaton, self.matched) = Default::default();
        }
        for &token in &context[self.observed.len()..] {
            self.automaton.push(token);
            self.matched = self.earlier.extend(self.matched, token);
            self.observed.push(token);
        }
    }

    /// Best continuation of a conversation's suffixes by one automaton, and its expected number of
    /// accepted tokens.
    fn best(
        automaton: &SuffixAutomaton,
        suffixes: impl Iterator<Item = (usize, Suffix)>,
        longest: usize,
        dry_odds: &impl Fn(&Guesses, TokenId) -> f32,
    ) -> (Guesses, f64) {
        let mut best = (Guesses::default(), 0.0);
        for (matched, suffix) in suffixes {
            // A match supports at most as many tokens as it has itself, and as were requested.
            if (matched.min(longest) as f64) <= best.1 {
                break;
            }
            let found = follow(automaton, suffix, matched, longest, dry_odds);
            if found.1 > best.1 {
                best = found;
            }
        }
        best
    }
}

/// Follows a suffix of `matched` tokens that occurred before. Returns the guesses and the expected
/// number of accepted ones: the sum over the guesses of the product of the shares up to them.
/// `dry_odds` lowers the odds of a token that DRY penalises, so that a draft ends where DRY would
/// reject it.
fn follow(
    automaton: &SuffixAutomaton,
    mut suffix: Suffix,
    matched: usize,
    longest: usize,
    dry_odds: &impl Fn(&Guesses, TokenId) -> f32,
) -> (Guesses, f64) {
    let (mut guesses, mut survival, mut expected) = (Guesses::default(), 1.0, 0.0);
    while guesses.len() < longest.min(matched) {
        // A picture that followed earlier is no draft.
        let next = automaton.continuation(suffix).filter(|next| !is_media(next.token));
        let Some(next) = next else { break };
        let plain = confidence(&next, matched + guesses.len());
        let confidence = with_odds(plain, dry_odds(&guesses, next.token));
        let share = next.count as f32 / next.total as f32 * (confidence / plain);
        survival *= f64::from(share);
        if survival < MIN_SURVIVAL {
            break;
        }
        guesses.follow(Guess {
            token: next.token,
            parent: None,
            drawn_from: None,
            probability: share,
            confidence,
            drafter: DrafterKind::Ngram,
        });
        expected += survival;
        suffix = next.into();
    }
    (guesses, expected)
}

/// Share of this continuation, smoothed with `matched` further occurrences that agree and one that
/// does not.
fn confidence(next: &Continuation, matched: usize) -> f32 {
    let matched = matched as f32;
    (next.count as f32 + matched) / (next.total as f32 + matched + 1.0)
}

/// Multiplies the odds of a chance by `factor`, at most 1. Rounding never raises the chance.
pub(super) fn with_odds(chance: f32, factor: f32) -> f32 {
    let odds = chance * factor;
    (odds / (odds + 1.0 - chance).max(f32::MIN_POSITIVE)).min(chance)
}

impl Drafter for NgramDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Ngram
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        self.catch_up(context);
        let dry_odds = |guesses: &Guesses, token| {
            let tokens = guesses.iter().map(|guess| guess.token);
            let ahead: Vec<TokenId> = request.ahead.iter().copied().chain(tokens).collect();
            sampler.dry_odds(After { text: context, guesses: &ahead }, token)
        };
        let (mut here, mut earlier) = (self.automaton.end(), self.matched);
        for &token in request.ahead {
            here = self.automaton.extend(here, token);
            earlier = self.earlier.extend(earlier, token);
        }
        let here = Self::best(&self.automaton, self.automaton.suffixes(here), request.length, &dry_odds);
        let earlier = Self::best(&self.earlier, self.earlier.suffixes(earlier), request.length, &dry_odds);
        let guesses = if here.1 >= earlier.1 { here.0 } else { earlier.0 };
        let shortened = (guesses.len() < request.length).then_some(LengthReason::NoMatch);
        Ok(Draft { guesses, shortened, ..Draft::default() })
    }

    fn remember(&mut self, texts: &[Vec<TokenId>]) {
        self.earlier = SuffixAutomaton::default();
        texts.iter().flatten().take(MEMORY).for_each(|&token| self.earlier.push(token));
        self.matched = Match::default();
        for &token in &self.observed {
            self.matched = self.earlier.extend(self.matched, token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretoken_model::sampling::Sampling;

    fn drafted(drafter: &mut NgramDrafter, context: &[TokenId], length: usize) -> Vec<TokenId> {
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let draft = drafter.draft(&context.into(), &DraftRequest::chain(length), &mut sampler).unwrap();
        draft.guesses.iter().map(|guess| guess.token).collect()
    }

    #[test]
    fn lowering_the_odds_never_raises_a_chance() {
        for chance in (0..=10_000).map(|step| step as f32 / 10_000.0) {
            for factor in [1.0, 0.5, 1e-6, 0.0] {
                assert!((0.0..=chance).contains(&with_odds(chance, factor)), "{chance} times {factor}");
            }
        }
    }

    #[test]
    fn a_repeated_passage_is_continued_up_to_the_length_of_the_match() {
        let context = [1, 2, 3, 4, 5, 6, 7, 1, 2, 3];
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 8), [4, 5, 6]);
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 2), [4, 5]);
    }

    #[test]
    fn a_draft_ends_where_dry_would_reject_its_token() {
        let context = Context::new([1, 2, 3, 4, 5, 6, 7, 8, 9].repeat(2));
        let length = |sampling: &Sampling| {
            let mut sampler = Sampler::new(sampling).unwrap();
            let draft = NgramDrafter::default().draft(&context, &DraftRequest::chain(16), &mut sampler);
            draft.unwrap().guesses.len()
        };
        let dry =
            |allowed| Sampling { dry_multiplier: 0.8, dry_allowed_length: allowed, ..Sampling::greedy() };
        assert_eq!(length(&Sampling::greedy()), 9);
        assert_eq!(length(&dry(4)), 0, "nine tokens are repeated already");
        assert!((1..4).contains(&length(&dry(9))));
        assert_eq!(length(&dry(30)), 9);
    }

    #[test]
    fn a_repeated_token_never_ends_a_word() {
        let context = vec![7; 1 << 16];
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 16), [7; 16]);
    }

    #[test]
    fn nothing_is_drafted_where_nothing_repeats() {
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let draft = NgramDrafter::default()
            .draft(&Context::new(vec![1, 2, 3]), &DraftRequest::chain(4), &mut sampler)
            .unwrap();
        let shortened = Some(LengthReason::NoMatch);
        assert_eq!(draft, Draft { shortened, ..Draft::default() });
    }

    #[test]
    fn the_more_frequent_of_two_continuations_is_drafted() {
        let context = [9, 1, 5, 9, 1, 5, 9, 1, 6, 9, 1];
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 1), [5]);
    }

    #[test]
    fn an_edited_conversation_is_learned_again() {
        let mut drafter = NgramDrafter::default();
        assert_eq!(drafted(&mut drafter, &[1, 2, 1], 1), [2]);
        assert_eq!(drafted(&mut drafter, &[1, 3, 1], 1), [3]);
    }

    #[test]
    fn another_drafters_guesses_are_continued_but_not_learned_as_text() {
        let mut drafter = NgramDrafter::default();
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let context = Context::new(vec![1, 2, 3, 4, 5, 6, 9]);
        let mut ahead = |tokens: &[TokenId]| -> Vec<TokenId> {
            let request = DraftRequest { ahead: tokens, ..DraftRequest::chain(8) };
            let draft = drafter.draft(&context, &request, &mut sampler).unwrap();
            draft.guesses.iter().map(|guess| guess.token).collect()
        };
        assert_eq!(ahead(&[2, 3]), [4, 5]);
        assert!(ahead(&[7]).is_empty());
        assert_eq!(ahead(&[]), drafted(&mut NgramDrafter::default(), &context, 8));
    }

    #[test]
    fn earlier_conversations_are_used_where_this_one_has_no_match() {
        let mut drafter = NgramDrafter::default();
        assert!(drafted(&mut drafter, &[8, 1, 2], 2).is_empty());
        drafter.remember(&[vec![1, 2, 3], vec![4, 5]]);
        assert_eq!(drafted(&mut drafter, &[8, 1, 2], 2), [3, 4]);
        assert_eq!(drafted(&mut drafter, &[8, 1, 2, 3], 3), [4, 5], "it goes on where the text went");
        assert_eq!(drafted(&mut drafter, &[7, 7, 2], 2), [7, 3][1..], "another conversation");
        drafter.remember(&[]);
        assert!(drafted(&mut drafter, &[8, 1, 2], 2).is_empty());
    }

    #[test]
    fn a_longer_match_is_trusted_more() {
        let mut drafter = NgramDrafter::default();
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let context = Context::new(vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5]);
        let draft = drafter.draft(&context, &DraftRequest::chain(3), &mut sampler).unwrap();
        let sure = draft.guesses[0].confidence;
        let draft = NgramDrafter::default()
            .draft(&Context::new(vec![1, 2, 3, 1]), &DraftRequest::chain(3), &mut sampler)
            .unwrap();
        assert!(sure > 0.8 && draft.guesses[0].confidence < 0.7);
    }
}
