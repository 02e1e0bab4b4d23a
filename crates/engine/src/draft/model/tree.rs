//! A draft in the shape of a tree: one pass of the draft model for each level, all guesses of a level in
//! one batch (Spector and Re 2023; Miao et al. 2023).

use super::{ModelDrafter, in_target};
use crate::accept::{Guess, path};
use crate::draft::Draft;
use crate::error::Result;
use crate::governor::Shape;
use crate::sampler::Sampler;
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// A place that guesses shall follow.
struct Place {
    /// The guess there; `None` at the end of the text.
    guess: Option<usize>,
    /// Its node in the shape, and in the tree that the draft model runs.
    shape: usize,
    node: usize,
}

impl ModelDrafter {
    pub(super) fn draft_tree(
        &mut self,
        context: &[TokenId],
        shape: &Shape,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let known = self.vocabulary.translate(context);
        let fed = self.catch_up(&known)?;
        let mut tree = TokenTree::chain(known[fed..].iter().copied());
        let text = tree.len();
        let mut draft = Draft::default();
        let mut places = vec![Place { guess: None, shape: Shape::ROOT, node: text - 1 }];
        while let Some(first) = places.first() {
            let rows = first.node..tree.len();
            let logits = if first.guess.is_none() {
                self.model.forward(&tree, rows)?
            } else {
                self.model.grow(&tree, rows)?
            };
            let mut next = Vec::new();
            for (row, place) in places.iter().enumerate() {
                let context: Vec<TokenId> = [context, &path(&draft.guesses, place.guess)].concat();
                let children = shape.children(place.shape);
                let guesses = in_target(&self.vocabulary, logits.row(row), |row| {
                    sampler.guess(row, &context, children.len())
                })?;
                for (guess, &shape_node) in guesses.into_iter().zip(children) {
                    let goes_on = !shape.children(shape_node).is_empty() && !self.ends.contains(&guess.token);
                    if goes_on {
                        next.push((draft.guesses.len(), shape_node, place.node));
                    }
                    draft.guesses.push(Guess { parent: place.guess, ..guess });
                }
            }
            let feed = |(guess, shape, parent): (usize, usize, usize)| {
                let token = self.vocabulary.in_draft(draft.guesses[guess].token);
                Place { guess: Some(guess), shape, node: tree.push(token, Some(parent)) }
            };
            places = next.into_iter().map(feed).collect();
        }
        // What comes is fed anew: most of the tree is not part of it.
        self.model.keep(&(0..text).collect::<Vec<_>>())?;
        Ok(draft)
    }
}
