//! Acceptance rules: which guesses the target keeps, and the token it adds.
//!
//! Pure functions. Chains, trees, n-grams, greedy and coupled decoding share one rule; [`block`] is
//! a better one for drawn chains.

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
/// `target(guess)` returns the target's processed distribution after a guess, or after the text for
/// `None`. It is called only for nodes on the accepted path; block verification calls it for the
/// chain.
///
/// # Errors
/// Errors of `target`.
pub fn accept<E>(
    guesses: &Guesses,
    verification: Verification,
    position: usize,
    mut target: impl FnMut(Option<usize>) -> Result<Distribution, E>,
    random: &mut impl Randomness,
) -> Result<Verdict, E> {
    // Both rules accept the same certain guesses; this one calls `target` less often.
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
