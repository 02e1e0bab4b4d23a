//! Rows of a pass that go through the layers together, and what each of them sees.

use std::ops::Range;

use crate::tree::TokenTree;

/// See the module.
pub struct Chunk {
    pub rows: usize,
    /// Positions before those that rows name themselves.
    pub cached: usize,
    /// Rows whose logits are asked for.
    pub scored: Range<usize>,
    /// Of each row its position in the cache, and where in these words its path begins and ends: the nodes of the pass
    /// that it sees. Then the paths.
    pub words: Vec<u32>,
}

impl Chunk {
    /// The nodes `nodes` of a tree after `at` cached positions; `wanted` are nodes whose logits are asked for.
    pub fn new(tree: &TokenTree, at: usize, nodes: Range<usize>, wanted: &Range<usize>) -> Self {
        let rows = nodes.len();
        let scored = wanted.start.clamp(nodes.start, nodes.end) - nodes.start
            ..wanted.end.clamp(nodes.start, nodes.end) - nodes.start;
        let (mut words, mut paths) = (Vec::new(), Vec::new());
        let slots = (at + nodes.start..at + nodes.end).map(|slot| slot as u32);
        if tree.is_chain() {
            // Everything before a row is seen by it, so that one path is enough, of which each row sees a part.
            paths.extend(0..rows as u32);
            let begin = 3 * rows as u32;
            words.extend(slots.zip(1..).flat_map(|(slot, seen)| [slot, begin, begin + seen]));
        } else {
            for (slot, path) in slots.zip(&tree.visible()[nodes.clone()]) {
                let begin = (3 * rows + paths.len()) as u32;
                words.extend([slot, begin, begin + path.len() as u32]);
                paths.extend(path.iter().map(|&node| node as u32));
            }
        }
        words.extend(paths);
        let cached = if tree.is_chain() { at + nodes.start } else { at };
        Self { rows, cached, scored, words }
    }
}
