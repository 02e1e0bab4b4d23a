//! Draft heads: models that read hidden states of their target.

use super::assistant::Assistant;
use super::block_head::BlockHead;
use super::{MAX_LAYERS, ModelConfig};

/// Options of a model that drafts from hidden states of another model, its target.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftHead {
    /// Layers of the target whose input states the head reads; `None` for [the
    /// default](Self::usual).
    pub entering: Option<Vec<usize>>,
    /// Width of one of these states.
    pub target_hidden: usize,
    /// Size of the input vocabulary, which is the target's. Draft tokens are
    /// `ModelConfig::vocabulary`.
    pub tokens: usize,
    pub kind: HeadKind,
}

/// Kind of a draft head, with the options of that kind.
#[derive(Debug, Clone, PartialEq)]
pub enum HeadKind {
    /// EAGLE-3 (Li et al. 2025) drafts token by token. Beside a token's embedding it reads a state:
    /// the fused states of the target at the previous token, or its own output there.
    Eagle3(Eagle3),
    /// The target's own multi-token prediction block (MTP, DeepSeek-AI 2024) drafts token by token.
    /// Its layer's input is a projection of the embedding and the target's state after the final
    /// norm.
    Mtp,
    /// A block head drafts several tokens in one pass.
    Block(BlockHead),
    /// An assistant reads the target's last hidden state and attends to the target's cache.
    Assistant(Assistant),
}

/// Options of an EAGLE-3 head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eagle3 {
    pub fused_norms: FusedNorms,
    /// True if the residual that attention adds to is the normalised state.
    pub normed_residual: bool,
    /// True if the state passed on to the next draft token is taken after the final norm.
    pub normed_output: bool,
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

impl FusedNorms {
    /// Reads the norms from their flags in a file: one for `each` state, or one over the `whole`.
    /// Returns `None` for both, which exclude each other.
    pub(super) fn of(each: bool, whole: bool) -> Option<Self> {
        match (each, whole) {
            (true, true) => None,
            (true, false) => Some(Self::Each),
            (false, true) => Some(Self::Whole),
            (false, false) => Some(Self::None),
        }
    }
}

impl DraftHead {
    /// Returns the layers if they ascend strictly, and there is at least one and at most `most`.
    pub(super) fn checked_layers(layers: &[u64], most: usize) -> Option<Vec<usize>> {
        let sound = (1..=most).contains(&layers.len()) && layers.is_sorted_by(|left, right| left < right);
        let small = |&layer: &u64| usize::try_from(layer).ok().filter(|&layer| layer <= MAX_LAYERS);
        layers.iter().map(small).collect::<Option<Vec<_>>>().filter(|_| sound)
    }

    /// Number of states that an EAGLE-3 head fuses if its file does not list them.
    pub const STATES: usize = 3;

    /// Most states that an EAGLE-3 head may fuse.
    pub(super) const MOST_STATES: usize = 8;

    /// Divisors of the vocabulary that an MTP block scores in part, smallest part first, when the
    /// text's tokens lie within that part.
    pub const PARTS: [usize; 2] = [4, 2];

    /// Total width of the features that the head reads per token.
    pub fn states(&self) -> usize {
        let seen = self.assistant().map_or(0, |assistant| assistant.seen);
        (self.entering_states() + usize::from(self.reads_last())) * self.target_hidden + seen
    }

    /// Number of the target's layers whose input states the head reads.
    pub(crate) fn entering_states(&self) -> usize {
        self.entering.as_ref().map_or(Self::STATES, Vec::len)
    }

    /// Smallest fraction of its tokens that the head scores, as numerator and denominator.
    pub fn scored(&self) -> (usize, usize) {
        match &self.kind {
            HeadKind::Mtp => (1, Self::PARTS[0]),
            HeadKind::Assistant(Assistant { clusters: Some(clusters), .. }) => {
                (clusters.nearest, clusters.count)
            }
            HeadKind::Eagle3(_) | HeadKind::Block(_) | HeadKind::Assistant(_) => (1, 1),
        }
    }

    /// Returns whether the head reads the target's state after the final norm.
    pub fn reads_last(&self) -> bool {
        matches!(self.kind, HeadKind::Mtp | HeadKind::Assistant(_))
    }

    /// Returns whether the state passed on to the next draft token is taken after the final norm.
    pub fn normed_output(&self) -> bool {
        match &self.kind {
            HeadKind::Eagle3(head) => head.normed_output,
            HeadKind::Mtp | HeadKind::Assistant(_) => true,
            HeadKind::Block(_) => false,
        }
    }

    /// Options of an EAGLE-3 head.
    pub fn eagle3(&self) -> Option<&Eagle3> {
        match &self.kind {
            HeadKind::Eagle3(head) => Some(head),
            _ => None,
        }
    }

    /// Options of a head that drafts a block at once.
    pub fn block(&self) -> Option<&BlockHead> {
        match &self.kind {
            HeadKind::Block(block) => Some(block),
            _ => None,
        }
    }

    /// Options of a head that attends to its target's keys and values.
    pub fn assistant(&self) -> Option<&Assistant> {
        match &self.kind {
            HeadKind::Assistant(assistant) => Some(assistant),
            _ => None,
        }
    }

    /// Default layers to read for a target with `layers` layers.
    pub fn usual(layers: usize) -> Vec<usize> {
        vec![2, layers / 2, layers.saturating_sub(3)]
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
        let joins = self.draft_head.as_ref().is_some_and(|head| head.eagle3().is_some());
        self.hidden * if joins { 2 } else { 1 }
    }

    /// Options of a draft head that attends to its target's keys and values.
    pub fn assistant(&self) -> Option<&Assistant> {
        self.draft_head.as_ref()?.assistant()
    }

    /// Width of embeddings and of the state passed on to the next draft token.
    pub fn carried(&self) -> usize {
        let head = self.draft_head.as_ref().filter(|head| head.assistant().is_some());
        head.map_or(self.hidden, |head| head.target_hidden)
    }

    /// Options of a draft head that drafts a block at once.
    pub fn block(&self) -> Option<&BlockHead> {
        self.draft_head.as_ref()?.block()
    }
}
