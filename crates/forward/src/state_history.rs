//! Rewinding of recurrent models. Their layers have no entry per token as a KV cache has; they keep
//! a few states of the text and, for the last tokens, step logs of each token's update. Applying
//! logged steps to a state reproduces a pass's result bit by bit. This file decides which states
//! and logs exist; the engine stores their numbers in the slots named here.

use crate::tree::TokenTree;

/// Tokens that can always be rewound, wherever passes began: a draft, and the template's tokens
/// before a reply.
const REWIND: usize = 24;

/// Rows from which on a chain, usually a chunk of a prompt, logs only its last [`REWIND`] steps.
const LONG: usize = 2 * REWIND;

/// Tokens between two checkpoints.
const CHECKPOINT_DISTANCE: usize = 1024;

/// A state of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// Tokens that the state covers.
    length: usize,
    slot: usize,
    /// The state is a checkpoint, which stays as the text grows.
    is_checkpoint: bool,
}

/// Slot numbers; freed ones are reused.
#[derive(Debug, Default, Clone)]
struct Slots {
    count: usize,
    free: Vec<usize>,
}

impl Slots {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// The first `count` slots, all in use.
    fn first(count: usize) -> Self {
        Self { count, free: Vec::new() }
    }

    /// Slots in all after `more` are taken.
    fn after(&self, more: usize) -> usize {
        self.count + more.saturating_sub(self.free.len())
    }
}

/// Numbers of slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotCounts {
    pub states: usize,
    /// Slots of step logs.
    pub logs: usize,
}

/// Numbers of the slots in use, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UsedSlots {
    pub states: Vec<usize>,
    /// Slots of step logs.
    pub logs: Vec<usize>,
}

/// States and step logs of the cached text.
#[derive(Debug, Clone)]
pub struct StateHistory {
    /// States in ascending order of length. The state of the empty text is zero and is not stored.
    states: Vec<State>,
    state_slots: Slots,
    /// Slots of the step logs of the tokens from index `logged_from` on. A state of `logged_from`
    /// tokens exists.
    logs: Vec<usize>,
    logged_from: usize,
    log_slots: Slots,
    /// Maximum number of checkpoints.
    max_checkpoints: usize,
    /// The last pass was prefill, without scored rows.
    prefilling: bool,
}

/// State and log slots that a pass reads and writes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StatePlan {
    /// Slot of the initial state; `None` for the zero state.
    pub from: Option<usize>,
    /// Slots of the steps to apply first: tokens before the pass that `from` does not cover.
    pub before: Vec<usize>,
    /// Slot for the state after `before`, if one is written.
    pub to: Option<usize>,
    /// Slot of each node's step log; `None` for steps that are not kept.
    pub logs: Vec<Option<usize>>,
    /// Slot for the state after the nodes without a log, if one is written.
    pub end: Option<usize>,
}

impl StateHistory {
    /// History of a model with at most `max_checkpoints` checkpoints.
    pub fn new(max_checkpoints: usize) -> Self {
        Self {
            states: Vec::new(),
            state_slots: Slots::default(),
            logs: Vec::new(),
            logged_from: 0,
            log_slots: Slots::default(),
            max_checkpoints,
            prefilling: false,
        }
    }

    /// A copy for a text that is put aside, and the slots it uses; in the copy they are numbered
    /// from zero. Of the checkpoints it keeps the last, from which the last reply is regenerated.
    pub fn compacted(&self) -> (Self, UsedSlots) {
        let last = self.states.iter().rposition(|state| state.is_checkpoint);
        let stays = |&(index, state): &(usize, &State)| {
            !state.is_checkpoint || Some(index) == last || state.length >= self.logged_from
        };
        let states: Vec<&State> =
            self.states.iter().enumerate().filter(stays).map(|(_, state)| state).collect();
        let used =
            UsedSlots { states: states.iter().map(|state| state.slot).collect(), logs: self.logs.clone() };
        let renumbered = |(slot, state): (usize, &State)| State { slot, ..state.clone() };
        let copy = Self {
            states: states.into_iter().enumerate().map(renumbered).collect(),
            state_slots: Slots::first(used.states.len()),
            logs: (0..used.logs.len()).collect(),
            log_slots: Slots::first(used.logs.len()),
            ..*self
        };
        (copy, used)
    }

    /// Numbers that describe a [compacted](Self::compacted) history.
    pub fn description(&self) -> Vec<u64> {
        let states = self.states.iter().flat_map(|state| [state.length as u64, state.is_checkpoint.into()]);
        [self.logged_from as u64, self.logs.len() as u64].into_iter().chain(states).collect()
    }

    /// Compacted history with this description, of a text of `length` tokens, with the limits of
    /// this one; `None` if there is no such history.
    pub fn described(&self, description: &[u64], length: usize) -> Option<Self> {
        let [logged_from, logs, states @ ..] = description else { return None };
        let (logged_from, logs) = (usize::try_from(*logged_from).ok()?, usize::try_from(*logs).ok()?);
        let states = states.as_chunks::<2>().0.iter().enumerate();
        let states = states.map(|(slot, &[length, is_checkpoint])| {
            Some(State { length: usize::try_from(length).ok()?, slot, is_checkpoint: is_checkpoint == 1 })
        });
        let states: Vec<State> = states.collect::<Option<_>>()?;
        let starts = logged_from == 0 || states.iter().any(|state| state.length == logged_from);
        let ascend = states.is_sorted_by(|left, right| left.length < right.length);
        let fit = states.iter().all(|state| (1..=length).contains(&state.length));
        let whole = logged_from.checked_add(logs) == Some(length);
        (starts && ascend && fit && whole).then(|| Self {
            state_slots: Slots::first(states.len()),
            states,
            logs: (0..logs).collect(),
            log_slots: Slots::first(logs),
            logged_from,
            prefilling: false,
            max_checkpoints: self.max_checkpoints,
        })
    }

    /// Numbers of states and logs.
    pub fn counts(&self) -> SlotCounts {
        SlotCounts { states: self.states.len(), logs: self.logs.len() }
    }

    /// Cached tokens.
    fn length(&self) -> usize {
        self.logged_from + self.logs.len()
    }

    /// Slots that a pass over `nodes` nodes may need in all.
    pub fn slots(&self, nodes: usize) -> SlotCounts {
        SlotCounts { states: self.state_slots.after(2), logs: self.log_slots.after(nodes) }
    }

    /// Returns whether any token after the first `at` has no step log.
    pub fn lacks_logs(&self, at: usize) -> bool {
        self.logged_from > at
    }

    /// Plans a pass over the nodes of `tree` from index `first` on, after `at` tokens of text and
    /// the earlier nodes. `scored`: whether the pass returns logits of any node. A long chain logs
    /// only its last steps unless `whole`.
    ///
    /// # Panics
    /// If earlier nodes have no step logs.
    pub fn plan(
        &mut self,
        tree: &TokenTree,
        first: usize,
        at: usize,
        scored: bool,
        whole: bool,
    ) -> StatePlan {
        assert!(!self.lacks_logs(at) && self.length() == at + first, "nodes without step logs");
        let long = !whole && first == 0 && tree.len() > LONG && tree.is_chain();
        let skipped = if long { tree.len() - REWIND } else { 0 };
        let newest = self.states.iter().rposition(|state| state.length <= at);
        let from = newest.map(|newest| self.states[newest].slot);
        let length = newest.map_or(0, |newest| self.states[newest].length);
        let before = self.logs[length - self.logged_from..at - self.logged_from].to_vec();
        let new: Vec<usize> = (first.max(skipped)..tree.len()).map(|_| self.log_slots.take()).collect();
        let to = (length < at).then(|| self.advance(newest, at));
        if scored && self.prefilling {
            self.mark_checkpoint(at.saturating_sub(REWIND));
        }
        self.prefilling = !scored;
        let end = long.then(|| self.push(at + skipped));
        if long {
            self.log_slots.free.append(&mut self.logs);
            self.logged_from = at + skipped;
            self.prune(at);
        } else {
            self.drop_logs(at);
        }
        let own = if long { 0 } else { at - self.logged_from };
        self.logs.extend(new);
        let logs = std::iter::repeat_n(None, skipped).chain(self.logs[own..].iter().copied().map(Some));
        StatePlan { from, before, to, logs: logs.collect(), end }
    }

    /// Drops all but the first `length` tokens, or more if no state of exactly that length can be
    /// restored. Returns the number of tokens left.
    pub fn truncate(&mut self, length: usize) -> usize {
        if length >= self.length() {
            return self.length();
        }
        while let Some(newer) = self.states.pop_if(|state| state.length > length) {
            self.state_slots.free.push(newer.slot);
        }
        let kept = length.checked_sub(self.logged_from);
        self.log_slots.free.extend(self.logs.drain(kept.unwrap_or(0)..));
        if kept.is_none() {
            self.logged_from = self.states.last().map_or(0, |state| state.length);
        }
        self.length()
    }

    /// Keeps the tokens on `path` (ascending indices) of those after the first `start`. Returns
    /// `false` and drops them if that state cannot be restored.
    pub fn keep(&mut self, start: usize, path: &[usize]) -> bool {
        if self.lacks_logs(start) {
            // Tokens without logs are a chain, and so is what stays of it.
            return self.truncate(start + path.len()) == start + path.len();
        }
        let own = self.logs.split_off(start - self.logged_from);
        self.logs.extend(path.iter().map(|&node| own[node]));
        let dropped = own.iter().enumerate().filter(|(node, _)| !path.contains(node));
        self.log_slots.free.extend(dropped.map(|(_, &row)| row));
        true
    }

    /// Slot for the state of `at` tokens: the newest one's, if the state before it is near enough
    /// to rewind from.
    fn advance(&mut self, newest: Option<usize>, at: usize) -> usize {
        let Some(newest) = newest else { return self.push(at) };
        let before = newest.checked_sub(1).map_or(0, |before| self.states[before].length);
        let State { length, slot, is_checkpoint } = self.states[newest];
        if is_checkpoint || length - before >= REWIND || before < self.logged_from {
            return self.push(at);
        }
        self.states[newest].length = at;
        self.checkpoint_if_far();
        slot
    }

    fn push(&mut self, length: usize) -> usize {
        let slot = self.state_slots.take();
        self.states.push(State { length, slot, is_checkpoint: false });
        self.checkpoint_if_far();
        slot
    }

    /// Makes the newest state a checkpoint if it is far from the last one.
    fn checkpoint_if_far(&mut self) {
        let before =
            self.states.iter().rev().find(|state| state.is_checkpoint).map_or(0, |state| state.length);
        if let Some(newest) =
            self.states.last().filter(|newest| newest.length - before >= CHECKPOINT_DISTANCE)
        {
            self.mark_checkpoint(newest.length);
        }
    }

    /// Makes the newest state of at most `length` tokens a checkpoint; drops the oldest if there
    /// are too many.
    fn mark_checkpoint(&mut self, length: usize) {
        let Some(state) = self.states.iter_mut().rfind(|state| state.length <= length) else { return };
        state.is_checkpoint = true;
        let mut checkpoints = self.states.iter_mut().filter(|state| state.is_checkpoint);
        if checkpoints.by_ref().count() > self.max_checkpoints
            && let Some(oldest) = self.states.iter_mut().find(|state| state.is_checkpoint)
        {
            oldest.is_checkpoint = false;
        }
    }

    /// Drops step logs that rewinding by [`REWIND`] tokens from `at` does not need.
    fn drop_logs(&mut self, at: usize) {
        let far =
            self.states.iter().rfind(|state| state.length + REWIND <= at).map_or(0, |state| state.length);
        if far > self.logged_from {
            self.log_slots.free.extend(self.logs.drain(..far - self.logged_from));
            self.logged_from = far;
        }
        self.prune(self.logged_from);
    }

    /// Drops states of fewer than `length` tokens that are not checkpoints.
    fn prune(&mut self, length: usize) {
        for state in self.states.extract_if(.., |state| state.length < length && !state.is_checkpoint) {
            self.state_slots.free.push(state.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `rows` tokens in order, in passes of `size`, with logits of all or none.
    fn run(history: &mut StateHistory, rows: usize, size: usize, scored: bool) {
        for _ in 0..rows / size {
            let at = history.length();
            history.plan(&TokenTree::chain(0..size as u32), 0, at, scored, false);
        }
    }

    /// Tokens covered by the initial state and steps of the next pass, and its plan.
    fn next_plan(history: &mut StateHistory) -> (usize, StatePlan) {
        let at = history.length();
        let from = history.states.iter().rfind(|state| state.length <= at).map_or(0, |state| state.length);
        let plan = history.plan(&TokenTree::chain([0]), 0, at, true, false);
        (from + plan.before.len(), plan)
    }

    #[test]
    fn a_draft_can_always_be_rewound_and_each_pass_continues_the_text() {
        for size in [1, 2, 5, 17] {
            let mut history = StateHistory::new(4);
            for pass in 0..200 {
                run(&mut history, size, size, true);
                let length = history.length();
                let back = pass % (REWIND + 1);
                let wanted = length.saturating_sub(back);
                assert_eq!(history.truncate(wanted), wanted, "{back} back from {length}");
                assert_eq!(next_plan(&mut history).0, wanted);
            }
            assert!(history.log_slots.count <= 4 * REWIND + 2 * size, "{} logs", history.log_slots.count);
            assert!(history.state_slots.count <= 4 + 4, "{} states", history.state_slots.count);
        }
    }

    #[test]
    fn a_prompt_logs_the_end_of_each_chunk_and_leaves_a_checkpoint_near_its_end() {
        let mut history = StateHistory::new(4);
        run(&mut history, 640, 128, false);
        run(&mut history, 300, 1, true);
        assert_eq!(history.truncate(640 - 3), 640 - REWIND);
        let (at, plan) = next_plan(&mut history);
        assert_eq!((at, plan.before.len()), (640 - REWIND, 0));
        assert_eq!(history.truncate(600), 0);
    }

    #[test]
    fn a_long_text_has_checkpoints_far_apart_and_drops_the_oldest() {
        let mut history = StateHistory::new(3);
        run(&mut history, 8192, 128, false);
        let checkpoints: Vec<usize> =
            history.states.iter().filter(|state| state.is_checkpoint).map(|state| state.length).collect();
        assert_eq!(checkpoints.len(), 3);
        assert!(
            checkpoints
                .windows(2)
                .all(|pair| (CHECKPOINT_DISTANCE..CHECKPOINT_DISTANCE + 128).contains(&(pair[1] - pair[0]))),
            "{checkpoints:?}"
        );
        assert!(history.state_slots.count <= 7, "{} states", history.state_slots.count);
        assert_eq!(history.truncate(checkpoints[1] + 500), checkpoints[1]);
        assert_eq!(history.truncate(checkpoints[0] - 1), 0);
        assert_eq!(next_plan(&mut history).0, 0);
    }

    #[test]
    fn a_text_put_aside_keeps_its_last_states_and_continues_like_the_text() {
        for scored in [1, 3, 40] {
            let mut history = StateHistory::new(8);
            run(&mut history, 4096, 128, false);
            run(&mut history, scored, 1, true);
            let (mut copy, used) = history.compacted();
            assert!(copy.states.len() <= 4, "{} states", copy.states.len());
            assert_eq!(copy.slots(0), SlotCounts { states: copy.states.len() + 2, logs: used.logs.len() });
            let (length, expected) = next_plan(&mut history);
            let (found, plan) = next_plan(&mut copy);
            assert_eq!((found, plan.from.map(|slot| used.states[slot])), (length, expected.from));
            let before: Vec<usize> = plan.before.iter().map(|&slot| used.logs[slot]).collect();
            assert_eq!(before, expected.before);
        }
    }

    #[test]
    fn a_tree_keeps_the_logs_on_the_path_and_frees_the_others() {
        let mut history = StateHistory::new(4);
        run(&mut history, 3, 3, true);
        let mut tree = TokenTree::chain([5, 6, 7]);
        tree.push(8, Some(0));
        let logs = history.plan(&tree, 0, 3, true, false).logs;
        assert!(history.keep(3, &[0, 3]));
        let next = history.plan(&TokenTree::chain([9]), 0, 5, true, false);
        assert_eq!(next.before, [logs[0].unwrap(), logs[3].unwrap()]);
        assert_eq!(next.from, history.plan(&TokenTree::chain([9, 9]), 1, 5, true, false).from);
        assert_eq!(history.log_slots.count, 7);
    }

    #[test]
    fn a_long_chain_can_be_cut_near_its_end_and_is_rerun_when_cut_shorter() {
        let mut history = StateHistory::new(4);
        run(&mut history, 10, 10, true);
        let chain = TokenTree::chain(0..100);
        let plan = history.plan(&chain, 0, 10, true, false);
        assert_eq!(plan.logs.iter().filter(|row| row.is_none()).count(), 100 - REWIND);
        assert!(plan.end.is_some() && plan.end != plan.to && history.lacks_logs(10));
        assert!(history.keep(10, &(0..80).collect::<Vec<_>>()));
        assert_eq!(history.length(), 90);
        assert!(!history.keep(10, &(0..40).collect::<Vec<_>>()));
        assert_eq!(history.length(), 10);
        assert!(history.plan(&chain, 0, 10, true, true).end.is_none());
    }
}
