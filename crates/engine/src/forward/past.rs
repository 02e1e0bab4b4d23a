//! Rewinding of recurrent models. Their layers have no entry per token as a KV cache has; they keep
//! a few states of the text and, for the last tokens, step logs of each token's update. Applying
//! logged steps to a state reproduces a pass's result bit by bit. This file decides which states
//! and logs exist; the engine stores their numbers in the slots named here.

use crate::token::TokenId;
use crate::tree::TokenTree;

/// Tokens that can always be rewound, wherever passes began: a draft, and the template's tokens
/// before a reply.
const BACK: usize = 24;

/// Rows from which on a chain, usually a chunk of a prompt, logs only its last [`BACK`] steps.
const LONG: usize = 2 * BACK;

/// Tokens between two checkpoints.
const APART: usize = 1024;

/// A state of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// Tokens that the state covers.
    length: usize,
    place: usize,
    /// The state is a checkpoint, which stays as the text grows.
    lasting: bool,
}

/// Slot numbers; freed ones are reused.
#[derive(Debug, Default)]
struct Places {
    count: usize,
    free: Vec<usize>,
}

impl Places {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// Slots in all after `more` are taken.
    fn after(&self, more: usize) -> usize {
        self.count + more.saturating_sub(self.free.len())
    }
}

/// States and step logs of the cached text.
#[derive(Debug)]
pub struct Past {
    /// States in ascending order of length. The state of the empty text is zero and is not stored.
    states: Vec<State>,
    state_places: Places,
    /// Slots of the step logs of the tokens from index `recorded` on. A state of `recorded` tokens
    /// exists.
    rows: Vec<usize>,
    recorded: usize,
    row_places: Places,
    /// Maximum number of checkpoints.
    most_lasting: usize,
    /// The last pass was prefill, without scored rows.
    reads: bool,
}

/// State and log slots that a pass reads and writes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Slot of the initial state; `None` for the zero state.
    pub from: Option<usize>,
    /// Slots of the steps to apply first: tokens before the pass that `from` does not cover.
    pub before: Vec<usize>,
    /// Slot for the state after `before`, if one is written.
    pub to: Option<usize>,
    /// Slot of each node's step log; `None` for steps that are not kept.
    pub rows: Vec<Option<usize>>,
    /// Slot for the state after the nodes without a log, if one is written.
    pub end: Option<usize>,
}

impl Past {
    /// History of a model with at most `most_lasting` checkpoints.
    pub fn new(most_lasting: usize) -> Self {
        Self {
            states: Vec::new(),
            state_places: Places::default(),
            rows: Vec::new(),
            recorded: 0,
            row_places: Places::default(),
            most_lasting,
            reads: false,
        }
    }

    /// Cached tokens.
    fn length(&self) -> usize {
        self.recorded + self.rows.len()
    }

    /// State and log slots that a pass over `nodes` nodes may need in all.
    pub fn places(&self, nodes: usize) -> (usize, usize) {
        (self.state_places.after(2), self.row_places.after(nodes))
    }

    /// Returns whether any token after the first `at` has no step log.
    pub fn skips(&self, at: usize) -> bool {
        self.recorded > at
    }

    /// Plans a pass over the nodes of `tree` from index `first` on, after `at` tokens of text and
    /// the earlier nodes. `scored`: whether the pass returns logits of any node. A long chain logs
    /// only its last steps unless `whole`.
    ///
    /// # Panics
    /// If earlier nodes have no step logs.
    pub fn plan(&mut self, tree: &TokenTree, first: usize, at: usize, scored: bool, whole: bool) -> Plan {
        assert!(!self.skips(at) && self.length() == at + first, "nodes without records");
        let long = !whole && first == 0 && tree.len() > LONG && tree.is_chain();
        let skipped = if long { tree.len() - BACK } else { 0 };
        let newest = self.states.iter().rposition(|state| state.length <= at);
        let from = newest.map(|newest| self.states[newest].place);
        let length = newest.map_or(0, |newest| self.states[newest].length);
        let before = self.rows[length - self.recorded..at - self.recorded].to_vec();
        let new: Vec<usize> = (first.max(skipped)..tree.len()).map(|_| self.row_places.take()).collect();
        let to = (length < at).then(|| self.advance(newest, at));
        if scored && self.reads {
            self.mark(at.saturating_sub(BACK));
        }
        self.reads = !scored;
        let end = long.then(|| self.push(at + skipped));
        if long {
            self.row_places.free.append(&mut self.rows);
            self.recorded = at + skipped;
            self.prune(at);
        } else {
            self.forget_records(at);
        }
        let own = if long { 0 } else { at - self.recorded };
        self.rows.extend(new);
        let rows = std::iter::repeat_n(None, skipped).chain(self.rows[own..].iter().copied().map(Some));
        Plan { from, before, to, rows: rows.collect(), end }
    }

    /// Drops all but the first `length` tokens, or more if no state of exactly that length can be
    /// restored. Returns the number of tokens left.
    pub fn truncate(&mut self, length: usize) -> usize {
        if length >= self.length() {
            return self.length();
        }
        while let Some(beyond) = self.states.pop_if(|state| state.length > length) {
            self.state_places.free.push(beyond.place);
        }
        let kept = length.checked_sub(self.recorded);
        self.row_places.free.extend(self.rows.drain(kept.unwrap_or(0)..));
        if kept.is_none() {
            self.recorded = self.states.last().map_or(0, |state| state.length);
        }
        self.length()
    }

    /// Keeps the tokens on `path` (ascending indices) of those after the first `start`. Returns
    /// `false` and drops them if that state cannot be restored.
    pub fn keep(&mut self, start: usize, path: &[usize]) -> bool {
        if self.skips(start) {
            // Tokens without logs are a chain, and so is what stays of it.
            return self.truncate(start + path.len()) == start + path.len();
        }
        let own = self.rows.split_off(start - self.recorded);
        self.rows.extend(path.iter().map(|&node| own[node]));
        let dropped = own.iter().enumerate().filter(|(node, _)| !path.contains(node));
        self.row_places.free.extend(dropped.map(|(_, &row)| row));
        true
    }

    /// Applies [`Self::keep`] to a model's `cached` tokens, if it has recurrent layers. If the
    /// state cannot be restored, cuts the text and returns the tokens to run again.
    pub fn keep_or_run(
        past: &mut Option<Self>,
        cached: &mut Vec<TokenId>,
        start: usize,
        path: &[usize],
    ) -> Option<TokenTree> {
        let lost = past.as_mut().is_some_and(|past| !past.keep(start, path));
        lost.then(|| {
            let kept = TokenTree::chain(path.iter().map(|&node| cached[start + node]));
            cached.truncate(start);
            kept
        })
    }

    /// Slot for the state of `at` tokens: the newest one's, if the state before it is near enough
    /// to rewind from.
    fn advance(&mut self, newest: Option<usize>, at: usize) -> usize {
        let Some(newest) = newest else { return self.push(at) };
        let before = newest.checked_sub(1).map_or(0, |before| self.states[before].length);
        let State { length, place, lasting } = self.states[newest];
        if lasting || length - before >= BACK || before < self.recorded {
            return self.push(at);
        }
        self.states[newest].length = at;
        self.last_apart();
        place
    }

    fn push(&mut self, length: usize) -> usize {
        let place = self.state_places.take();
        self.states.push(State { length, place, lasting: false });
        self.last_apart();
        place
    }

    /// Makes the newest state a checkpoint if it is far from the last one.
    fn last_apart(&mut self) {
        let before = self.states.iter().rev().find(|state| state.lasting).map_or(0, |state| state.length);
        if let Some(newest) = self.states.last().filter(|newest| newest.length - before >= APART) {
            self.mark(newest.length);
        }
    }

    /// Makes the newest state of at most `length` tokens a checkpoint; drops the oldest if there
    /// are too many.
    fn mark(&mut self, length: usize) {
        let Some(state) = self.states.iter_mut().rfind(|state| state.length <= length) else { return };
        state.lasting = true;
        let mut lasting = self.states.iter_mut().filter(|state| state.lasting);
        if lasting.by_ref().count() > self.most_lasting
            && let Some(oldest) = self.states.iter_mut().find(|state| state.lasting)
        {
            oldest.lasting = false;
        }
    }

    /// Drops step logs that rewinding by [`BACK`] tokens from `at` does not need.
    fn forget_records(&mut self, at: usize) {
        let far = self.states.iter().rfind(|state| state.length + BACK <= at).map_or(0, |state| state.length);
        if far > self.recorded {
            self.row_places.free.extend(self.rows.drain(..far - self.recorded));
            self.recorded = far;
        }
        self.prune(self.recorded);
    }

    /// Drops states of fewer than `length` tokens that are not checkpoints.
    fn prune(&mut self, length: usize) {
        for state in self.states.extract_if(.., |state| state.length < length && !state.lasting) {
            self.state_places.free.push(state.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `rows` tokens in order, in passes of `size`, with logits of all or none.
    fn run(past: &mut Past, rows: usize, size: usize, scored: bool) {
        for _ in 0..rows / size {
            let at = past.length();
            past.plan(&TokenTree::chain(0..size as u32), 0, at, scored, false);
        }
    }

    /// Tokens covered by the initial state and steps of the next pass, and its plan.
    fn begins(past: &mut Past) -> (usize, Plan) {
        let at = past.length();
        let from = past.states.iter().rfind(|state| state.length <= at).map_or(0, |state| state.length);
        let plan = past.plan(&TokenTree::chain([0]), 0, at, true, false);
        (from + plan.before.len(), plan)
    }

    #[test]
    fn one_can_always_go_back_a_draft_and_each_pass_begins_where_the_text_ends() {
        for size in [1, 2, 5, 17] {
            let mut past = Past::new(4);
            for pass in 0..200 {
                run(&mut past, size, size, true);
                let length = past.length();
                let back = pass % (BACK + 1);
                let wanted = length.saturating_sub(back);
                assert_eq!(past.truncate(wanted), wanted, "{back} back from {length}");
                assert_eq!(begins(&mut past).0, wanted);
            }
            assert!(past.row_places.count <= 4 * BACK + 2 * size, "{} records", past.row_places.count);
            assert!(past.state_places.count <= 4 + 4, "{} states", past.state_places.count);
        }
    }

    #[test]
    fn of_a_prompt_the_end_of_each_part_is_recorded_and_a_state_near_its_own_end_lasts() {
        let mut past = Past::new(4);
        run(&mut past, 640, 128, false);
        run(&mut past, 300, 1, true);
        assert_eq!(past.truncate(640 - 3), 640 - BACK);
        let (at, plan) = begins(&mut past);
        assert_eq!((at, plan.before.len()), (640 - BACK, 0));
        assert_eq!(past.truncate(600), 0);
    }

    #[test]
    fn a_long_text_has_states_far_apart_and_the_oldest_go() {
        let mut past = Past::new(3);
        run(&mut past, 8192, 128, false);
        let lasting: Vec<usize> =
            past.states.iter().filter(|state| state.lasting).map(|state| state.length).collect();
        assert_eq!(lasting.len(), 3);
        assert!(
            lasting.windows(2).all(|pair| (APART..APART + 128).contains(&(pair[1] - pair[0]))),
            "{lasting:?}"
        );
        assert!(past.state_places.count <= 7, "{} states", past.state_places.count);
        assert_eq!(past.truncate(lasting[1] + 500), lasting[1]);
        assert_eq!(past.truncate(lasting[0] - 1), 0);
        assert_eq!(begins(&mut past).0, 0);
    }

    #[test]
    fn of_a_tree_the_records_on_the_path_stay_and_the_others_are_used_again() {
        let mut past = Past::new(4);
        run(&mut past, 3, 3, true);
        let mut tree = TokenTree::chain([5, 6, 7]);
        tree.push(8, Some(0));
        let rows = past.plan(&tree, 0, 3, true, false).rows;
        assert!(past.keep(3, &[0, 3]));
        let next = past.plan(&TokenTree::chain([9]), 0, 5, true, false);
        assert_eq!(next.before, [rows[0].unwrap(), rows[3].unwrap()]);
        assert_eq!(next.from, past.plan(&TokenTree::chain([9, 9]), 1, 5, true, false).from);
        assert_eq!(past.row_places.count, 7);
    }

    #[test]
    fn of_a_long_chain_its_end_can_be_kept_and_less_is_run_again() {
        let mut past = Past::new(4);
        run(&mut past, 10, 10, true);
        let chain = TokenTree::chain(0..100);
        let plan = past.plan(&chain, 0, 10, true, false);
        assert_eq!(plan.rows.iter().filter(|row| row.is_none()).count(), 100 - BACK);
        assert!(plan.end.is_some() && plan.end != plan.to && past.skips(10));
        assert!(past.keep(10, &(0..80).collect::<Vec<_>>()));
        assert_eq!(past.length(), 90);
        assert!(!past.keep(10, &(0..40).collect::<Vec<_>>()));
        assert_eq!(past.length(), 10);
        assert!(past.plan(&chain, 0, 10, true, true).end.is_none());
    }
}
