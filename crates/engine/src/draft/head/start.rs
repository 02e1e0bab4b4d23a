//! Start of a token-by-token draft: the head, its first tree and the head inputs.

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{HeadInput, Model};

/// See the module. The first guesses follow the last node of the tree.
pub(super) struct DraftStart<'a> {
    pub model: &'a mut dyn Model,
    pub tree: TokenTree,
    /// One row per node.
    pub head_input: HeadInput<'a>,
    /// Number of leading nodes that are text and stay in the head's cache.
    pub text: usize,
}
