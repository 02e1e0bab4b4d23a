//! A chain under way: where it ends, and why. Who guesses does not matter here.

use super::{Draft, DraftRequest};
use crate::accept::Guess;
use crate::trace::LengthReason;

/// A chain that is drafted.
pub(super) struct Chain<'a> {
    request: &'a DraftRequest<'a>,
    /// The chance that all of it is accepted.
    survival: f64,
    pub draft: Draft,
}

impl<'a> Chain<'a> {
    pub fn new(request: &'a DraftRequest<'a>) -> Self {
        Self { request, survival: 1.0, draft: Draft::default() }
    }

    /// Adds a guess, if the chain does not end before it; returns whether it goes on after it. `ended`: the guess ends
    /// the reply.
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
