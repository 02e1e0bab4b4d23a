//! Effect of a block's tokens on the scores of the position after them, and the confidence in it.
//! DSpark's Markov bias is added to all scores. DFlash 2's selector and Domino's GRU adjust the
//! likeliest tokens and drop the others.

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::block_head::{BlockHead, Confidence, Correction, Selector};
use super::exp;
use super::head::Head;
use super::model::CpuExecutor;
use super::panels::Panels;
use super::pass::PassContext;
use super::reference::rms_norm;
use crate::cached::Executor;
use crate::lilicorr::{Block, candidates};
use crate::pair_scores::PairScores;
use crate::tree::TokenTree;
use crate::{BlockState, Features, Row};

/// Output of a pass for one position.
#[derive(Clone, Copy)]
pub struct PositionScores<'a> {
    pub scores: Row<'a>,
    /// The selector's factor, `[rank]`.
    pub factor: &'a [f32],
    /// The normed state, `[hidden]`.
    pub state: &'a [f32],
}

/// Multiplies a correction's matrix with a row. The product may have padding at its end.
pub type Multiply<'a> = dyn FnMut(&Panels, &[f32]) -> Result<Vec<f32>> + 'a;

impl CpuExecutor {
    /// Implements [`Executor::row_after`].
    pub(super) fn rescore(&mut self, row: usize, state: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        let Some(head) = self.network.head.as_ref().and_then(Head::block) else {
            return Ok((self.logits().row(row), None));
        };
        let selector = self.config.block().and_then(|block| block.selector());
        let rank = selector.map_or(0, |sizes| sizes.rank);
        let scored = PositionScores {
            scores: self.logits().row(row),
            factor: self.workspace.position_factor(row, rank),
            state: self.workspace.scored_row(row, self.config.hidden),
        };
        let (scores, confidence) =
            rescore(head, scored, state, &mut |weights, row| Ok(self.multiply_row(weights, row)))?;
        match scores {
            None => Ok((self.logits().row(row), confidence)),
            Some(scores) => {
                self.workspace.rescored = scores;
                Ok((Row::of(&self.workspace.rescored), confidence))
            }
        }
    }

    /// Implements [`Executor::next_state`].
    pub(super) fn state_after(&self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        let head = self.network.head.as_ref().and_then(Head::block);
        let embedding = self.network.embedding.as_deref();
        next_state(head, embedding, state, token, &mut |weights, row| Ok(self.multiply_row(weights, row)))
    }

    /// Scores the candidates of the last block, see [`Executor::pair_scores`].
    pub(super) fn score_pairs(&self, anchor: Features<'_>) -> Result<Option<PairScores>> {
        let head = self.network.head.as_ref().and_then(Head::block);
        let Some((head, embedding)) = head.zip(self.network.embedding.as_deref()) else { return Ok(None) };
        let Some(Correction::LiliCorr(lilicorr)) = &head.correction else { return Ok(None) };
        let rows = 0..self.logits().rows();
        let found = candidates(rows.clone().map(|row| self.logits().row(row)), lilicorr.candidates())?;
        let Some(candidates) = found else { return Ok(None) };
        let tokens = candidates.iter().flatten();
        let embeddings: Vec<f32> = tokens.flat_map(|&(token, _)| unpacked(embedding, token)).collect();
        let states: Vec<f32> =
            rows.flat_map(|row| self.workspace.scored_row(row, self.config.hidden)).copied().collect();
        let fused = self.multiply(&head.fuse, anchor.row(0), 1);
        let norm = &head.fused_norm[..self.config.hidden];
        let anchor = rms_norm(&fused, norm, self.config.norm_epsilon as f32);
        let block =
            Block { candidates: &candidates, embeddings: &embeddings, states: &states, anchor: &anchor };
        let multiply = &mut |weights: &Panels, rows: &[f32], count| Ok(self.multiply(weights, rows, count));
        lilicorr.scores(&block, multiply).map(Some)
    }

    /// Multiplies a correction's matrix with a row.
    fn multiply_row(&self, weights: &Panels, row: &[f32]) -> Vec<f32> {
        self.multiply(weights, row, 1)
    }

    /// Multiplies a correction's matrix with `count` rows.
    fn multiply(&self, weights: &Panels, rows: &[f32], count: usize) -> Vec<f32> {
        let tree = TokenTree::default();
        let context: PassContext<'_> = self.pass_context(&tree);
        context.load_correction(rows, count);
        let members = self.members(count);
        self.team.run(members, &|member| context.multiply_correction(member, weights, count));
        let product = |row| self.workspace.correction_output(row, weights.rows()).iter().copied();
        (0..count).flat_map(product).collect()
    }
}

/// Returns the state after `state` and another `token`, whose embedding a GRU reads from
/// `embedding`.
///
/// # Errors
/// As `multiply`.
pub fn next_state(
    head: Option<&BlockHead>,
    embedding: Option<&Panels>,
    state: &BlockState,
    token: TokenId,
    multiply: &mut Multiply<'_>,
) -> Result<BlockState> {
    let recurrent = match (head.and_then(|head| head.correction.as_ref()), embedding) {
        (Some(Correction::Domino(domino)), Some(embedding)) => {
            domino.step(state.recurrent(), &unpacked(embedding, token), multiply)?
        }
        _ => Vec::new(),
    };
    Ok(state.after(token, recurrent))
}

/// Returns the scores of a position after the tokens of `state`, `None` if they do not depend on
/// them, and the confidence in the position.
///
/// # Errors
/// As `multiply`, and errors of fetching the scores.
pub fn rescore(
    head: &BlockHead,
    scored: PositionScores<'_>,
    state: &BlockState,
    multiply: &mut Multiply<'_>,
) -> Result<(Option<Vec<f32>>, Option<f32>)> {
    let previous = previous_factor(head, state.last());
    let confidence =
        head.confidence.as_ref().map(|confidence| confidence_in(confidence, scored.state, &previous));
    let scores = match &head.correction {
        Some(Correction::Markov(markov)) => {
            let (scores, bias) = (scored.scores.logits()?, multiply(&markov.after, &previous)?);
            Some(scores.iter().zip(&bias).map(|(score, bias)| score + bias).collect())
        }
        Some(Correction::Selector(selector)) => Some(select(selector, scored, &previous)?),
        Some(Correction::Domino(domino)) if state.position() >= domino.plain_prefix => {
            Some(domino.scores(scored, state.recurrent(), multiply)?)
        }
        _ => None,
    };
    Ok((scores, confidence))
}

/// Scores the candidates of a position after the token before it.
fn select(selector: &Selector, scored: PositionScores<'_>, previous: &[f32]) -> Result<Vec<f32>> {
    let factors: Vec<f32> =
        previous.iter().zip(scored.factor).map(|(previous, factor)| previous * factor).collect();
    add_to_top(scored.scores, selector.candidates, &selector.after, &factors)
}

/// Adds a low-rank bias to the scores of the top `candidates`, and drops all other tokens. The bias
/// of a token is the product of its row of `after` with `factors`.
///
/// # Errors
/// Errors of fetching the scores.
pub fn add_to_top(scores: Row<'_>, candidates: usize, after: &Panels, factors: &[f32]) -> Result<Vec<f32>> {
    let mut row = vec![0.0; after.inputs()];
    let mut added = vec![f32::NEG_INFINITY; after.rows()];
    for (token, score) in scores.top(candidates.min(added.len()))? {
        after.unpack_row(token as usize, &mut row);
        added[token as usize] = score + dot(factors, &row);
    }
    Ok(added)
}

/// Confidence `sigmoid(weight * [state; before] + bias)`.
fn confidence_in(confidence: &Confidence, state: &[f32], previous: &[f32]) -> f32 {
    let (of_state, of_token) = confidence.weight[..confidence.inputs].split_at(state.len());
    let sum = dot(of_state, state) + dot(of_token, previous);
    1.0 / (1.0 + exp(-(sum + confidence.bias)))
}

/// Factor of the token before; empty if the head does not use it.
fn previous_factor(head: &BlockHead, before: TokenId) -> Vec<f32> {
    match &head.correction {
        Some(Correction::Markov(markov)) => unpacked(&markov.before, before),
        Some(Correction::Selector(selector)) => unpacked(&selector.before, before),
        Some(Correction::Domino(_) | Correction::LiliCorr(_)) | None => Vec::new(),
    }
}

/// The row of `token` in a table.
fn unpacked(table: &Panels, token: TokenId) -> Vec<f32> {
    let mut row = vec![0.0; table.inputs()];
    table.unpack_row(token as usize, &mut row);
    row
}

/// Dot product, over the length of the shorter vector.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
