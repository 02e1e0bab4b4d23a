//! Scores of a block's candidates by the candidate before them (LiLiCorr).

use foretoken_model::token::TokenId;

/// See the module.
#[derive(Debug)]
pub struct PairScores {
    /// Candidates of each position, likeliest first.
    pub candidates: Vec<Vec<TokenId>>,
    /// Scores of the first position's candidates.
    pub start: Vec<f32>,
    /// Scores of each candidate of a position after each candidate of the one before, `[positions -
    /// 1, candidates before, candidates]`.
    pub pairs: Vec<Vec<Vec<f32>>>,
}

impl PairScores {
    /// Scores of all tokens of a vocabulary at a position after the token `before`; other tokens
    /// than candidates are excluded. `None` if `before` is not a candidate.
    pub fn row(&self, position: usize, before: TokenId, vocabulary: usize) -> Option<Vec<f32>> {
        let scores = match position.checked_sub(1) {
            None => &self.start,
            Some(last) => {
                let before = self.candidates.get(last)?.iter().position(|&token| token == before)?;
                self.pairs.get(last)?.get(before)?
            }
        };
        let mut row = vec![f32::NEG_INFINITY; vocabulary];
        for (&token, &score) in self.candidates.get(position)?.iter().zip(scores) {
            row[token as usize] = score;
        }
        Some(row)
    }
}
