//! Verification of a draft: turns the target's logits into distributions and applies the acceptance
//! rule.

use foretoken_forward::Logits;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use crate::accept::{Guesses, Verdict, accept};
use crate::context::After;
use crate::distribution::Distribution;
use crate::sampler::{Sampler, shown_probability};
use crate::speculation::Verification;

/// Verdict on the guesses after `context`, and the target's probability to show for each judged
/// guess. Row 0 of `logits` is the distribution after the context, row `i` the one after guess `i -
/// 1`.
pub fn judge(
    guesses: &Guesses,
    verification: Verification,
    logits: &Logits<'_>,
    context: &[TokenId],
    sampler: &mut Sampler,
) -> Result<(Verdict, Vec<Option<f32>>)> {
    let Sampler { rules, generator } = sampler;
    let position = context.len();
    let mut shown = vec![None; guesses.len()];
    let target = |parent: Option<usize>| -> Result<Distribution> {
        let row = logits.row(Guesses::row(parent));
        let after = After { text: context, guesses: &guesses.path(parent) };
        let p = rules.distribution(row, after)?;
        for (guess, shown) in guesses.iter().zip(&mut shown) {
            if guess.parent == parent {
                *shown = Some(shown_probability(&rules.sampling, row, &p, guess.token)?);
            }
        }
        Ok(p)
    };
    let verdict = accept(guesses, verification, position, target, generator)?;
    Ok((verdict, shown))
}
