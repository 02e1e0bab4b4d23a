//! How the token before a place changes the scores that a block's row has of it: DSpark's Markov head adds to all of
//! them, DFlash 2's selector to those of the likeliest and leaves out the others. What DSpark's confidence makes of it.

use super::block_head::{BlockHead, Confidence, Markov, Selector};
use super::model::CpuModel;
use super::pass::Phases;
use crate::error::Result;
use crate::forward::{Row, Runner};
use crate::token::TokenId;
use crate::tree::TokenTree;

impl CpuModel {
    /// See [`Runner::row_after`].
    pub(super) fn after(&mut self, row: usize, before: TokenId) -> Result<(Row<'_>, Option<f32>)> {
        let Some(head) = &self.network.block_head else { return Ok((self.logits().row(row), None)) };
        let of_before = of_before(head, before);
        let confidence = head.confidence.as_ref().map(|confidence| self.sure(confidence, row, &of_before));
        let scores = match head {
            BlockHead { markov: Some(markov), .. } => self.biased(markov, row, &of_before)?,
            BlockHead { selector: Some(selector), .. } => self.selected(selector, row, &of_before)?,
            _ => return Ok((self.logits().row(row), confidence)),
        };
        self.workspace.after = scores;
        Ok((Row::of(&self.workspace.after), confidence))
    }

    /// All scores of a row, to which is added what the token before says.
    fn biased(&self, markov: &Markov, row: usize, of_before: &[f32]) -> Result<Vec<f32>> {
        let tree = TokenTree::default();
        let phases: Phases<'_> = self.phases(&tree);
        phases.put_before(of_before);
        self.team.run(self.members(1), &|member| phases.add_markov(member, markov));
        let scores = self.logits().row(row).logits()?;
        Ok(scores.iter().zip(self.workspace.bias()).map(|(score, bias)| score + bias).collect())
    }

    /// The scores of a row's candidates by what goes together with the token before and the place.
    fn selected(&self, selector: &Selector, row: usize, of_before: &[f32]) -> Result<Vec<f32>> {
        let rank = of_before.len();
        let place = self.workspace.place(row, rank);
        let together: Vec<f32> = of_before.iter().zip(place).map(|(before, place)| before * place).collect();
        let mut after = vec![0.0; rank];
        let mut scores = vec![f32::NEG_INFINITY; self.config.vocabulary];
        let candidates = selector.candidates.min(scores.len());
        for (token, score) in self.logits().row(row).top(candidates)? {
            selector.after.unpack_row(token as usize, &mut after);
            scores[token as usize] = score + dot(&together, &after);
        }
        Ok(scores)
    }

    /// sigmoid(weight * [state; before] + bias)
    fn sure(&self, confidence: &Confidence, row: usize, of_before: &[f32]) -> f32 {
        let hidden = self.config.hidden;
        let (of_state, of_token) = confidence.weight[..confidence.inputs].split_at(hidden);
        let sum = dot(of_state, self.workspace.scored_row(row, hidden)) + dot(of_token, of_before);
        1.0 / (1.0 + (-(sum + confidence.bias)).exp())
    }
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
