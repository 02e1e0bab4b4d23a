//! Log probabilities of written tokens: the target's own, before mask, biases, penalties and
//! temperature, so that neither settings nor drafts change them.

use foretoken_forward::Row;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

/// Most alternatives of a token.
pub const MAX_TOP: usize = 20;

/// Natural logarithms of probabilities at one position of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprobs {
    /// The written token.
    pub token: TokenId,
    pub logprob: f32,
    /// The likeliest tokens, likeliest first.
    pub top: Vec<(TokenId, f32)>,
}

impl Logprobs {
    /// Computes them for `token` and the `top` likeliest ones from the target's whole `row`.
    ///
    /// # Errors
    /// As [`Row::logits`].
    pub fn of(row: Row<'_>, token: TokenId, top: usize) -> Result<Self> {
        let logits = row.logits()?;
        let largest = f64::from(row.largest());
        // In the order of tokens and in 64 bits, so that the same row gives the same numbers.
        let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
        let whole = largest + sum.ln();
        let logprob = |logit: f32| (f64::from(logit) - whole) as f32;
        let own = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let top = if top == 0 { Vec::new() } else { row.top(top)? };
        let top = top.into_iter().map(|(token, logit)| (token, logprob(logit))).collect();
        Ok(Self { token, logprob: logprob(own), top })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_the_softmax_are_computed_for_the_token_and_the_likeliest() {
        let logits = [0.5f32, 0.25, 0.25, 0.0].map(f32::ln).map(|logit| logit + 3.0);
        let found = Logprobs::of(Row::of(&logits), 2, 2).unwrap();
        assert!((found.logprob - 0.25f32.ln()).abs() < 1e-6, "{found:?}");
        assert_eq!(found.top.iter().map(|&(token, _)| token).collect::<Vec<_>>(), [0, 1]);
        assert!((found.top[0].1 - 0.5f32.ln()).abs() < 1e-6, "{found:?}");
        assert_eq!(Logprobs::of(Row::of(&logits), 3, 0).unwrap().logprob, f32::NEG_INFINITY);
        assert_eq!(Logprobs::of(Row::of(&logits), 0, 9).unwrap().top.len(), 3, "without impossible ones");
    }
}
