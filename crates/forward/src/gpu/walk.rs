//! Words by which the kernels of recurrent layers find the states and records that the rows of a
//! chunk read and write. A chunk after the first continues the pass: from the state that the chunk
//! before it left behind, or by the records of the nodes before it.

use std::ops::Range;

use foretoken_model::Recurrence;

use super::kernels::NONE;
use crate::state_history::StatePlan;
use crate::tree::TokenTree;

/// Kinds of a word, as in `recurrence.wgsl`: nothing, or the number of a row, a record, or a state
/// or row of the states' tails.
const ZERO: u32 = 0;
const ROW: u32 = 1 << 30;
const RECORD: u32 = 2 << 30;
const STATE: u32 = 3 << 30;

/// Words of a chunk, and where the kernels find them.
///
/// First come, for each row, the inputs of its convolution, the oldest first; then the slot of each
/// row's record; then for each state that is written its slot and the rows of its tail, the oldest
/// first. Updates and visits of the state matrices follow: a visit is the range of its updates, the
/// slot that the state is stored in, and the row that reads it.
#[derive(Debug, PartialEq, Eq)]
pub struct Walk {
    pub words: Vec<u32>,
    pub rows: usize,
    /// States whose tails are written.
    pub tails: usize,
    /// Visits, and the first one's word.
    pub visits: usize,
    pub first_visit: usize,
}

/// States and records that a chunk begins with and leaves behind.
struct ChunkPlan<'a> {
    tree: &'a TokenTree,
    plan: &'a StatePlan,
    /// Nodes of the chunk.
    nodes: Range<usize>,
    /// Slot of the initial state, `None` for zeros, and the nodes that it covers.
    from: Option<usize>,
    covered: usize,
    /// Records to apply first, and the slot for the state after them.
    before: &'a [usize],
    to: Option<usize>,
    /// Slot for the state after this many nodes.
    end: Option<(usize, usize)>,
}

/// Updates and visits of the state matrices.
#[derive(Default)]
struct Visits {
    updates: Vec<u32>,
    /// Updates of earlier visits.
    done: usize,
    visits: Vec<[u32; 4]>,
}

impl Walk {
    /// Walk over `nodes` of a pass that begins with node `first`.
    pub fn new(
        recurrence: &Recurrence,
        tree: &TokenTree,
        plan: &StatePlan,
        first: usize,
        nodes: Range<usize>,
    ) -> Self {
        let (taps, rows) = (recurrence.taps, nodes.len());
        let chunk = ChunkPlan::new(tree, plan, first, nodes);
        let mut words = Vec::new();
        let inputs = |path: &[usize], count: usize| -> Vec<u32> {
            (0..count).rev().map(|back| chunk.input(path, back, taps)).collect()
        };
        for node in chunk.nodes.clone() {
            words.extend(inputs(&chunk.path(Some(node)), taps));
        }
        words.extend(plan.logs[chunk.nodes.clone()].iter().map(|&slot| word(slot)));
        let end = chunk.end.map(|(slot, count)| (slot, chunk.path(count.checked_sub(1))));
        // The initial state may be shifted in its own place, so it comes last.
        let tails: Vec<(usize, Vec<usize>)> =
            end.into_iter().chain(chunk.to.map(|slot| (slot, Vec::new()))).collect();
        for (slot, path) in &tails {
            words.push(*slot as u32);
            words.extend(inputs(path, taps - 1));
        }
        let has_matrices = recurrence.heads.values > 0;
        let visits = if has_matrices { chunk.visits() } else { Visits::default() };
        let Visits { updates, mut visits, .. } = visits;
        let first_update = words.len() as u32;
        visits.iter_mut().for_each(|visit| visit[..2].iter_mut().for_each(|at| *at += first_update));
        words.extend(updates);
        let first_visit = words.len();
        words.extend(visits.iter().flatten());
        Self { words, rows, tails: tails.len(), visits: visits.len(), first_visit }
    }
}

impl<'a> ChunkPlan<'a> {
    fn new(tree: &'a TokenTree, plan: &'a StatePlan, first: usize, nodes: Range<usize>) -> Self {
        let skipped = plan.logs.iter().take_while(|log| log.is_none()).count();
        let end = plan.end.filter(|_| nodes.start < skipped).map(|slot| (slot, skipped.min(nodes.end)));
        let whole = Self {
            tree,
            plan,
            from: plan.from,
            covered: 0,
            before: &plan.before,
            to: plan.to,
            end,
            nodes: nodes.clone(),
        };
        if nodes.start == first {
            return whole;
        }
        let (from, covered) = match plan.end {
            Some(end) => (Some(end), skipped.min(nodes.start)),
            None => (plan.to.or(plan.from), 0),
        };
        Self { from, covered, before: &[], to: None, ..whole }
    }

    /// Nodes on the path to `node`, without those that the initial state covers.
    fn path(&self, node: Option<usize>) -> Vec<usize> {
        let on_path = |node: &usize| *node >= self.covered;
        let nodes =
            std::iter::successors(node.filter(on_path), |&node| self.tree.parent(node).filter(on_path));
        let mut path: Vec<usize> = nodes.collect();
        path.reverse();
        path
    }

    /// Convolution input `back` rows before the last node of a path.
    fn input(&self, path: &[usize], back: usize, taps: usize) -> u32 {
        if let Some(at) = path.len().checked_sub(back + 1) {
            return self.step(path[at]);
        }
        let back = back - path.len();
        if let Some(at) = self.before.len().checked_sub(back + 1) {
            return RECORD | self.before[at] as u32;
        }
        let row = taps - 2 - (back - self.before.len());
        self.from.map_or(ZERO, |slot| STATE | (slot * (taps - 1) + row) as u32)
    }

    /// Word of a node's step: a row of this chunk, or a record.
    fn step(&self, node: usize) -> u32 {
        match node.checked_sub(self.nodes.start) {
            Some(row) => ROW | row as u32,
            None => self.plan.logs[node].map_or(ZERO, |slot| RECORD | slot as u32),
        }
    }

    /// Takes the matrices through the nodes, depth first. At a fork it begins again with the
    /// initial state.
    fn visits(&self) -> Visits {
        let mut visits = Visits::default();
        let state = |slot: Option<usize>| slot.map_or(ZERO, |slot| STATE | slot as u32);
        visits.updates.push(state(self.from));
        visits.updates.extend(self.before.iter().map(|&slot| RECORD | slot as u32));
        if self.to.is_some() {
            visits.push(self.to, None);
        }
        let base = state(self.to.or(self.from));
        let mut paths: Vec<Vec<usize>> = self.nodes.clone().map(|node| self.path(Some(node))).collect();
        paths.sort();
        // The last node of a chain is applied for the state that it leaves behind.
        let ended = self.end.filter(|&(_, count)| count == self.nodes.end);
        let last = ended.map(|(_, count)| self.path(count.checked_sub(1)));
        let mut applied: &[usize] = &[];
        let reads = paths.iter().filter_map(|path| path.split_last());
        let reads = reads.map(|(&node, ancestors)| (ancestors, Some(node - self.nodes.start)));
        for (ancestors, row) in reads.chain(last.iter().map(|path| (&path[..], None))) {
            if !ancestors.starts_with(applied) {
                visits.updates.push(base);
                applied = &[];
            }
            for &node in &ancestors[applied.len()..] {
                visits.updates.push(self.step(node));
                if let Some((slot, _)) = self.end.filter(|&(_, count)| count == node + 1) {
                    visits.push(Some(slot), None);
                }
            }
            if row.is_some() {
                visits.push(None, row);
            }
            applied = ancestors;
        }
        visits
    }
}

impl Visits {
    /// Ends a visit with the updates since the last one.
    fn push(&mut self, store: Option<usize>, read: Option<usize>) {
        let updates = [self.done, self.updates.len()].map(|at| at as u32);
        self.visits.push([updates[0], updates[1], word(store), word(read)]);
        self.done = self.updates.len();
    }
}

fn word(number: Option<usize>) -> u32 {
    number.map_or(NONE, |number| number as u32)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use foretoken_model::{Heads, RecurrentKind};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::state_history::StateHistory;

    const TAPS: usize = 4;
    const SHIFT: u32 = 30;

    /// A device whose states are the tokens that they cover, and whose records are tokens.
    #[derive(Default)]
    struct Device {
        matrices: HashMap<usize, Vec<u32>>,
        tails: HashMap<usize, Option<u32>>,
        records: HashMap<usize, u32>,
    }

    impl Device {
        /// Convolution input that a word names.
        fn input(&self, word: u32, tokens: &[u32]) -> Option<u32> {
            let number = (word & (ROW - 1)) as usize;
            match word >> SHIFT << SHIFT {
                ZERO => None,
                ROW => Some(tokens[number]),
                RECORD => Some(self.records[&number]),
                _ => self.tails[&number],
            }
        }

        /// Runs a chunk; `paths` are the texts that its rows continue, with themselves.
        fn run(&mut self, walk: &Walk, paths: &[Vec<u32>]) {
            let tokens: Vec<u32> = paths.iter().map(|path| *path.last().unwrap()).collect();
            for (row, path) in paths.iter().enumerate() {
                let found: Vec<_> =
                    walk.words[row * TAPS..][..TAPS].iter().map(|&word| self.input(word, &tokens)).collect();
                let before = std::iter::repeat_n(None, TAPS).chain(path.iter().copied().map(Some));
                let before: Vec<_> = before.collect();
                assert_eq!(found, before[before.len() - TAPS..], "inputs of row {row}");
            }
            let mut matrix = Vec::new();
            let mut read = vec![0; walk.rows];
            for visit in walk.words[walk.first_visit..].as_chunks::<4>().0 {
                for &word in &walk.words[visit[0] as usize..visit[1] as usize] {
                    let number = (word & (ROW - 1)) as usize;
                    match word >> SHIFT << SHIFT {
                        ZERO => matrix.clear(),
                        ROW => {
                            assert!(read[number] > 0, "a step that is not known yet");
                            matrix.push(tokens[number]);
                        }
                        RECORD => matrix.push(self.records[&number]),
                        _ => matrix = self.matrices[&number].clone(),
                    }
                }
                if visit[2] != NONE {
                    self.matrices.insert(visit[2] as usize, matrix.clone());
                }
                if visit[3] != NONE {
                    let row = visit[3] as usize;
                    assert_eq!(matrix, paths[row][..paths[row].len() - 1], "what row {row} reads");
                    read[row] += 1;
                }
            }
            assert!(read.iter().all(|&times| times == 1), "{read:?}");
            let slots = &walk.words[walk.rows * TAPS..];
            for tail in slots[walk.rows..][..walk.tails * TAPS].chunks(TAPS) {
                for (row, &word) in tail[1..].iter().enumerate() {
                    let token = self.input(word, &tokens);
                    self.tails.insert(tail[0] as usize * (TAPS - 1) + row, token);
                }
            }
            let records = slots[..walk.rows].iter().zip(&tokens).filter(|&(&slot, _)| slot != NONE);
            self.records.extend(records.map(|(&slot, &token)| (slot as usize, token)));
        }
    }

    fn recurrence() -> Recurrence {
        let heads = Heads { keys: 1, values: 1, key_size: 32, value_size: 32, grouped: true };
        Recurrence {
            kind: RecurrentKind::Delta,
            taps: TAPS,
            channels: 96,
            heads,
            biased: false,
            steps: [0.0, 1.0],
        }
    }

    /// Long or short chain, or a tree with forks.
    fn tree(random: &mut StdRng) -> TokenTree {
        let mut token = || random.random_range(1..1000u32);
        let mut tree = TokenTree::chain([token()]);
        let tokens: Vec<u32> = (0..160).map(|_| token()).collect();
        match random.random_range(0..3) {
            0 => TokenTree::chain(tokens),
            1 => TokenTree::chain(tokens[..random.random_range(1..49)].iter().copied()),
            _ => {
                for &token in &tokens[..random.random_range(1..40)] {
                    let parent = random.random_range(0..tree.len() + 1);
                    tree.push(token, parent.checked_sub(1));
                }
                tree
            }
        }
    }

    #[test]
    fn chunks_of_any_size_read_the_text_before_each_row_after_any_kept_and_dropped_tokens() {
        for seed in 0..60 {
            let mut random = StdRng::seed_from_u64(seed);
            let (mut history, mut device) = (StateHistory::new(2), Device::default());
            let mut text: Vec<u32> = Vec::new();
            for _ in 0..30 {
                let tree = tree(&mut random);
                let at = text.len();
                let part = random.random_range(1..=tree.len());
                let scored = random.random_bool(0.7);
                for (first, nodes) in [(0, part), (part, tree.len())] {
                    if first == nodes || (first > 0 && history.lacks_logs(at)) {
                        break;
                    }
                    let mut now = TokenTree::default();
                    for node in 0..nodes {
                        now.push(tree.token(node), tree.parent(node));
                    }
                    let plan = history.plan(&now, first, at, scored, false);
                    let size = random.random_range(1..140);
                    for start in (first..nodes).step_by(size) {
                        let chunk = start..nodes.min(start + size);
                        let walk = Walk::new(&recurrence(), &now, &plan, first, chunk.clone());
                        let path = |path: &Vec<usize>| {
                            let own = path.iter().map(|&node| now.token(node));
                            text.iter().copied().chain(own).collect::<Vec<u32>>()
                        };
                        let paths: Vec<_> = now.visible()[chunk].iter().map(path).collect();
                        device.run(&walk, &paths);
                    }
                    if nodes == tree.len() || history.lacks_logs(at) {
                        let kept = random.random_range(0..nodes);
                        let path = now.visible()[kept].clone();
                        match history.keep(at, &path) {
                            true => text.extend(path.iter().map(|&node| now.token(node))),
                            false => assert!(history.truncate(at) == at, "the text before the pass"),
                        }
                        break;
                    }
                }
                let back = random.random_range(0..30).min(text.len());
                let left = history.truncate(text.len() - back);
                text.truncate(left);
                if text.len() > 600 {
                    text.truncate(history.truncate(0));
                }
            }
        }
    }
}
