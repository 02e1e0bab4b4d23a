//! Traversal of a token tree by a state matrix: depth first, so that few copies are alive at once.
//! All blocks, heads and layers share it.

use crate::state_history::StatePlan;
use crate::tree::TokenTree;

/// Location of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixSlot {
    /// The state that the pass begins with.
    Initial,
    /// The state after all tokens before the pass.
    Cached,
    /// The state that a long chain leaves behind.
    ChainEnd,
    /// A copy of this number.
    Copy(usize),
}

/// Records to apply to a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    None,
    /// Records of the tokens before the pass.
    Before,
    /// Record of this node.
    Node(usize),
}

/// One step of the traversal: records are applied to a matrix, then a node reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    pub updates: Updates,
    pub from: MatrixSlot,
    /// Destination; `None` if nothing was applied.
    pub to: Option<MatrixSlot>,
    /// Node that reads the matrix.
    pub read: Option<usize>,
}

/// StatePlan of states and records for a pass, and the order of their use.
#[derive(Debug, Default)]
pub struct TreeWalk {
    pub plan: StatePlan,
    pub visits: Vec<Visit>,
    /// Most copies that are alive at once.
    pub copies: usize,
}

/// Children of one node, or the roots.
struct Siblings {
    nodes: Vec<usize>,
    next: usize,
    slot: MatrixSlot,
    /// First unused copy.
    copy: usize,
}

impl TreeWalk {
    /// Plans the traversal of the nodes of `tree` from `first` on. Earlier nodes have records.
    pub fn new(tree: &TokenTree, first: usize, plan: StatePlan) -> Self {
        let (roots, mut children) = roots_and_children(tree, first);
        let mut walk = Self { plan, ..Self::default() };
        let slot = if walk.plan.to.is_some() { MatrixSlot::Cached } else { MatrixSlot::Initial };
        let mut update = walk.plan.to.map(|_| (Updates::Before, MatrixSlot::Initial, MatrixSlot::Cached));
        let mut stack = vec![Siblings { nodes: roots, next: 0, slot, copy: 0 }];
        while let Some(siblings) = stack.last_mut() {
            let Some(&node) = siblings.nodes.get(siblings.next) else {
                stack.pop();
                continue;
            };
            siblings.next += 1;
            let read = (node >= first).then_some(node);
            let (updates, from, to) = update.take().map_or(
                (Updates::None, siblings.slot, None),
                |(updates, from, to): (Updates, MatrixSlot, MatrixSlot)| (updates, from, Some(to)),
            );
            if read.is_some() || to.is_some() {
                walk.visits.push(Visit { updates, from, to, read });
            }
            let nodes = std::mem::take(&mut children[node]);
            if nodes.is_empty() {
                continue;
            }
            let is_last = siblings.next == siblings.nodes.len();
            // The last sibling may overwrite its parent's copy.
            let copy = match siblings.slot {
                MatrixSlot::Copy(copy) if is_last => copy,
                _ => siblings.copy,
            };
            let ends = walk.plan.end.is_some()
                && walk.plan.logs[node].is_none()
                && walk.plan.logs[node + 1].is_some();
            let slot = if ends { MatrixSlot::ChainEnd } else { MatrixSlot::Copy(copy) };
            let copy = if ends { copy } else { copy + 1 };
            walk.copies = walk.copies.max(copy);
            update = Some((Updates::Node(node), siblings.slot, slot));
            stack.push(Siblings { nodes, next: 0, slot, copy });
        }
        walk
    }
}

/// Returns the roots of the tree and the children of each node. Nodes before `first` are dropped if
/// they have no descendants from `first` on.
fn roots_and_children(tree: &TokenTree, first: usize) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut children = vec![Vec::new(); tree.len()];
    let mut roots = Vec::new();
    for node in (0..tree.len()).rev() {
        let needed = node >= first || !Vec::is_empty(&children[node]);
        match tree.parent(node) {
            _ if !needed => {}
            Some(parent) => children[parent].insert(0, node),
            None => roots.insert(0, node),
        }
    }
    (roots, children)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records applied to the matrix that each node read: nodes, and -1 for the tokens before the
    /// pass.
    fn applied(walk: &TreeWalk) -> Vec<(usize, Vec<i32>)> {
        let mut copies = vec![Vec::new(); walk.copies];
        let [mut to, mut end] = [const { Vec::new() }; 2];
        let mut read = Vec::new();
        for visit in &walk.visits {
            let mut text = match visit.from {
                MatrixSlot::Initial => Vec::new(),
                MatrixSlot::Cached => to.clone(),
                MatrixSlot::ChainEnd => end.clone(),
                MatrixSlot::Copy(copy) => copies[copy].clone(),
            };
            match visit.updates {
                Updates::None => {}
                Updates::Before => text.push(-1),
                Updates::Node(node) => text.push(node as i32),
            }
            match visit.to {
                None => assert_eq!(visit.updates, Updates::None),
                Some(MatrixSlot::Cached) => to = text.clone(),
                Some(MatrixSlot::ChainEnd) => end = text.clone(),
                Some(MatrixSlot::Copy(copy)) => copies[copy] = text.clone(),
                Some(MatrixSlot::Initial) => panic!("the state that a pass begins with is not written"),
            }
            read.extend(visit.read.map(|node| (node, text)));
        }
        read.sort();
        read
    }

    fn expected(tree: &TokenTree, first: usize, before: bool) -> Vec<(usize, Vec<i32>)> {
        let ancestors = |(node, seen): (usize, Vec<usize>)| {
            let own = seen.iter().filter(|&&other| other != node).map(|&other| other as i32);
            (node, before.then_some(-1).into_iter().chain(own).collect())
        };
        tree.visible().into_iter().enumerate().skip(first).map(ancestors).collect()
    }

    #[test]
    fn every_node_reads_the_matrix_of_its_ancestors() {
        let mut tree = TokenTree::chain([1, 2, 3]);
        for parent in [Some(0), Some(1), Some(3), Some(0), Some(6), None, Some(8)] {
            tree.push(4, parent);
        }
        for first in 0..tree.len() {
            for to in [None, Some(7)] {
                let rows = vec![Some(0); tree.len()];
                let walk = TreeWalk::new(&tree, first, StatePlan { to, logs: rows, ..StatePlan::default() });
                assert_eq!(applied(&walk), expected(&tree, first, to.is_some()), "from {first} on");
                assert!(walk.copies <= 3, "{} copies", walk.copies);
            }
        }
    }

    #[test]
    fn a_chain_needs_one_copy_and_leaves_its_end_state() {
        let tree = TokenTree::chain(0..9);
        let rows: Vec<Option<usize>> = (0..9).map(|row| (row >= 6).then_some(row)).collect();
        let walk = TreeWalk::new(
            &tree,
            0,
            StatePlan { logs: rows, end: Some(3), to: Some(1), ..StatePlan::default() },
        );
        assert_eq!(applied(&walk), expected(&tree, 0, true));
        assert_eq!(walk.copies, 1);
        let left = walk.visits.iter().find(|visit| visit.to == Some(MatrixSlot::ChainEnd)).unwrap();
        assert_eq!((left.updates, left.read), (Updates::Node(5), Some(6)));
    }
}
