//! Effect of the token before on a position's scores, and the confidence in it. DSpark's Markov
//! bias is added to all scores. DFlash 2's selector adjusts the likeliest tokens and drops the
//! others.

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::block_head::{BlockHead, Confidence, Markov, Selector};
use super::exp;
use super::head::Head;
use super::model::CpuExecutor;
use super::pass::PassContext;
use crate::Row;
use crate::cached::Executor;
use crate::tree::TokenTree;

/// Output of a pass for one position.
#[derive(Clone, Copy)]
pub struct PositionScores<'a> {
    pub scores: Row<'a>,
    /// The selector's factor, `[rank]`.
    pub factor: &'a [f32],
    /// The normed state, `[hidden]`.
    pub state: &'a [f32],
}

impl CpuExecutor {
    /// Implements [`Executor::row_after`].
    pub(super) fn rescore(&mut self, row: usize, before: TokenId) -> Result<(Row<'_>, Option<f32>)> {
        let Some(head) = self.network.head.as_ref().and_then(Head::block) else {
            return Ok((self.logits().row(row), None));
        };
        let rank = self.config.block().and_then(|block| block.selector).map_or(0, |sizes| sizes.rank);
        let scored = PositionScores {
            scores: self.logits().row(row),
            factor: self.workspace.position_factor(row, rank),
            state: self.workspace.scored_row(row, self.config.hidden),
        };
        let (scores, confidence) = rescore(head, scored, before, |markov, factor| {
            let tree = TokenTree::default();
            let context: PassContext<'_> = self.pass_context(&tree);
            context.load_previous(factor);
            self.team.run(self.members(1), &|member| context.compute_markov_bias(member, markov));
            Ok(self.workspace.markov_bias().to_vec())
        })?;
        match scores {
            None => Ok((self.logits().row(row), confidence)),
            Some(scores) => {
                self.workspace.rescored = scores;
                Ok((Row::of(&self.workspace.rescored), confidence))
            }
        }
    }
}

/// Returns the scores of a position after the token `before`, `None` if they do not depend on it,
/// and the confidence in them. `bias` computes the Markov bias from the token's factor,
/// `[vocabulary]` and padding.
///
/// # Errors
/// As `bias`.
pub fn rescore(
    head: &BlockHead,
    scored: PositionScores<'_>,
    before: TokenId,
    bias: impl FnOnce(&Markov, &[f32]) -> Result<Vec<f32>>,
) -> Result<(Option<Vec<f32>>, Option<f32>)> {
    let previous = previous_factor(head, before);
    let confidence =
        head.confidence.as_ref().map(|confidence| confidence_in(confidence, scored.state, &previous));
    let scores = match head {
        BlockHead { markov: Some(markov), .. } => {
            let (scores, bias) = (scored.scores.logits()?, bias(markov, &previous)?);
            Some(scores.iter().zip(&bias).map(|(score, bias)| score + bias).collect())
        }
        BlockHead { selector: Some(selector), .. } => Some(select(selector, scored, &previous)?),
        _ => None,
    };
    Ok((scores, confidence))
}

/// Scores the candidates of a position after the token before it.
fn select(selector: &Selector, scored: PositionScores<'_>, previous: &[f32]) -> Result<Vec<f32>> {
    let factors: Vec<f32> =
        previous.iter().zip(scored.factor).map(|(previous, factor)| previous * factor).collect();
    let mut after = vec![0.0; previous.len()];
    let mut scores = vec![f32::NEG_INFINITY; selector.after.rows()];
    let candidates = selector.candidates.min(scores.len());
    for (token, score) in scored.scores.top(candidates)? {
        selector.after.unpack_row(token as usize, &mut after);
        scores[token as usize] = score + dot(&factors, &after);
    }
    Ok(scores)
}

/// Confidence `sigmoid(weight * [state; before] + bias)`.
fn confidence_in(confidence: &Confidence, state: &[f32], previous: &[f32]) -> f32 {
    let (of_state, of_token) = confidence.weight[..confidence.inputs].split_at(state.len());
    let sum = dot(of_state, state) + dot(of_token, previous);
    1.0 / (1.0 + exp(-(sum + confidence.bias)))
}

/// Factor of the token before; empty if the head does not use it.
fn previous_factor(head: &BlockHead, before: TokenId) -> Vec<f32> {
    let markov = head.markov.as_ref().map(|markov| &markov.before);
    let table = markov.or(head.selector.as_ref().map(|selector| &selector.before));
    table.map_or_else(Vec::new, |table| {
        let mut row = vec![0.0; table.inputs()];
        table.unpack_row(before as usize, &mut row);
        row
    })
}

/// Dot product, over the length of the shorter vector.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
