//! How the token before a place changes the scores that a block's row has of it: DSpark's Markov head adds to all of
//! them, DFlash 2's selector to those of the likeliest and leaves out the others. What DSpark's confidence makes of it.

use super::block_head::{BlockHead, Confidence, Markov, Selector};
use super::model::CpuModel;
use super::pass::Phases;
use crate::error::Result;
use crate::forward::{Row, Runner};
use crate::token::TokenId;
use crate::tree::TokenTree;

/// What a pass gave for a place.
#[derive(Clone, Copy)]
pub struct Scored<'a> {
    pub scores: Row<'a>,
    /// What a selector knows of it, `[rank]`.
    pub place: &'a [f32],
    /// The normed state, `[hidden]`.
    pub state: &'a [f32],
}

impl CpuModel {
    /// See [`Runner::row_after`].
    pub(super) fn after(&mut self, row: usize, before: TokenId) -> Result<(Row<'_>, Option<f32>)> {
        let Some(head) = &self.network.block_head else { return Ok((self.logits().row(row), None)) };
        let rank = self.config.block().and_then(|block| block.selector).map_or(0, |sizes| sizes.rank);
        let scored = Scored {
            scores: self.logits().row(row),
            place: self.workspace.place(row, rank),
            state: self.workspace.scored_row(row, self.config.hidden),
        };
        let (scores, confidence) = after(head, scored, before, |markov, of_before| {
            let tree = TokenTree::default();
            let phases: Phases<'_> = self.phases(&tree);
            phases.put_before(of_before);
            self.team.run(self.members(1), &|member| phases.add_markov(member, markov));
            Ok(self.workspace.bias().to_vec())
        })?;
        match scores {
            None => Ok((self.logits().row(row), confidence)),
            Some(scores) => {
                self.workspace.after = scores;
                Ok((Row::of(&self.workspace.after), confidence))
            }
        }
    }
}

/// The scores of a place after the token `before`, `None` where it does not change them, and how sure the head is.
/// `bias` gives what a token adds to all scores, by what is known of it: `[vocabulary]` and more.
///
/// # Errors
/// Those of `bias`.
pub fn after(
    head: &BlockHead,
    scored: Scored<'_>,
    before: TokenId,
    bias: impl FnOnce(&Markov, &[f32]) -> Result<Vec<f32>>,
) -> Result<(Option<Vec<f32>>, Option<f32>)> {
    let of_before = of_before(head, before);
    let confidence = head.confidence.as_ref().map(|confidence| sure(confidence, scored.state, &of_before));
    let scores = match head {
        BlockHead { markov: Some(markov), .. } => {
            let (scores, bias) = (scored.scores.logits()?, bias(markov, &of_before)?);
            Some(scores.iter().zip(&bias).map(|(score, bias)| score + bias).collect())
        }
        BlockHead { selector: Some(selector), .. } => Some(selected(selector, scored, &of_before)?),
        _ => None,
    };
    Ok((scores, confidence))
}

/// The scores of a place's candidates by what goes together with the token before and the place.
fn selected(selector: &Selector, scored: Scored<'_>, of_before: &[f32]) -> Result<Vec<f32>> {
    let together: Vec<f32> =
        of_before.iter().zip(scored.place).map(|(before, place)| before * place).collect();
    let mut after = vec![0.0; of_before.len()];
    let mut scores = vec![f32::NEG_INFINITY; selector.after.rows()];
    let candidates = selector.candidates.min(scores.len());
    for (token, score) in scored.scores.top(candidates)? {
        selector.after.unpack_row(token as usize, &mut after);
        scores[token as usize] = score + dot(&together, &after);
    }
    Ok(scores)
}

/// sigmoid(weight * [state; before] + bias)
fn sure(confidence: &Confidence, state: &[f32], of_before: &[f32]) -> f32 {
    let (of_state, of_token) = confidence.weight[..confidence.inputs].split_at(state.len());
    let sum = dot(of_state, state) + dot(of_token, of_before);
    1.0 / (1.0 + (-(sum + confidence.bias)).exp())
}

/// What the head knows of a token before; nothing where it does not look at it.
fn of_before(head: &BlockHead, before: TokenId) -> Vec<f32> {
    let markov = head.markov.as_ref().map(|markov| &markov.before);
    let table = markov.or(head.selector.as_ref().map(|selector| &selector.before));
    table.map_or_else(Vec::new, |table| {
        let mut row = vec![0.0; table.inputs()];
        table.unpack_row(before as usize, &mut row);
        row
    })
}

/// Of two vectors, as far as both go.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}
