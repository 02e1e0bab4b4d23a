//! Rows of a pass that go through the layers together, and their visible positions.

use std::ops::Range;

use crate::tree::TokenTree;

/// Rows that run together.
pub struct Chunk {
    pub rows: usize,
    /// Positions before those in the rows' paths.
    pub cached: usize,
    /// Nodes of the longest path.
    pub longest: usize,
    /// The rows are a chain, so that every position is cached at the place of its text position.
    pub chain: bool,
    /// Rows whose logits are requested.
    pub scored: Range<usize>,
    /// For each row its slot in the cache, and the range of its path in these words. The paths
    /// follow: the nodes of the pass that a row attends to.
    pub words: Vec<u32>,
}

impl Chunk {
    /// Nodes `nodes` of a tree after `at` cached positions. `wanted` are the nodes whose logits are
    /// requested.
    pub fn new(tree: &TokenTree, at: usize, nodes: Range<usize>, wanted: &Range<usize>) -> Self {
        let rows = nodes.len();
        let scored = wanted.start.clamp(nodes.start, nodes.end) - nodes.start
            ..wanted.end.clamp(nodes.start, nodes.end) - nodes.start;
        let (mut words, mut paths) = (Vec::new(), Vec::new());
        let chain = tree.is_chain();
        let mut longest = rows;
        let slots = (at + nodes.start..at + nodes.end).map(|slot| slot as u32);
        if chain {
            // A row of a chain attends to all rows before it, so all rows share one path.
            paths.extend(0..rows as u32);
            let begin = 3 * rows as u32;
            words.extend(slots.zip(1..).flat_map(|(slot, seen)| [slot, begin, begin + seen]));
        } else {
            let visible = &tree.visible()[nodes.clone()];
            longest = visible.iter().map(|path| path.len()).max().unwrap_or(0);
            for (slot, path) in slots.zip(visible) {
                let begin = (3 * rows + paths.len()) as u32;
                words.extend([slot, begin, begin + path.len() as u32]);
                paths.extend(path.iter().map(|&node| node as u32));
            }
        }
        words.extend(paths);
        let cached = if chain { at + nodes.start } else { at };
        Self { rows, cached, longest, chain, scored, words }
    }

    /// Hides the nodes of the pass from each other: rows see `at` cached positions.
    pub fn hide_nodes(&mut self, at: usize) {
        let (words, _) = self.words.as_chunks_mut();
        words[..self.rows].iter_mut().for_each(|[_, begin, end]| *end = *begin);
        (self.cached, self.longest, self.chain) = (at, 0, true);
    }
}
