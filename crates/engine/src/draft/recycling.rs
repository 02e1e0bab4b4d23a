//! A drafter without a model: after a token it guesses what the target itself thought likely after the same
//! token before (Token Recycling, Luo et al. 2024). Its guesses are certain, so any text is exact.

use std::collections::HashMap;

use super::{Draft, Drafter, Order};
use crate::accept::Guess;
use crate::error::Result;
use crate::forward::Row;
use crate::governor::Shape;
use crate::sampler::Sampler;
use crate::speculation::WIDEST_TREE;
use crate::trace::{DrafterKind, LengthReason, TokenId};

/// What followed in another place is as likely here in about so many cases.
const RENEWED: f32 = 0.5;

/// What may follow a token, likeliest first.
type Followers = [(TokenId, f32); WIDEST_TREE];

#[derive(Debug, Default)]
pub struct RecyclingDrafter {
    followers: HashMap<TokenId, Followers>,
}

impl RecyclingDrafter {
    fn guesses(&self, token: TokenId, count: usize) -> impl Iterator<Item = Guess> {
        let followers = self.followers.get(&token).into_iter().flatten().take(count);
        followers.filter(|(_, probability)| *probability > 0.0).map(|&(token, probability)| Guess {
            token,
            parent: None,
            drawn_from: None,
            probability,
            confidence: probability * RENEWED,
            drafter: DrafterKind::Recycling,
        })
    }

    fn chain(&self, last: TokenId, length: usize) -> Draft {
        let mut draft = Draft::default();
        let mut last = Some(last);
        while draft.guesses.len() < length {
            let Some(guess) = last.and_then(|last| self.guesses(last, 1).next()) else { break };
            last = Some(guess.token);
            draft.follow(guess);
        }
        draft
    }

    fn tree(&self, last: TokenId, shape: &Shape) -> Draft {
        let mut draft = Draft::default();
        let mut places = vec![(None, last, Shape::ROOT)];
        while let Some((parent, token, node)) = places.pop() {
            let children = shape.children(node);
            for (guess, &child) in self.guesses(token, children.len()).zip(children) {
                places.push((Some(draft.guesses.len()), guess.token, child));
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

    fn draft(&mut self, context: &[TokenId], order: &Order<'_>, _: &mut Sampler) -> Result<Draft> {
        let Some(&last) = order.ahead.last().or(context.last()) else { return Ok(Draft::default()) };
        let draft = match order.shape {
            Some(shape) => self.tree(last, shape),
            None => self.chain(last, order.length),
        };
        let asked = order.shape.map_or(order.length, Shape::len);
        let shortened = (draft.guesses.len() < asked).then_some(LengthReason::NoMatch);
        Ok(Draft { shortened, ..draft })
    }

    fn forget(&mut self) {
        self.followers.clear();
    }

    fn observe(&mut self, token: TokenId, row: Row<'_>) {
        let mut followers = [(0, 0.0); WIDEST_TREE];
        followers.iter_mut().zip(row.leaders(WIDEST_TREE)).for_each(|(slot, leader)| *slot = leader);
        self.followers.insert(token, followers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::Plans;
    use crate::sampling::Sampling;

    /// After 1 the target thought 2 likeliest, then 3; after 2 it thought 4 likeliest.
    fn taught() -> RecyclingDrafter {
        let mut drafter = RecyclingDrafter::default();
        drafter.observe(1, Row::of(&[0.0, 1.0, 3.0, 2.0, 0.5]));
        drafter.observe(2, Row::of(&[0.0, 0.1, 0.2, 0.3, 5.0]));
        drafter
    }

    fn sampler() -> Sampler {
        Sampler::new(&Sampling::greedy()).unwrap()
    }

    #[test]
    fn a_chain_follows_the_likeliest() {
        let draft = taught().draft(&[9, 1], &Order::chain(4), &mut sampler()).unwrap();
        let tokens: Vec<TokenId> = draft.guesses.iter().map(|guess| guess.token).collect();
        assert_eq!((tokens, draft.shortened), (vec![2, 4], Some(LengthReason::NoMatch)));
    }

    #[test]
    fn a_tree_has_the_second_best_beside_it() {
        let ranks = [[0.4, 0.39, 0.0, 0.0]; 2];
        let shape = Plans::new(&ranks, 2, 3).shape(3);
        let order = Order { shape: Some(&shape), ..Order::chain(2) };
        let draft = taught().draft(&[1], &order, &mut sampler()).unwrap();
        let found: Vec<_> = draft.guesses.iter().map(|guess| (guess.token, guess.parent)).collect();
        assert_eq!(found[..2], [(2, None), (3, None)]);
        assert!(found.len() == 2 || found[2] == (4, Some(0)), "{found:?}");
    }

    #[test]
    fn nothing_is_guessed_after_a_token_never_seen() {
        let draft = taught().draft(&[7], &Order::chain(4), &mut sampler()).unwrap();
        assert!(draft.guesses.is_empty());
    }
}
