//! Block heads, which draft a block of tokens in one pass: DFlash (Chen et al. 2026), DFlash 2,
//! DSpark, Domino, LiLiCorr.

use crate::token::TokenId;

/// Options of a block head. A block is the text's last token followed by mask tokens. Its rows
/// attend to each other, and to rows computed from the target's states for the preceding text.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockHead {
    /// Rows of a block, as trained.
    pub rows: usize,
    /// Mask token, at the positions to draft.
    pub mask: TokenId,
    /// True if the text's last token drafts too, and each row predicts the next token (DSpark, most
    /// Domino heads).
    /// Otherwise each mask predicts the token at its own position.
    pub from_anchor: bool,
    /// For each layer, whether a row attends only to earlier rows of its block.
    pub causal: Vec<bool>,
    /// Convolutions around attention and the feed-forward network of each layer (DFlash 2).
    pub convolution: Option<Convolution>,
    /// Correction of a position's logits by the block's tokens before it.
    pub correction: Option<Correction>,
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

/// Correction of a position's logits by the tokens before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Correction {
    /// The previous token adds a low-rank bias to all logits (DSpark).
    Markov { rank: usize },
    /// The previous token selects among the top candidates (DFlash 2).
    Selector(Selector),
    /// A GRU over the block's tokens adds a low-rank bias (Domino).
    Domino(Domino),
    /// A transformer over the top candidates of all positions scores pairs of neighbours
    /// (LiLiCorr).
    LiliCorr(LiliCorr),
}

/// Options of LiLiCorr's transformer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiliCorr {
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    /// Width of a layer's feed-forward network.
    pub intermediate: usize,
    /// Number of candidates at a position.
    pub candidates: usize,
    /// Length of the vectors whose products are the scores.
    pub factors: usize,
    /// Smallest norm that these vectors are divided by.
    pub epsilon: f32,
    /// Factor of the scores.
    pub scale: f32,
}

impl LiliCorr {
    /// Most candidates at a position.
    pub(super) const MOST_CANDIDATES: usize = 64;

    /// Most candidates of all positions, which attend to each other.
    pub(super) const MOST_NODES: usize = 1 << 12;
}

/// Sizes of Domino's correction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Domino {
    /// Size of the GRU's state.
    pub gru: usize,
    /// Rank of the bias.
    pub rank: usize,
    /// Number of positions, from the first, whose logits are not corrected.
    pub plain_prefix: usize,
}

impl Domino {
    /// Number of a position's top candidates that are corrected; other tokens are not drafted.
    pub const CANDIDATES: usize = 64;
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

    /// Rank of the Markov bias, in a head that has one.
    pub fn markov(&self) -> Option<usize> {
        match self.correction {
            Some(Correction::Markov { rank }) => Some(rank),
            _ => None,
        }
    }

    /// Sizes of the selector, in a head that has one.
    pub fn selector(&self) -> Option<Selector> {
        match self.correction {
            Some(Correction::Selector(selector)) => Some(selector),
            _ => None,
        }
    }

    /// Options of LiLiCorr, in a head that has it.
    pub fn lilicorr(&self) -> Option<LiliCorr> {
        match self.correction {
            Some(Correction::LiliCorr(lilicorr)) => Some(lilicorr),
            _ => None,
        }
    }

    /// Sizes of Domino's correction, in a head that has one.
    pub fn domino(&self) -> Option<Domino> {
        match self.correction {
            Some(Correction::Domino(domino)) => Some(domino),
            _ => None,
        }
    }
}
