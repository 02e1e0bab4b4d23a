//! A drafter without a model: repeats what followed the same words before (SuffixDecoding, Oliaro
//! et al. 2024). Its guesses are certain, so any text is exact.

use super::suffix_automaton::{Continuation, Suffix, SuffixAutomaton};
use super::{Draft, Drafter};
use crate::accept::Guess;
use crate::error::Result;
use crate::sampler::Sampler;
use crate::trace::{DrafterKind, LengthReason, TokenId};

/// A draft ends where it is less likely than this to be reached.
const LEAST_REACH: f64 = 0.1;

#[derive(Debug, Default)]
pub struct NgramDrafter {
    seen: Vec<TokenId>,
    automaton: SuffixAutomaton,
}

impl NgramDrafter {
    fn catch_up(&mut self, context: &[TokenId]) {
        if !context.starts_with(&self.seen) {
            *self = Self::default();
        }
        for &token in &context[self.seen.len()..] {
            self.automaton.push(token);
            self.seen.push(token);
        }
    }

    /// What follows a suffix that occurred before, and the expected number of its tokens that come:
    /// the sum over the tokens of the product of the shares up to them.
    fn follow(&self, mut suffix: Suffix, longest: usize) -> (Vec<TokenId>, f64) {
        let (mut tokens, mut reach, mut expected) = (Vec::new(), 1.0, 0.0);
        while tokens.len() < longest {
            let Some(next) = self.automaton.continuation(suffix) else { break };
            let Continuation { token, share, .. } = next;
            reach *= share;
            if reach < LEAST_REACH {
                break;
            }
            tokens.push(token);
            expected += reach;
            suffix = next.into();
        }
        (tokens, expected)
    }
}

impl Drafter for NgramDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Ngram
    }

    fn draft(&mut self, context: &[TokenId], length: usize, _: &mut Sampler) -> Result<Draft> {
        self.catch_up(context);
        let mut best = (Vec::new(), 0.0);
        for (matched, suffix) in self.automaton.repeated_suffixes() {
            // A match promises no more tokens than it has itself.
            if (matched as f64) <= best.1 {
                break;
            }
            let found = self.follow(suffix, matched.min(length));
            if found.1 > best.1 {
                best = found;
            }
        }
        let guess = |token| Guess { token, drawn_from: None, probability: 1.0 };
        let guesses: Vec<Guess> = best.0.into_iter().map(guess).collect();
        let shortened = (guesses.len() < length).then_some(LengthReason::NoMatch);
        Ok(Draft { guesses, shortened })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampling;

    fn drafted(drafter: &mut NgramDrafter, context: &[TokenId], length: usize) -> Vec<TokenId> {
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let draft = drafter.draft(context, length, &mut sampler).unwrap();
        draft.guesses.iter().map(|guess| guess.token).collect()
    }

    #[test]
    fn a_repeated_passage_is_continued_up_to_the_length_of_the_match() {
        let context = [1, 2, 3, 4, 5, 6, 7, 1, 2, 3];
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 8), [4, 5, 6]);
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 2), [4, 5]);
    }

    #[test]
    fn nothing_is_drafted_where_nothing_repeats() {
        let mut sampler = Sampler::new(&Sampling::greedy()).unwrap();
        let draft = NgramDrafter::default().draft(&[1, 2, 3], 4, &mut sampler).unwrap();
        assert_eq!(draft, Draft { guesses: vec![], shortened: Some(LengthReason::NoMatch) });
    }

    #[test]
    fn of_two_continuations_the_more_frequent_is_drafted() {
        let context = [9, 1, 5, 9, 1, 5, 9, 1, 6, 9, 1];
        assert_eq!(drafted(&mut NgramDrafter::default(), &context, 1), [5]);
    }

    #[test]
    fn an_edited_conversation_is_learned_anew() {
        let mut drafter = NgramDrafter::default();
        assert_eq!(drafted(&mut drafter, &[1, 2, 1], 1), [2]);
        assert_eq!(drafted(&mut drafter, &[1, 3, 1], 1), [3]);
    }
}
