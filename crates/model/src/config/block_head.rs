//! Block heads, which draft a block of tokens in one pass: DFlash (Chen et al. 2026), DFlash 2,
//! DSpark.

use crate::token::TokenId;

/// Options of a block head. A block is the text's last token followed by mask tokens. Its rows
/// attend to each other, and to rows computed from the target's states for the preceding text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHead {
    /// Rows of a block, as trained.
    pub rows: usize,
    /// Mask token, at the positions to draft.
    pub mask: TokenId,
    /// True if the text's last token drafts too, and each row predicts the next token (DSpark).
    /// Otherwise each mask predicts the token at its own position.
    pub from_anchor: bool,
    /// For each layer, whether a row attends only to earlier rows of its block.
    pub causal: Vec<bool>,
    /// Convolutions around attention and the feed-forward network of each layer (DFlash 2).
    pub convolution: Option<Convolution>,
    /// Selects among a position's top candidates by the previous token (DFlash 2).
    pub selector: Option<Selector>,
    /// Rank of the Markov bias, which the previous token adds to a position's logits (DSpark).
    pub markov: Option<usize>,
    /// Predicts the confidence at each position (DSpark).
    pub confidence: Option<Confidence>,
}

/// Dynamic causal convolution over the rows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convolution {
    /// Kernel size, the current row included.
    pub taps: usize,
    /// Channels that share a kernel.
    pub group: usize,
}

/// Selector of a token among candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    pub rank: usize,
    /// Number of candidates at a position.
    pub candidates: usize,
}

/// Inputs of the confidence predictor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confidence {
    /// Width of the input: the normalised state, and the previous token's embedding if it is used.
    pub inputs: usize,
    pub bias: bool,
}

impl BlockHead {
    /// First row that drafts a token.
    pub fn first(&self) -> usize {
        usize::from(!self.from_anchor)
    }

    /// Number of draft tokens in a whole block.
    pub fn longest(&self) -> usize {
        self.rows - self.first()
    }
}
