//! The acceptance rules: which drafted tokens the target keeps, and the token it adds. Pure functions; a
//! chain, a tree, an n-gram, greedy and coupled decoding are one rule, and [`block`] is a better one for
//! drawn chains.

mod block;
mod node;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::distribution::Distribution;
use crate::random::Randomness;
use crate::trace::{DrafterKind, TokenId};

/// How drawn tokens are judged. Both rules leave exactly the target's distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Verification {
    /// The draft as a whole: accepts at least as many tokens.
    #[default]
    Block,
    /// One token after the other.
    Token,
}

/// A drafted token.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    pub token: TokenId,
    /// The guess it follows; `None` for one that follows the text.
    pub parent: Option<usize>,
    /// The distribution the token was really drawn from; `None` for a certain guess, a point mass (an
    /// n-gram, an argmax, a coupled draw). Siblings with the same one were drawn from it in their order,
    /// without replacement.
    pub drawn_from: Option<Arc<Distribution>>,
    /// The drafter's probability for the token, for display.
    pub probability: f32,
    /// How sure the drafter was, 0..=1, before the token was drawn if it was; what that is worth is for
    /// the governor to find out.
    pub confidence: f32,
    pub drafter: DrafterKind,
}

/// What the target made of a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The accepted guesses, each following the one before.
    pub path: Vec<usize>,
    /// Guesses that were judged and not accepted; the others were never judged.
    pub rejected: Vec<usize>,
    /// The token that follows the accepted ones: recovered after a rejection, else a bonus.
    pub extra: TokenId,
}

impl Verdict {
    /// The last accepted guess.
    fn last(&self) -> Option<usize> {
        self.path.last().copied()
    }
}

/// Judges `guesses`, a tree in which parents come before their children, and whose roots would stand at
/// `position` of the text.
///
/// `target(guess)` is the target's processed distribution after a guess, after the text for `None`. Of
/// what follows it only what lies on the accepted path is asked for, and for the block rule what lies on
/// the chain.
///
/// # Errors
/// Those of `target`.
pub fn accept<E>(
    guesses: &[Guess],
    verification: Verification,
    position: usize,
    mut target: impl FnMut(Option<usize>) -> Result<Distribution, E>,
    random: &mut impl Randomness,
) -> Result<Verdict, E> {
    // For certain guesses the two rules accept the same; the simpler one asks for less.
    let drawn = guesses.iter().any(|guess| guess.drawn_from.is_some());
    if verification == Verification::Block && drawn && is_chain(guesses) {
        return block::accept(guesses, position, &mut target, random);
    }
    let mut verdict = Verdict::default();
    loop {
        let p = target(verdict.last())?;
        match node::accept(guesses, verdict.last(), position + verdict.path.len(), p, random) {
            node::Choice { rejected, accepted: Ok(child) } => {
                verdict.rejected.extend(rejected);
                verdict.path.push(child);
            }
            node::Choice { rejected, accepted: Err(extra) } => {
                verdict.rejected.extend(rejected);
                verdict.extra = extra;
                return Ok(verdict);
            }
        }
    }
}

/// The tokens from the first guess to `last`; none for the end of the text.
pub fn path(guesses: &[Guess], last: Option<usize>) -> Vec<TokenId> {
    let up = std::iter::successors(last, |&guess| guesses[guess].parent);
    let mut path: Vec<TokenId> = up.map(|guess| guesses[guess].token).collect();
    path.reverse();
    path
}

/// How many guesses come before each on its path.
pub fn depths(guesses: &[Guess]) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(guesses.len());
    for guess in guesses {
        depths.push(guess.parent.map_or(0, |parent| depths[parent] + 1));
    }
    depths
}

/// Whether each guess follows the one before.
pub fn is_chain(guesses: &[Guess]) -> bool {
    guesses.iter().enumerate().all(|(index, guess)| guess.parent == index.checked_sub(1))
}
