//! What a draft head has that guesses a block of tokens in one pass: DFlash (Chen et al. 2026), DFlash 2 and DSpark.

use crate::token::TokenId;

/// See the module. A block is the last token of the text and masks after it. Its rows see each other, and rows that are
/// made of the target's states for the text before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHead {
    /// Of a block, as it was trained.
    pub rows: usize,
    /// The token that stands in the places to be guessed.
    pub mask: TokenId,
    /// The text's last token guesses, too, and a row guesses what follows it; else each mask guesses its own place.
    pub from_anchor: bool,
    /// Of each layer whether a row sees of its block no row after it.
    pub causal: Vec<bool>,
    /// Around attention and the feed-forward network of each layer (DFlash 2).
    pub convolution: Option<Convolution>,
    /// Of the likeliest tokens of a place by the token before (DFlash 2).
    pub selector: Option<Selector>,
    /// The rank of what the token before adds to the scores of a place (DSpark).
    pub markov: Option<usize>,
    /// How sure it is of a place (DSpark).
    pub confidence: Option<Confidence>,
}

/// A dynamic causal convolution of a block's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convolution {
    /// Rows it looks at, the one it is of among them.
    pub taps: usize,
    /// Numbers of a row that share what is computed of it.
    pub group: usize,
}

/// A choice among candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    pub rank: usize,
    /// Tokens of a place that are looked at.
    pub candidates: usize,
}

/// What a confidence is computed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confidence {
    /// Numbers: the normed state, and what is known of the token before if it is looked at.
    pub inputs: usize,
    pub bias: bool,
}

impl BlockHead {
    /// The first row that guesses.
    pub fn first(&self) -> usize {
        usize::from(!self.from_anchor)
    }

    /// Tokens of a whole block.
    pub fn longest(&self) -> usize {
        self.rows - self.first()
    }
}
