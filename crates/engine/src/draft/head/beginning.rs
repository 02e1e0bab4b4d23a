//! How a draft begins that is guessed token by token: the head, what it runs first, and what it is given with that.

use crate::forward::{Carried, Model};
use crate::tree::TokenTree;

/// See the module. The first guesses follow the last node of the tree.
pub(super) struct Beginning<'a> {
    pub model: &'a mut dyn Model,
    pub tree: TokenTree,
    /// A row for each node.
    pub carried: Carried<'a>,
    /// The first so many nodes are text, and stay in the head's cache.
    pub text: usize,
}
