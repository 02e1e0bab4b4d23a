//! Requests to a pass: outputs beside caching its nodes, and the inputs of draft heads. Computes
//! nothing.

use std::ops::Range;

use foretoken_model::token::TokenId;

use super::features::{HeadInput, Taps};
use super::sketch::LogitSubset;

/// Outputs requested from a pass. What is not requested costs nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Want<'a> {
    /// Nodes whose logits are requested; indices outside the tree are ignored.
    pub rows: Range<usize>,
    /// Subset of those rows that will be read.
    pub subset: LogitSubset,
    /// Tokens whose logits penalties will change before comparison, ascending; their logits are
    /// returned too.
    pub penalised: &'a [TokenId],
    /// Hidden states requested for every node.
    pub features: Option<&'a Taps>,
    /// Tokens of the vocabulary that rows must cover, from the first; they may cover more.
    pub vocabulary: usize,
    /// Inputs of a draft head for the nodes to run; `None` for other models.
    pub head_input: Option<HeadInput<'a>>,
}

impl<'a> Want<'a> {
    /// Caches the nodes and returns nothing.
    pub fn nothing() -> Self {
        Self::rows(0..0)
    }

    /// Requests whole rows of the whole vocabulary for these nodes.
    pub fn rows(rows: Range<usize>) -> Self {
        Self {
            rows,
            subset: LogitSubset::Everything,
            penalised: &[],
            features: None,
            vocabulary: usize::MAX,
            head_input: None,
        }
    }

    /// Requests the logits of all nodes.
    pub fn all_rows() -> Self {
        Self::rows(0..usize::MAX)
    }

    /// Limits rows to this subset.
    #[must_use]
    pub fn subset(self, subset: LogitSubset) -> Self {
        Self { subset, ..self }
    }

    /// Adds the logits of these tokens, ascending, to each row.
    #[must_use]
    pub fn penalised(self, tokens: &'a [TokenId]) -> Self {
        Self { penalised: tokens, ..self }
    }

    /// Adds these hidden states of all nodes.
    #[must_use]
    pub fn features(self, taps: &'a Taps) -> Self {
        Self { features: (!taps.is_empty()).then_some(taps), ..self }
    }

    /// Limits rows to the first `vocabulary` tokens.
    #[must_use]
    pub fn vocabulary(self, vocabulary: usize) -> Self {
        Self { vocabulary, ..self }
    }

    /// Supplies the head inputs of the nodes to run.
    #[must_use]
    pub fn head_input(self, head_input: HeadInput<'a>) -> Self {
        Self { head_input: Some(head_input), ..self }
    }

    /// Indices, counted from `first`, of the nodes in `first..end` whose logits are requested.
    pub fn rows_between(&self, first: usize, end: usize) -> Range<usize> {
        let end = self.rows.end.clamp(first, end);
        self.rows.start.clamp(first, end) - first..end - first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_nodes_that_are_run() {
        assert_eq!(Want::all_rows().rows_between(2, 5), 0..3);
        assert_eq!(Want::nothing().rows_between(2, 5), 0..0);
        assert_eq!(Want::rows(1..4).rows_between(2, 5), 0..2);
        assert_eq!(Want::rows(4..9).rows_between(2, 5), 2..3);
        assert!(Want::rows(7..9).rows_between(2, 5).is_empty());
    }
}
