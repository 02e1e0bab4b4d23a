//! Traversal of a token tree by a state matrix: depth first, so that few copies are alive at once.
//! All blocks, heads and layers share it.

use crate::forward::past::Plan;
use crate::tree::TokenTree;

/// Location of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The state that the pass begins with.
    From,
    /// The state after all tokens before the pass.
    To,
    /// The state that a long chain leaves behind.
    End,
    /// A copy of this number.
    Copy(usize),
}

/// Records to apply to a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    Nothing,
    /// Records of the tokens before the pass.
    Before,
    /// Record of this node.
    Node(usize),
}

/// One step of the traversal: records are applied to a matrix, then a node reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    pub applied: Applied,
    pub from: Place,
    /// Destination; `None` if nothing was applied.
    pub to: Option<Place>,
    /// Node that reads the matrix.
    pub read: Option<usize>,
}

/// Plan of states and records for a pass, and the order of their use.
#[derive(Debug, Default)]
pub struct Walk {
    pub plan: Plan,
    pub visits: Vec<Visit>,
    /// Most copies that are alive at once.
    pub copies: usize,
}

/// Children of one node, or the roots.
struct Siblings {
    nodes: Vec<usize>,
    next: usize,
    place: Place,
    /// First unused copy.
    copy: usize,
}

impl Walk {
    /// Plans the traversal of the nodes of `tree` from `first` on. Earlier nodes have records.
    pub fn new(tree: &TokenTree, first: usize, plan: Plan) -> Self {
        let (roots, mut children) = lines(tree, first);
        let mut walk = Self { plan, ..Self::default() };
        let place = if walk.plan.to.is_some() { Place::To } else { Place::From };
        let mut coming = walk.plan.to.map(|_| (Applied::Before, Place::From, Place::To));
        let mut stack = vec![Siblings { nodes: roots, next: 0, place, copy: 0 }];
        while let Some(siblings) = stack.last_mut() {
            let Some(&node) = siblings.nodes.get(siblings.next) else {
                stack.pop();
                continue;
            };
            siblings.next += 1;
            let read = (node >= first).then_some(node);
            let (applied, from, to) = coming.take().map_or(
                (Applied::Nothing, siblings.place, None),
                |(applied, from, to): (Applied, Place, Place)| (applied, from, Some(to)),
            );
            if read.is_some() || to.is_some() {
                walk.visits.push(Visit { applied, from, to, read });
            }
            let nodes = std::mem::take(&mut children[node]);
            if nodes.is_empty() {
                continue;
            }
            let is_last = siblings.next == siblings.nodes.len();
            // The last sibling may overwrite its parent's copy.
            let copy = match siblings.place {
                Place::Copy(copy) if is_last => copy,
                _ => siblings.copy,
            };
            let ends = walk.plan.end.is_some()
                && walk.plan.rows[node].is_none()
                && walk.plan.rows[node + 1].is_some();
            let place = if ends { Place::End } else { Place::Copy(copy) };
            let copy = if ends { copy } else { copy + 1 };
            walk.copies = walk.copies.max(copy);
            coming = Some((Applied::Node(node), siblings.place, place));
            stack.push(Siblings { nodes, next: 0, place, copy });
        }
        walk
    }
}

/// Returns the roots of the tree and the children of each node. Nodes before `first` are dropped if
/// they have no descendants from `first` on.
fn lines(tree: &TokenTree, first: usize) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut children = vec![Vec::new(); tree.len()];
    let mut roots = Vec::new();
    for node in (0..tree.len()).rev() {
        let leads = node >= first || !Vec::is_empty(&children[node]);
        match tree.parent(node) {
            _ if !leads => {}
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
    fn applied(walk: &Walk) -> Vec<(usize, Vec<i32>)> {
        let mut copies = vec![Vec::new(); walk.copies];
        let [mut to, mut end] = [const { Vec::new() }; 2];
        let mut read = Vec::new();
        for visit in &walk.visits {
            let mut text = match visit.from {
                Place::From => Vec::new(),
                Place::To => to.clone(),
                Place::End => end.clone(),
                Place::Copy(copy) => copies[copy].clone(),
            };
            match visit.applied {
                Applied::Nothing => {}
                Applied::Before => text.push(-1),
                Applied::Node(node) => text.push(node as i32),
            }
            match visit.to {
                None => assert_eq!(visit.applied, Applied::Nothing),
                Some(Place::To) => to = text.clone(),
                Some(Place::End) => end = text.clone(),
                Some(Place::Copy(copy)) => copies[copy] = text.clone(),
                Some(Place::From) => panic!("the state that a pass begins with is not written"),
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
                let walk = Walk::new(&tree, first, Plan { to, rows, ..Plan::default() });
                assert_eq!(applied(&walk), expected(&tree, first, to.is_some()), "from {first} on");
                assert!(walk.copies <= 3, "{} copies", walk.copies);
            }
        }
    }

    #[test]
    fn a_chain_needs_one_copy_and_leaves_its_end_state() {
        let tree = TokenTree::chain(0..9);
        let rows: Vec<Option<usize>> = (0..9).map(|row| (row >= 6).then_some(row)).collect();
        let walk = Walk::new(&tree, 0, Plan { rows, end: Some(3), to: Some(1), ..Plan::default() });
        assert_eq!(applied(&walk), expected(&tree, 0, true));
        assert_eq!(walk.copies, 1);
        let left = walk.visits.iter().find(|visit| visit.to == Some(Place::End)).unwrap();
        assert_eq!((left.applied, left.read), (Applied::Node(5), Some(6)));
    }
}
