//! Tree drafts: one pass of the draft model per level, with all guesses of a level in one batch
//! (Spector and Re 2023; Miao et al. 2023).

use foretoken_model::error::Result;

use super::{ModelDrafter, in_target};
use crate::accept::Guess;
use crate::context::{After, Context};
use crate::draft::Draft;
use crate::governor::Shape;
use crate::sampler::Sampler;
use crate::speculation::MAX_TREE_WIDTH;

/// Position of the draft to continue from.
struct Position {
    /// Guess at this position; `None` at the end of the text.
    guess: Option<usize>,
    /// Node of the shape.
    shape: usize,
    node: usize,
}

impl ModelDrafter {
    pub(super) fn draft_tree(
        &mut self,
        context: &Context,
        shape: &Shape,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let fed = self.catch_up()?;
        let mut tree = self.unfed(fed);
        let text = tree.len();
        let mut draft = Draft::default();
        let mut positions = vec![Position { guess: None, shape: Shape::ROOT, node: text - 1 }];
        let rows = |this: &Self, rows| this.want(rows, sampler, MAX_TREE_WIDTH);
        let (last, every) = (rows(self, text - 1..text), rows(self, 0..usize::MAX));
        let mut pass = self.model.run(&tree, &last)?;
        loop {
            let logits = pass.logits();
            let mut next = Vec::new();
            for (row, position) in positions.iter().enumerate() {
                let after = After { text: context, guesses: &draft.guesses.path(position.guess) };
                let children = shape.children(position.shape);
                let guesses = in_target(&self.vocabulary, logits.row(row), |row| {
                    sampler.guess(row, after, children.len())
                })?;
                for (guess, &shape_node) in guesses.into_iter().zip(children) {
                    let goes_on = !shape.children(shape_node).is_empty() && !self.ends.contains(&guess.token);
                    if goes_on {
                        next.push((draft.guesses.len(), shape_node, position.node));
                    }
                    draft.guesses.push(Guess { parent: position.guess, ..guess });
                }
            }
            let feed = |(guess, shape, parent): (usize, usize, usize)| {
                let token = self.vocabulary.in_draft(draft.guesses[guess].token);
                Position { guess: Some(guess), shape, node: tree.push(token, Some(parent)) }
            };
            positions = next.into_iter().map(feed).collect();
            if positions.is_empty() {
                break;
            }
            pass = pass.grow(&tree, &every)?;
        }
        // Accepted tokens are fed again: most of the tree will be rejected.
        pass.keep(&(0..text).collect::<Vec<_>>())?;
        Ok(draft)
    }
}
