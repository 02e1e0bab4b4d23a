//! Token recycling, a drafter without a model: guesses the tokens that the target itself found
//! likely after the same token before (Luo et al. 2024). Its guesses are certain.

use std::collections::HashMap;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::{Draft, DraftRequest, Drafter, Observation, Search};
use crate::accept::Guess;
use crate::context::{After, Context};
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;
use crate::speculation::MAX_TREE_WIDTH;
use crate::trace::LengthReason;

/// Assumed chance that a token's likely followers are the same at another position.
const RENEWED: f32 = 0.5;

/// A guess whose chance DRY lowers below this share is skipped.
const REFUSED: f32 = 0.1 * RENEWED;

/// Likely next tokens, likeliest first.
type Followers = [(TokenId, f32); MAX_TREE_WIDTH];

#[derive(Debug, Default)]
pub struct RecyclingDrafter {
    followers: HashMap<TokenId, Followers>,
}

impl RecyclingDrafter {
    /// Up to `count` guesses after `after`, without those that DRY would reject.
    fn guesses(&self, after: After<'_>, count: usize, sampler: &Sampler) -> Vec<Guess> {
        let last = after.guesses.last().or(after.text.last());
        let followers = last.and_then(|last| self.followers.get(last)).into_iter().flatten();
        let guess = |&(token, probability): &(TokenId, f32)| Guess {
            token,
            parent: None,
            drawn_from: None,
            probability,
            confidence: probability * RENEWED * sampler.dry_odds(after, token).min(1.0),
            drafter: DrafterKind::Recycling,
        };
        let likely = |guess: &Guess| guess.confidence > guess.probability * REFUSED;
        followers.map(guess).filter(likely).take(count).collect()
    }
}

impl Drafter for RecyclingDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Recycling
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let mut search = Search::new(request, context, DrafterKind::Recycling, &[]);
        loop {
            let places = search.next_step();
            if places.is_empty() {
                break;
            }
            for place in places {
                let path = [request.ahead, &search.path(place)].concat();
                let after = After { text: context, guesses: &path };
                search.add(place, self.guesses(after, request.width, sampler));
            }
        }
        let guesses = search.finish().guesses;
        let shortened = (guesses.len() < request.nodes).then_some(LengthReason::NoMatch);
        Ok(Draft { guesses, shortened, ..Draft::default() })
    }

    fn forget(&mut self) {
        self.followers.clear();
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn observe(&mut self, observed: &Observation<'_>) -> Result<()> {
        for (&token, row) in observed.tokens.iter().zip(observed.rows.into_iter().flatten()) {
            let mut followers = [(0, 0.0); MAX_TREE_WIDTH];
            followers.iter_mut().zip(row.leaders(MAX_TREE_WIDTH)).for_each(|(slot, leader)| *slot = leader);
            self.followers.insert(token, followers);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretoken_forward::Row;
    use foretoken_model::sampling::Sampling;

    /// After 1 the target found 2 likeliest, then 3; after 2 it found 4 likeliest.
    fn taught() -> RecyclingDrafter {
        let mut drafter = RecyclingDrafter::default();
        let rows = [Row::of(&[0.0, 1.0, 3.0, 2.0, 0.5]), Row::of(&[0.0, 0.1, 0.2, 0.3, 5.0])];
        let observed = Observation { at: 0, tokens: &[1, 2], rows: Some(&rows), features: None };
        drafter.observe(&observed).unwrap();
        drafter
    }

    fn sampler() -> Sampler {
        Sampler::new(&Sampling::greedy()).unwrap()
    }

    #[test]
    fn a_chain_follows_the_likeliest() {
        let draft =
            taught().draft(&Context::new(vec![9, 1]), &DraftRequest::chain(4), &mut sampler()).unwrap();
        let tokens: Vec<TokenId> = draft.guesses.iter().map(|guess| guess.token).collect();
        assert_eq!((tokens, draft.shortened), (vec![2, 4], Some(LengthReason::NoMatch)));
    }

    #[test]
    fn a_tree_has_the_second_best_beside_it() {
        let request = DraftRequest::tree(2, 2, 3);
        let draft = taught().draft(&Context::new(vec![1]), &request, &mut sampler()).unwrap();
        let found: Vec<_> = draft.guesses.iter().map(|guess| (guess.token, guess.parent)).collect();
        assert_eq!(found, [(2, None), (4, Some(0)), (3, None)]);
    }

    #[test]
    fn nothing_is_guessed_after_a_token_never_seen() {
        let draft = taught().draft(&Context::new(vec![7]), &DraftRequest::chain(4), &mut sampler()).unwrap();
        assert!(draft.guesses.is_empty());
    }
}
