//! The acceptance rule: which drafted tokens the target keeps, and the token it adds. A pure
//! function; a chain, an n-gram, greedy and coupled decoding are one rule.

use crate::distribution::Distribution;
use crate::random::Randomness;
use crate::trace::TokenId;

/// A drafted token.
#[derive(Debug, Clone, PartialEq)]
pub struct Guess {
    pub token: TokenId,
    /// The distribution the token was really drawn from; `None` for a certain guess, a point mass
    /// (an n-gram, an argmax, a coupled draw).
    pub drawn_from: Option<Distribution>,
    /// The drafter's probability for the token, for display.
    pub probability: f32,
}

/// What the target made of a draft.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The first so many guesses are accepted. Of the rest the first was rejected, unless there is
    /// none; the others were never judged.
    pub accepted: usize,
    /// The token that follows the accepted ones: recovered after a rejection, else a bonus.
    pub extra: TokenId,
}

/// Judges `guesses`, the first of which would stand at `position` of the text.
///
/// `target(i)` is the target's processed distribution after the first `i` guesses; it is asked only
/// for `i` up to the number of accepted guesses, in order. With u uniform, p the target's and q the
/// guess's distribution: a drawn guess x is accepted if u q(x) < p(x), otherwise the extra token
/// comes from norm((p - q)+); a certain guess is accepted if a draw from p equals it, otherwise that
/// draw is the extra token (Leviathan et al. 2023; Chen et al. 2023). Both leave exactly the
/// target's distribution.
///
/// # Errors
/// Those of `target`.
pub fn accept<E>(
    guesses: &[Guess],
    position: usize,
    mut target: impl FnMut(usize) -> Result<Distribution, E>,
    random: &mut impl Randomness,
) -> Result<Verdict, E> {
    for (accepted, guess) in guesses.iter().enumerate() {
        let p = target(accepted)?;
        let at = position + accepted;
        let rejection = match &guess.drawn_from {
            None => Some(random.draw(at, &p)).filter(|&drawn| drawn != guess.token),
            Some(q) => recover(guess.token, at, &p, q, random),
        };
        if let Some(extra) = rejection {
            return Ok(Verdict { accepted, extra });
        }
    }
    let accepted = guesses.len();
    let extra = random.draw(position + accepted, &target(accepted)?);
    Ok(Verdict { accepted, extra })
}

/// The token that replaces `token`, or `None` if it is accepted.
fn recover(
    token: TokenId,
    at: usize,
    p: &Distribution,
    q: &Distribution,
    random: &mut impl Randomness,
) -> Option<TokenId> {
    let (p_token, q_token) = (p.probability(token), q.probability(token));
    if (p_token >= q_token && p_token > 0.0) || random.accepts(p_token / q_token) {
        return None;
    }
    // Nothing is left only when p and q differ by rounding alone.
    let residual = p.residual(q);
    Some(random.draw(at, residual.as_ref().unwrap_or(p)))
}
