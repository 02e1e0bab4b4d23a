//! Shapes of draft trees, and the best tree by acceptance statistics.

use crate::speculation::MAX_TREE_WIDTH;

/// Shape of a tree of guesses, by their order at each position. Node 0 is the end of the text;
/// parents come before their children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    children: Vec<Vec<usize>>,
}

impl Shape {
    /// The end of the text.
    pub const ROOT: usize = 0;

    /// Children of `node`, likeliest first.
    pub fn children(&self, node: usize) -> &[usize] {
        &self.children[node]
    }

    /// Number of guesses.
    pub fn len(&self) -> usize {
        self.children.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of guesses on the longest path.
    pub fn depth(&self) -> usize {
        let mut depths = vec![0; self.children.len()];
        for (node, children) in self.children.iter().enumerate() {
            children.iter().for_each(|&child| depths[child] = depths[node] + 1);
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Number of guesses with children, by level: the rows of the draft's passes after the first.
    pub fn inner_widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        let mut level = self.children(Self::ROOT).to_vec();
        while !level.is_empty() {
            let inner = level.iter().filter(|&&node| !self.children(node).is_empty()).count();
            if inner > 0 {
                widths.push(inner);
            }
            level = level.iter().flat_map(|&node| self.children(node)).copied().collect();
        }
        widths
    }

    fn grow(&mut self, at: usize, plan: &Plans<'_>, nodes: usize, depth: usize) {
        let mut left = nodes;
        let mut rank = 0;
        while left > 0 && rank < plan.width {
            let size = plan.subtree[plan.index(depth, rank, left)];
            if size == 0 {
                break;
            }
            let child = self.children.len();
            self.children.push(Vec::new());
            self.children[at].push(child);
            self.grow(child, plan, size - 1, depth + 1);
            left -= size;
            rank += 1;
        }
    }
}

/// Best trees of every size up to a limit, by dynamic programming (Chen et al. 2024, Sequoia): the
/// most expected accepted tokens for a number of guesses.
#[derive(Debug)]
pub struct Plans<'a> {
    /// Chance of each rank to be the accepted one, by depth.
    ranks: &'a [[f64; MAX_TREE_WIDTH]],
    width: usize,
    nodes: usize,
    /// Expected accepted tokens of the siblings from a rank on and all their descendants, by depth,
    /// rank and number of nodes, and the size of the first one's subtree. `[depths + 1, width + 1,
    /// nodes + 1]`
    expected: Vec<f64>,
    subtree: Vec<usize>,
}

impl<'a> Plans<'a> {
    /// Solves trees of up to `nodes` guesses with up to `width` siblings, as deep as `ranks` has
    /// entries.
    pub fn new(ranks: &'a [[f64; MAX_TREE_WIDTH]], width: usize, nodes: usize) -> Self {
        let size = (ranks.len() + 1) * (width + 1) * (nodes + 1);
        let mut plans = Self { ranks, width, nodes, expected: vec![0.0; size], subtree: vec![0; size] };
        for depth in (0..ranks.len()).rev() {
            for rank in (0..width).rev() {
                for left in 1..=nodes {
                    plans.solve(depth, rank, left);
                }
            }
        }
        plans
    }

    fn index(&self, depth: usize, rank: usize, nodes: usize) -> usize {
        let depth = depth.min(self.ranks.len());
        (depth * (self.width + 1) + rank) * (self.nodes + 1) + nodes
    }

    fn solve(&mut self, depth: usize, rank: usize, left: usize) {
        let at = self.index(depth, rank, left);
        for size in 1..=left {
            let below = self.expected[self.index(depth + 1, 0, size - 1)];
            let beside = self.expected[self.index(depth, rank + 1, left - size)];
            let expected = self.ranks[depth][rank] * (1.0 + below) + beside;
            if expected > self.expected[at] {
                (self.expected[at], self.subtree[at]) = (expected, size);
            }
        }
    }

    /// Expected accepted tokens of the best tree of `nodes` guesses.
    pub fn expected(&self, nodes: usize) -> f64 {
        self.expected[self.index(0, 0, nodes)]
    }

    /// Best tree of `nodes` guesses.
    pub fn shape(&self, nodes: usize) -> Shape {
        let mut shape = Shape { children: vec![Vec::new()] };
        shape.grow(Shape::ROOT, self, nodes, 0);
        shape
    }
}

/// Limits of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TreeLimits {
    pub(super) width: usize,
    pub(super) depth: usize,
    pub(super) nodes: usize,
}

/// Cached best tree of a drafter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CachedTree {
    pub(super) limits: TreeLimits,
    pub(super) age: usize,
    pub(super) best: Option<Grown>,
}

/// Shape and its expected accepted tokens.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grown {
    pub(super) shape: Shape,
    pub(super) accepted: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected accepted tokens, computed along the tree.
    fn expected(shape: &Shape, ranks: &[[f64; MAX_TREE_WIDTH]], node: usize, depth: usize) -> f64 {
        let children = shape.children(node).iter().enumerate();
        children
            .map(|(rank, &child)| ranks[depth][rank] * (1.0 + expected(shape, ranks, child, depth + 1)))
            .sum()
    }

    #[test]
    fn the_plan_expects_the_tokens_of_its_tree() {
        let ranks: Vec<_> = (1..=6).map(|d| [0.8 / d as f64, 0.1, 0.05, 0.02]).collect();
        let plans = Plans::new(&ranks, 3, 12);
        for nodes in 0..=12 {
            let shape = plans.shape(nodes);
            assert!(shape.len() <= nodes);
            assert!((expected(&shape, &ranks, 0, 0) - plans.expected(nodes)).abs() < 1e-12);
        }
    }

    #[test]
    fn no_other_tree_of_four_guesses_has_more_expected_tokens() {
        let ranks = [[0.5, 0.3, 0.1, 0.05]; 4];
        let best = Plans::new(&ranks, 4, 4).expected(4);
        // All trees of four guesses: each of the later ones follows the text or an earlier one.
        let mut most: f64 = 0.0;
        for second in 0..2 {
            for third in 0..3 {
                for fourth in 0..4 {
                    let mut children = vec![vec![1], vec![], vec![], vec![], vec![]];
                    for (node, parent) in [(2, second), (3, third), (4, fourth)] {
                        children[parent].push(node);
                    }
                    most = most.max(expected(&Shape { children }, &ranks, 0, 0));
                }
            }
        }
        assert!((best - most).abs() < 1e-12, "{best} is not {most}");
    }

    #[test]
    fn a_confident_draft_is_a_chain_and_an_unsure_one_is_wide() {
        let sure = [[0.95, 0.02, 0.01, 0.0]; 8];
        let chain = Plans::new(&sure, 4, 6).shape(6);
        assert_eq!(chain.inner_widths(), [1; 5]);
        let unsure = [[0.3, 0.28, 0.25, 0.1]; 8];
        let wide = Plans::new(&unsure, 4, 3).shape(3);
        assert_eq!(wide.children(Shape::ROOT).len(), 3);
    }

    #[test]
    fn a_width_of_one_is_a_chain() {
        let shape = Plans::new(&[[0.4, 0.3, 0.2, 0.1]; 5], 1, 9).shape(9);
        assert_eq!((shape.len(), shape.inner_widths()), (5, vec![1; 4]));
    }
}
