//! A draft being grown, as a chain or a tree: turns logits of a position into guesses and returns
//! the positions to continue. The drafters compute the logits.

use foretoken_forward::{LogitSubset, Row};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::tokens::Tokens;
use crate::accept::Guess;
use crate::context::{After, Context};
use crate::draft::chain::Chain;
use crate::draft::{Draft, DraftRequest};
use crate::drafter_kind::DrafterKind;
use crate::governor::Shape;
use crate::sampler::Sampler;
use crate::speculation::MAX_TREE_WIDTH;

/// See the module.
pub(super) struct Growth<'a> {
    context: &'a Context,
    tokens: &'a Tokens,
    shape: Option<&'a Shape>,
    /// Guesses are the likeliest tokens, whatever the sampler's settings.
    certain: bool,
    chain: Chain<'a>,
}

/// Position of the draft to continue from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// Guess at this position; `None` at the end of the text.
    pub guess: Option<usize>,
    /// Node of the shape, if there is one.
    shape: usize,
}

impl Position {
    /// The end of the text.
    pub const ROOT: Self = Self { guess: None, shape: Shape::ROOT };
}

impl<'a> Growth<'a> {
    pub fn new(
        context: &'a Context,
        tokens: &'a Tokens,
        request: &'a DraftRequest<'a>,
        shape: Option<&'a Shape>,
    ) -> Self {
        Self { context, tokens, shape, certain: false, chain: Chain::new(request) }
    }

    /// Guesses the likeliest tokens if `certain`, whatever the sampler's settings.
    pub fn certain(self, certain: bool) -> Self {
        Self { certain, ..self }
    }

    /// Part of the logits that guesses need.
    pub fn logit_subset(&self, sampler: &Sampler) -> LogitSubset {
        sampler.logit_subset(if self.shape.is_some() { MAX_TREE_WIDTH } else { 1 })
    }

    /// Token at a position.
    pub fn token(&self, position: Position) -> TokenId {
        match position.guess {
            Some(guess) => self.chain.draft.guesses[guess].token,
            None => self.context[self.context.len() - 1],
        }
    }

    /// Adds guesses from the logits of a position and returns those to continue from. `confidence`
    /// is the head's own estimate, if it has one beside its logits.
    pub fn guess(
        &mut self,
        position: Position,
        row: Row<'_>,
        confidence: Option<f32>,
        sampler: &mut Sampler,
    ) -> Result<Vec<Position>> {
        let path = self.chain.draft.guesses.path(position.guess);
        let after = After { text: self.context, guesses: &path };
        let children = self.shape.map_or(&[Shape::ROOT][..], |shape| shape.children(position.shape));
        let mut next = Vec::new();
        let guesses = self.tokens.guess(row, after, children.len(), self.certain, sampler)?;
        for (guess, &child) in guesses.into_iter().zip(children) {
            let confidence = confidence.unwrap_or(guess.confidence);
            let guess = Guess { parent: position.guess, drafter: DrafterKind::Head, confidence, ..guess };
            let ended = self.tokens.end(guess.token);
            let goes_on = match self.shape {
                None => self.chain.extend(guess, ended),
                Some(shape) => {
                    self.chain.draft.guesses.push(guess);
                    !ended && !shape.children(child).is_empty()
                }
            };
            if goes_on {
                next.push(Position { guess: Some(self.chain.draft.guesses.len() - 1), shape: child });
            }
        }
        Ok(next)
    }

    pub fn draft(self) -> Draft {
        self.chain.draft
    }
}
