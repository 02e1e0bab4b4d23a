//! Token recycling, a drafter without a model: guesses the tokens that the target itself found
//! likely after the same token before (Luo et al. 2024). Its guesses are certain.

use std::collections::HashMap;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::{Draft, DraftRequest, Drafter, Observation};
use crate::accept::Guess;
use crate::context::{After, Context};
use crate::drafter_kind::DrafterKind;
use crate::governor::Shape;
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

    fn chain(&self, context: &Context, request: &DraftRequest<'_>, sampler: &Sampler) -> Draft {
        let mut draft = Draft::default();
        let mut path = request.ahead.to_vec();
        while draft.guesses.len() < request.length {
            let after = After { text: context, guesses: &path };
            let Some(guess) = self.guesses(after, 1, sampler).pop() else { break };
            path.push(guess.token);
            draft.guesses.follow(guess);
        }
        draft
    }

    fn tree(&self, context: &Context, ahead: &[TokenId], shape: &Shape, sampler: &Sampler) -> Draft {
        let mut draft = Draft::default();
        let mut positions = vec![(None, Shape::ROOT)];
        while let Some((parent, node)) = positions.pop() {
            let children = shape.children(node);
            let path = [ahead, &draft.guesses.path(parent)].concat();
            let after = After { text: context, guesses: &path };
            for (guess, &child) in self.guesses(after, children.len(), sampler).into_iter().zip(children) {
                positions.push((Some(draft.guesses.len()), child));
                draft.guesses.push(Guess { parent, ..guess });
            }
        }
        draft
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
        let draft = match request.shape {
            Some(shape) => self.tree(context, request.ahead, shape, sampler),
            None => self.chain(context, request, sampler),
        };
        let asked = request.shape.map_or(request.length, Shape::len);
        let shortened = (draft.guesses.len() < asked).then_some(LengthReason::NoMatch);
        Ok(Draft { shortened, ..draft })
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
    use crate::governor::Plans;
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
        let ranks = [[0.4, 0.39, 0.0, 0.0]; 2];
        let shape = Plans::new(&ranks, 2, 3).shape(3);
        let request = DraftRequest { shape: Some(&shape), ..DraftRequest::chain(2) };
        let draft = taught().draft(&Context::new(vec![1]), &request, &mut sampler()).unwrap();
        let found: Vec<_> = draft.guesses.iter().map(|guess| (guess.token, guess.parent)).collect();
        assert_eq!(found[..2], [(2, None), (3, None)]);
        assert!(found.len() == 2 || found[2] == (4, Some(0)), "{found:?}");
    }

    #[test]
    fn nothing_is_guessed_after_a_token_never_seen() {
        let draft = taught().draft(&Context::new(vec![7]), &DraftRequest::chain(4), &mut sampler()).unwrap();
        assert!(draft.guesses.is_empty());
    }
}
