//! The tokens of a block before one of its positions, as far as the position's scores depend on
//! them.

use std::sync::Arc;

use foretoken_model::token::TokenId;

use crate::pair_scores::PairScores;

/// See the module. The default is the state before a block's first token, which is the text's last
/// one.
#[derive(Debug, Clone, Default)]
pub struct BlockState {
    /// Number of the tokens.
    tokens: usize,
    /// The last of the tokens.
    last: TokenId,
    /// State of Domino's GRU after the tokens, `[gru]`; empty before the first token, and in other
    /// heads.
    recurrent: Vec<f32>,
    /// Scores of the block's candidates, in a head with LiLiCorr.
    pairs: Option<Arc<PairScores>>,
}

impl BlockState {
    /// State before a block whose candidates have these scores.
    pub(crate) fn before(pairs: Option<PairScores>) -> Self {
        Self { pairs: pairs.map(Arc::new), ..Self::default() }
    }

    /// Scores of the position in a vocabulary, if the block's candidates were scored.
    pub(crate) fn pair_scores(&self, vocabulary: usize) -> Option<Vec<f32>> {
        self.pairs.as_ref()?.row(self.position(), self.last, vocabulary)
    }

    /// State after `token`, in which a GRU has the state `recurrent`.
    pub(crate) fn after(&self, token: TokenId, recurrent: Vec<f32>) -> Self {
        Self { tokens: self.tokens + 1, last: token, recurrent, pairs: self.pairs.clone() }
    }

    /// The token before the position.
    pub(crate) fn last(&self) -> TokenId {
        self.last
    }

    /// State of Domino's GRU; empty before the first token.
    pub(crate) fn recurrent(&self) -> &[f32] {
        &self.recurrent
    }

    /// Index of the position among those that a block drafts.
    pub(crate) fn position(&self) -> usize {
        self.tokens.saturating_sub(1)
    }
}
