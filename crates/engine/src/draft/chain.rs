//! A chain being drafted, with its stopping rules.

use super::{Draft, DraftRequest};
use crate::accept::Guess;
use crate::trace::LengthReason;

/// A chain being drafted.
pub(crate) struct Chain<'a> {
    request: &'a DraftRequest<'a>,
    /// Chance that the whole chain is accepted.
    survival: f64,
    pub draft: Draft,
}

impl<'a> Chain<'a> {
    pub fn new(request: &'a DraftRequest<'a>) -> Self {
        Self { request, survival: 1.0, draft: Draft::default() }
    }

    /// Adds a guess unless the chain ends before it. Returns true if the chain continues after it.
    /// `ended`: the guess is an end token.
    pub fn extend(&mut self, guess: Guess, ended: bool) -> bool {
        let Draft { guesses, shortened } = &mut self.draft;
        if let Some(bound) = self.request.bound {
            let Some(extended) = bound.extend(self.survival, guesses.len(), &guess) else {
                *shortened = Some(LengthReason::Unlikely);
                return false;
            };
            self.survival = extended;
        }
        guesses.follow(guess);
        if guesses.len() >= self.request.length {
            return false;
        }
        let unlikely = self.request.bound.is_some_and(|bound| bound.ends(self.survival));
        if ended || unlikely {
            *shortened = Some(if ended { LengthReason::EndOfText } else { LengthReason::Unlikely });
        }
        !ended && !unlikely
    }
}
