//! What a pass is asked for beside caching its nodes, and what a draft head's is given beside them. Computes nothing.

use std::ops::Range;

use super::features::{Carried, Taps};
use super::sketch::Interest;
use crate::token::TokenId;

/// What a pass shall give. What is not wanted costs nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Want<'a> {
    /// The nodes whose logits are wanted; numbers that are no nodes of the tree count for nothing.
    pub rows: Range<usize>,
    /// What those rows will be asked for.
    pub interest: Interest,
    /// Tokens whose logits will be lowered or raised before they are compared, ascending: these are asked for, too.
    pub penalised: &'a [TokenId],
    /// The hidden states that are wanted of every node.
    pub features: Option<&'a Taps>,
    /// Rows need to have the first so many tokens alone; they may have more.
    pub vocabulary: usize,
    /// What a draft head is given with the nodes that are run; nothing else is given any.
    pub carried: Option<Carried<'a>>,
}

impl<'a> Want<'a> {
    /// The nodes in the cache and nothing else.
    pub fn nothing() -> Self {
        Self::rows(0..0)
    }

    /// The logits of these nodes, in whole rows of the whole vocabulary.
    pub fn rows(rows: Range<usize>) -> Self {
        Self {
            rows,
            interest: Interest::Everything,
            penalised: &[],
            features: None,
            vocabulary: usize::MAX,
            carried: None,
        }
    }

    /// The logits of all nodes.
    pub fn all_rows() -> Self {
        Self::rows(0..usize::MAX)
    }

    /// No more of the rows than this.
    #[must_use]
    pub fn interest(self, interest: Interest) -> Self {
        Self { interest, ..self }
    }

    /// Besides, the logits of these tokens, ascending, in each row.
    #[must_use]
    pub fn penalised(self, tokens: &'a [TokenId]) -> Self {
        Self { penalised: tokens, ..self }
    }

    /// Besides, these hidden states of all nodes.
    #[must_use]
    pub fn features(self, taps: &'a Taps) -> Self {
        Self { features: (!taps.is_empty()).then_some(taps), ..self }
    }

    /// Rows of no more than the first `vocabulary` tokens.
    #[must_use]
    pub fn vocabulary(self, vocabulary: usize) -> Self {
        Self { vocabulary, ..self }
    }

    /// Given this with the nodes that are run.
    #[must_use]
    pub fn carrying(self, carried: Carried<'a>) -> Self {
        Self { carried: Some(carried), ..self }
    }

    /// Of the nodes from number `first` to `end`, those whose logits are wanted, counted from `first`.
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
