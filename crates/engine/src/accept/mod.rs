//! The acceptance rules: which drafted tokens the target keeps, and the token it adds. Pure functions; a
//! chain, a tree, an n-gram, greedy and coupled decoding are one rule, and [`block`] is a better one for
//! drawn chains.

mod block;
mod guess;
mod guesses;
mod node;
mod verdict;

use crate::distribution::Distribution;
use crate::random::Randomness;
use crate::speculation::Verification;

pub use guess::Guess;
pub use guesses::Guesses;
pub use verdict::Verdict;

/// Judges `guesses`, the first of which would stand at `position` of the text.
///
/// `target(guess)` is the target's processed distribution after a guess, after the text for `None`. Of
/// what follows it only what lies on the accepted path is asked for, and for the block rule what lies on
/// the chain.
///
/// # Errors
/// Those of `target`.
pub fn accept<E>(
    guesses: &Guesses,
    verification: Verification,
    position: usize,
    mut target: impl FnMut(Option<usize>) -> Result<Distribution, E>,
    random: &mut impl Randomness,
) -> Result<Verdict, E> {
    // For certain guesses the two rules accept the same; the simpler one asks for less.
    let drawn = guesses.iter().any(|guess| guess.drawn_from.is_some());
    if verification == Verification::Block && drawn && guesses.is_chain() {
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
