//! Block verification (Sun et al. 2024): judges a whole chain at once. It accepts at least as many
//! tokens as token-by-token verification.

use super::guess::Guess;
use super::verdict::Verdict;
use crate::distribution::Distribution;
use crate::random::Randomness;

/// Judges the chain `guesses`, whose first token would stand at `position`.
///
/// With p_i the target's and q_i the drafter's distribution of token x_i, i = 1..=N:
///
/// ```text
/// pi_0 = 1, pi_i = min(1, pi_(i-1) p_i(x_i) / q_i(x_i))
/// R_i = sum over x of (pi_i p_(i+1)(x) - q_(i+1)(x))+
/// h_i = R_i / (R_i + 1 - pi_i), h_N = pi_N
/// ```
///
/// Tokens are accepted up to the last i with u_i < h_i, where the u_i are uniform and independent.
/// After all N, the extra token is drawn from p_(N+1), else from norm((pi_i p_(i+1) - q_(i+1))+).
pub fn accept<E>(
    guesses: &[Guess],
    position: usize,
    target: &mut impl FnMut(Option<usize>) -> Result<Distribution, E>,
    random: &mut impl Randomness,
) -> Result<Verdict, E> {
    let mut p = target(None)?;
    // pi_i and p_(i+1) of the longest accepted prefix.
    let mut accepted = (0, 1.0, p.clone());
    let mut reached = 1.0;
    for (index, guess) in guesses.iter().enumerate() {
        reached = (reached * p.probability(guess.token) / drawn_probability(guess)).min(1.0);
        if reached == 0.0 {
            // pi is 0 for all later tokens too.
            break;
        }
        p = target(Some(index))?;
        let threshold = guesses.get(index + 1).map_or(reached, |next| {
            let rest = excess(&p, reached, next);
            let whole = rest + 1.0 - reached;
            // 0 / 0 where p and q are equal: the later tokens will be accepted.
            if whole > 0.0 { rest / whole } else { 1.0 }
        });
        if random.accepts(threshold) {
            accepted = (index + 1, reached, p.clone());
        }
    }
    let (length, reached, p) = accepted;
    let rest = guesses.get(length).and_then(|next| residual(&p, reached, next));
    Ok(Verdict {
        path: (0..length).collect(),
        rejected: (length..guesses.len()).take(1).collect(),
        // The residual is empty only when p and q differ by rounding alone.
        extra: random.draw(position + length, rest.as_ref().unwrap_or(&p)),
    })
}

fn drawn_probability(guess: &Guess) -> f64 {
    guess.drawn_from.as_ref().map_or(1.0, |q| q.probability(guess.token))
}

/// Sum of (scale p - q)+, with q the distribution `guess` was drawn from.
fn excess(p: &Distribution, scale: f64, guess: &Guess) -> f64 {
    match &guess.drawn_from {
        Some(q) => p.excess(scale, q),
        None => p.excess(scale, &Distribution::point(guess.token)),
    }
}

fn residual(p: &Distribution, scale: f64, guess: &Guess) -> Option<Distribution> {
    match &guess.drawn_from {
        Some(q) => p.residual(scale, q),
        None => p.residual(scale, &Distribution::point(guess.token)),
    }
}
