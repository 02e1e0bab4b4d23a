//! Row of logits without the tokens that a constraint does not allow.

use std::ops::ControlFlow;

use foretoken_forward::Row;
use foretoken_grammar::Mask;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

/// Logits of the allowed tokens.
pub struct Legal {
    tokens: Vec<TokenId>,
    logits: Vec<f32>,
}

impl Legal {
    /// The tokens of `row` that are in `mask`, with their logits; `None` if none of these is
    /// finite.
    ///
    /// # Errors
    /// Errors of [`Row::logits`].
    pub fn of(row: Row<'_>, mask: &Mask) -> Result<Option<Self>> {
        let mut legal = Self { tokens: Vec::new(), logits: Vec::new() };
        if let Some(listed) = mask.listed() {
            for &token in listed {
                row.logit(token)?.iter().for_each(|&logit| legal.push(token, logit));
            }
        } else {
            let _ = row.at_least(f32::NEG_INFINITY, |token, logit| {
                if mask.allows(token) {
                    legal.push(token, logit);
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(legal.logits.iter().any(|logit| logit.is_finite()).then_some(legal))
    }

    fn push(&mut self, token: TokenId, logit: f32) {
        self.tokens.push(token);
        self.logits.push(logit);
    }

    pub fn row(&self) -> Row<'_> {
        Row::of(&self.logits).restricted_to(&self.tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legal_row_has_the_logits_of_the_allowed_tokens_alone() {
        let logits = [1.0, 7.0, f32::NAN, 3.0, f32::NEG_INFINITY, 5.0];
        let row = Row::of(&logits);
        let top = |mask: &Mask| Legal::of(row, mask).unwrap().map(|legal| legal.row().top(9).unwrap());
        let expected = Some(vec![(3, 3.0), (0, 1.0)]);
        assert_eq!(top(&Mask::only(vec![0, 3, 99])), expected);
        assert_eq!(top(&Mask::all_but(vec![1, 5])), expected);
        assert_eq!(top(&Mask::only(vec![2, 4, 99])), None);
        let odd: Vec<f32> = (0..1000).map(|token| token as f32).collect();
        let bits = Mask::of_bits(&[0xAAAA_AAAA; 32]);
        let legal = Legal::of(Row::of(&odd), &bits).unwrap().unwrap();
        assert_eq!((legal.tokens.len(), legal.row().likeliest()), (500, 999));
    }
}
