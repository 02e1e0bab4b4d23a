//! Tree of tokens that a model runs in one pass; a chain is a tree with one branch.
//!
//! Defines positions and visibility, not probabilities.

use foretoken_model::token::TokenId;

/// A token and its parent; `None` for one that follows the cached tokens directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    pub token: TokenId,
    pub parent: Option<usize>,
}

/// Nodes in topological order: parents come before their children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenTree {
    nodes: Vec<Node>,
}

impl TokenTree {
    /// A tree in which each token follows the one before it.
    pub fn chain(tokens: impl IntoIterator<Item = TokenId>) -> Self {
        let mut tree = Self::default();
        for token in tokens {
            tree.push(token, tree.len().checked_sub(1));
        }
        tree
    }

    /// Adds a node and returns its index.
    ///
    /// # Panics
    /// If `parent` is not a node of this tree.
    pub fn push(&mut self, token: TokenId, parent: Option<usize>) -> usize {
        assert!(parent.is_none_or(|p| p < self.nodes.len()), "a parent stands before its children");
        self.nodes.push(Node { token, parent });
        self.nodes.len() - 1
    }

    /// Tree of the same shape with other tokens.
    ///
    /// # Panics
    /// If there are not as many as nodes.
    pub fn with_tokens(&self, tokens: &[TokenId]) -> Self {
        assert_eq!(tokens.len(), self.len(), "a token for each node");
        let nodes = self.nodes.iter().zip(tokens).map(|(node, &token)| Node { token, ..*node });
        Self { nodes: nodes.collect() }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns true if each token follows the one before it.
    pub fn is_chain(&self) -> bool {
        self.nodes.iter().enumerate().all(|(index, node)| node.parent == index.checked_sub(1))
    }

    /// # Panics
    /// If there is no such node.
    pub fn token(&self, node: usize) -> TokenId {
        self.nodes[node].token
    }

    /// # Panics
    /// If there is no such node.
    pub fn parent(&self, node: usize) -> Option<usize> {
        self.nodes[node].parent
    }

    pub fn tokens(&self) -> impl Iterator<Item = TokenId> {
        self.nodes.iter().map(|node| node.token)
    }

    /// Distance of every node from the cached tokens: 0 for nodes that follow them directly.
    ///
    /// A node's rotary position is the cached length plus its depth, not plus its index.
    pub fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.len());
        for node in &self.nodes {
            depths.push(node.parent.map_or(0, |parent| depths[parent] + 1));
        }
        depths
    }

    /// Nodes that each node attends to, ascending: its ancestors and itself.
    pub fn visible(&self) -> Vec<Vec<usize>> {
        let mut visible: Vec<Vec<usize>> = Vec::with_capacity(self.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let mut ancestors = node.parent.map_or_else(Vec::new, |parent| visible[parent].clone());
            ancestors.push(index);
            visible.push(ancestors);
        }
        visible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_of_a_chain_attends_to_everything_before_it() {
        let tree = TokenTree::chain([7, 8, 9]);
        assert_eq!(tree.depths(), [0, 1, 2]);
        assert_eq!(tree.visible(), [vec![0], vec![0, 1], vec![0, 1, 2]]);
    }

    #[test]
    fn siblings_share_a_depth_and_do_not_see_each_other() {
        let mut tree = TokenTree::chain([1]);
        let left = tree.push(2, Some(0));
        tree.push(3, Some(left));
        tree.push(4, Some(0));
        assert!(TokenTree::chain([1, 2, 3]).is_chain() && !tree.is_chain());
        assert_eq!(tree.depths(), [0, 1, 2, 1]);
        assert_eq!(tree.visible(), [vec![0], vec![0, 1], vec![0, 1, 2], vec![0, 3]]);
    }
}
