//! Draft heads: models that read hidden states of their target.

use super::ModelConfig;
use super::assistant::Assistant;
use super::block_head::BlockHead;

/// Options of a model that drafts from hidden states of another model, its target.
///
/// - EAGLE-3 (Li et al. 2025) drafts token by token. Beside a token's embedding it reads a state:
///   the fused states of the target at the previous token, or its own output there.
/// - A [block for MTP](Self::mtp) drafts token by token and reads one state of the target.
/// - A [block head](BlockHead) drafts several tokens in one pass.
/// - An [assistant](Assistant) reads the target's last hidden state and attends to the target's
///   cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftHead {
    /// Layers of the target whose input states the head reads; `None` for [the
    /// default](Self::usual).
    pub entering: Option<Vec<usize>>,
    /// Width of one of these states.
    pub target_hidden: usize,
    /// Size of the input vocabulary, which is the target's. Draft tokens are
    /// `ModelConfig::vocabulary`.
    pub tokens: usize,
    pub fused_norms: FusedNorms,
    /// True if the residual that attention adds to is the normalised state.
    pub normed_residual: bool,
    /// True if the state passed on to the next draft token is taken after the final norm.
    pub normed_output: bool,
    /// Options of a head that drafts a block at once; it has none of the three above.
    pub block: Option<BlockHead>,
    /// True if the head is the target's own multi-token prediction block (MTP, DeepSeek-AI 2024).
    /// Its layer's input is a projection of the embedding and the target's state after the final
    /// norm.
    pub mtp: bool,
    /// Options of a head that attends to its target's keys and values.
    pub assistant: Option<Assistant>,
}

/// Normalisation of the target's states before they are fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedNorms {
    None,
    /// One norm over all states as one vector.
    Whole,
    /// One norm for each state.
    Each,
}

impl DraftHead {
    /// Number of states that a token-by-token head fuses.
    pub const STATES: usize = 3;

    /// Divisors of the vocabulary that an MTP block scores in part, smallest part first, when the
    /// text's tokens lie within that part.
    pub const PARTS: [usize; 2] = [4, 2];

    /// Total width of the features that the head reads per token.
    pub fn states(&self) -> usize {
        let entering = self.entering.as_ref().map_or(Self::STATES, Vec::len);
        let seen = self.assistant.as_ref().map_or(0, |assistant| assistant.seen);
        (entering + usize::from(self.reads_last())) * self.target_hidden + seen
    }

    /// Smallest fraction of its tokens that the head scores, as numerator and denominator.
    pub fn scored(&self) -> (usize, usize) {
        let clusters = self.assistant.as_ref().and_then(|assistant| assistant.clusters);
        let of_all = if self.mtp { (1, Self::PARTS[0]) } else { (1, 1) };
        clusters.map_or(of_all, |clusters| (clusters.nearest, clusters.count))
    }

    /// Returns whether the head reads the target's state after the final norm.
    pub fn reads_last(&self) -> bool {
        self.mtp || self.assistant.is_some()
    }

    /// Returns whether the head fuses several states of a token, and drafts token by token.
    pub fn fuses(&self) -> bool {
        self.block.is_none() && !self.reads_last()
    }

    /// Default layers to read for a target with `layers` layers.
    pub fn usual(layers: usize) -> Vec<usize> {
        vec![2, layers / 2, layers.saturating_sub(3)]
    }

    /// Number and size of the norms before states are fused.
    pub fn norms(&self) -> (usize, usize) {
        match self.fused_norms {
            FusedNorms::None => (0, 0),
            FusedNorms::Whole => (1, Self::STATES * self.target_hidden),
            FusedNorms::Each => (Self::STATES, self.target_hidden),
        }
    }
}

impl ModelConfig {
    /// Size of the input vocabulary: token ids of a pass are below this.
    pub fn tokens(&self) -> usize {
        self.draft_head.as_ref().map_or(self.vocabulary, |head| head.tokens)
    }

    /// Input width of attention: the hidden size, twice that in a head that fuses states, because
    /// it concatenates the embedding.
    pub fn mixed(&self) -> usize {
        let joins = self.draft_head.as_ref().is_some_and(DraftHead::fuses);
        self.hidden * if joins { 2 } else { 1 }
    }

    /// Options of a draft head that attends to its target's keys and values.
    pub fn assistant(&self) -> Option<&Assistant> {
        self.draft_head.as_ref()?.assistant.as_ref()
    }

    /// Width of embeddings and of the state passed on to the next draft token.
    pub fn carried(&self) -> usize {
        let head = self.draft_head.as_ref().filter(|head| head.assistant.is_some());
        head.map_or(self.hidden, |head| head.target_hidden)
    }

    /// Options of a draft head that drafts a block at once.
    pub fn block(&self) -> Option<&BlockHead> {
        self.draft_head.as_ref()?.block.as_ref()
    }
}
