//! What makes a model a draft head: the hidden states of its target that it reads.

use super::ModelConfig;
use super::assistant::Assistant;
use super::block_head::BlockHead;

/// What a model has that drafts from hidden states of another, its target.
///
/// Token by token (EAGLE-3, Li et al. 2025) it gets beside a token's embedding a state: the target's states at the
/// token before, fused, or what it gave itself there. So does a [block for MTP](Self::mtp), which reads one state. With a
/// [block](BlockHead) it guesses several tokens at once. An [assistant](Assistant) reads that state of the last token and
/// attends to what the target cached of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftHead {
    /// The layers of the target whose entering states it reads; `None` where the file leaves them to
    /// [a rule](Self::usual).
    pub entering: Option<Vec<usize>>,
    /// Numbers of one of these states.
    pub target_hidden: usize,
    /// Tokens that it can be fed, which are the target's. Those it guesses are `ModelConfig::vocabulary` of them.
    pub tokens: usize,
    pub fused_norms: FusedNorms,
    /// What attention adds to is the normed state.
    pub normed_residual: bool,
    /// What it gives for the token after is its state after the final norm, and not before it.
    pub normed_output: bool,
    /// Of one that guesses a block of tokens at once. Of the three above it has none.
    pub block: Option<BlockHead>,
    /// It is a block of its target's own that was trained with it to predict a further token (multi-token prediction,
    /// DeepSeek-AI 2024): it reads the target's state after the final norm and nothing else, and joins that with the
    /// embedding into the state that enters its layer.
    pub mtp: bool,
    /// Of one that attends to its target's keys and values.
    pub assistant: Option<Assistant>,
}

/// How the target's states are normalised before they are fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedNorms {
    None,
    /// All as one vector.
    Whole,
    /// Each by itself.
    Each,
}

impl DraftHead {
    /// States that are fused, of a head that drafts token by token.
    pub const STATES: usize = 3;

    /// The parts of its vocabulary that a block for MTP guesses from, shortest first, where what is written lies in them.
    pub const PARTS: [usize; 2] = [4, 2];

    /// Numbers of all that it reads of a token.
    pub fn states(&self) -> usize {
        let entering = self.entering.as_ref().map_or(Self::STATES, Vec::len);
        let seen = self.assistant.as_ref().map_or(0, |assistant| assistant.seen);
        (entering + usize::from(self.reads_last())) * self.target_hidden + seen
    }

    /// The share of its tokens that it scores at least, as a numerator and a denominator.
    pub fn scored(&self) -> (usize, usize) {
        let clusters = self.assistant.as_ref().and_then(|assistant| assistant.clusters);
        let of_all = if self.mtp { (1, Self::PARTS[0]) } else { (1, 1) };
        clusters.map_or(of_all, |clusters| (clusters.nearest, clusters.count))
    }

    /// Whether it reads the target's state after the final norm.
    pub fn reads_last(&self) -> bool {
        self.mtp || self.assistant.is_some()
    }

    /// Whether it fuses several states of a token, and drafts token by token.
    pub fn fuses(&self) -> bool {
        self.block.is_none() && !self.reads_last()
    }

    /// The layers that are read where a file does not name them, of a target with so many.
    pub fn usual(layers: usize) -> Vec<usize> {
        vec![2, layers / 2, layers.saturating_sub(3)]
    }

    /// Norms before the states are fused, and numbers in each.
    pub fn norms(&self) -> (usize, usize) {
        match self.fused_norms {
            FusedNorms::None => (0, 0),
            FusedNorms::Whole => (1, Self::STATES * self.target_hidden),
            FusedNorms::Each => (Self::STATES, self.target_hidden),
        }
    }
}

impl ModelConfig {
    /// Tokens that a pass may be fed: ids are below this.
    pub fn tokens(&self) -> usize {
        self.draft_head.as_ref().map_or(self.vocabulary, |head| head.tokens)
    }

    /// Numbers that attention takes of a token: its state, and in a draft head that fuses states its embedding as well.
    pub fn mixed(&self) -> usize {
        let joins = self.draft_head.as_ref().is_some_and(DraftHead::fuses);
        self.hidden * if joins { 2 } else { 1 }
    }

    /// Of a draft head that attends to its target's keys and values.
    pub fn assistant(&self) -> Option<&Assistant> {
        self.draft_head.as_ref()?.assistant.as_ref()
    }

    /// Numbers of the embedding of a token, and of the state after the last layer as a draft head goes on with it.
    pub fn carried(&self) -> usize {
        let head = self.draft_head.as_ref().filter(|head| head.assistant.is_some());
        head.map_or(self.hidden, |head| head.target_hidden)
    }

    /// Of a draft head that guesses a block at once.
    pub fn block(&self) -> Option<&BlockHead> {
        self.draft_head.as_ref()?.block.as_ref()
    }
}
