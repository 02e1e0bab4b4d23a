//! What a recurrent model can go back to. Its layers keep no state for each token, but a few states of the text, and
//! for the last tokens records of what each did to the state: applying these to a state again gives what a pass had,
//! bit by bit. Here is which there are; the numbers are an engine's, which keeps them at the places named here.

use crate::token::TokenId;
use crate::tree::TokenTree;

/// Tokens that one can go back wherever passes began: a draft, and what a template puts before a reply.
const BACK: usize = 24;

/// Rows of a chain of which no more than the last [`BACK`] are recorded: parts of a prompt.
const LONG: usize = 2 * BACK;

/// After so many tokens there is another state that lasts.
const APART: usize = 1024;

/// A state of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// The tokens it is of.
    length: usize,
    place: usize,
    /// It stays when the text has gone on, to go back to.
    lasting: bool,
}

/// Numbers of places, of which those that are given back are taken again.
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

    /// How many there will have been when so many more are taken.
    fn after(&self, more: usize) -> usize {
        self.count + more.saturating_sub(self.free.len())
    }
}

/// What there is of the text that is cached.
#[derive(Debug)]
pub struct Past {
    /// Ascending by their lengths. That of the text without a token is not among them: it is zero.
    states: Vec<State>,
    state_places: Places,
    /// Of the tokens from number `recorded` on the places of their records. There is a state of so many tokens.
    rows: Vec<usize>,
    recorded: usize,
    row_places: Places,
    /// States that may last.
    most_lasting: usize,
    /// The last pass was a part of a text, of which nothing was scored.
    reads: bool,
}

/// What a pass does with states and records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The state that it begins with; `None` where that is zero.
    pub from: Option<usize>,
    /// The records that are applied to it first: of the tokens before the pass which it is not of.
    pub before: Vec<usize>,
    /// Where the state is left which these make, if there are such.
    pub to: Option<usize>,
    /// Of every node of the tree the place of its record; `None` where it need not last.
    pub rows: Vec<Option<usize>>,
    /// Where the state is left which the nodes make whose records need not last, if there are such.
    pub end: Option<usize>,
}

impl Past {
    /// Of a model that holds at most so many states to go back to.
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

    /// Tokens that are cached.
    fn length(&self) -> usize {
        self.recorded + self.rows.len()
    }

    /// How many places for states and for records a pass over so many nodes may need.
    pub fn places(&self, nodes: usize) -> (usize, usize) {
        (self.state_places.after(2), self.row_places.after(nodes))
    }

    /// Whether some of the tokens after the first `at` have no records.
    pub fn skips(&self, at: usize) -> bool {
        self.recorded > at
    }

    /// For a pass over the nodes of `tree` from number `first` on, after `at` tokens of text and the nodes before.
    /// `scored` is whether any is. Of a long chain most nodes are not recorded, unless `whole` asks for it.
    ///
    /// # Panics
    /// If the nodes before have no records.
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

    /// Forgets all but the first `length` tokens, and more where there is no state of just these. Returns how many are
    /// left.
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

    /// Of the tokens after the first `start` keeps those on `path` (ascending, counted from the first of them). `false`
    /// where that cannot be had: they are forgotten then.
    pub fn keep(&mut self, start: usize, path: &[usize]) -> bool {
        if self.skips(start) {
            // Such tokens are a chain, and so is what is kept of it.
            return self.truncate(start + path.len()) == start + path.len();
        }
        let own = self.rows.split_off(start - self.recorded);
        self.rows.extend(path.iter().map(|&node| own[node]));
        let dropped = own.iter().enumerate().filter(|(node, _)| !path.contains(node));
        self.row_places.free.extend(dropped.map(|(_, &row)| row));
        true
    }

    /// As [`Self::keep`], of the text that is `cached` of a model, if it has recurrent layers. Where that cannot be had the
    /// text is cut, and what to run again is returned.
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

    /// Where the state of `at` tokens goes: in place of the newest, if the one before that is near enough to go back to.
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

    /// Lets the newest state last if it is far from the others that do.
    fn last_apart(&mut self) {
        let before = self.states.iter().rev().find(|state| state.lasting).map_or(0, |state| state.length);
        if let Some(newest) = self.states.last().filter(|newest| newest.length - before >= APART) {
            self.mark(newest.length);
        }
    }

    /// Lets the newest state of no more than `length` tokens last, in place of the oldest that does if there are many.
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

    /// Forgets the records that going back [`BACK`] tokens from `at` does not need.
    fn forget_records(&mut self, at: usize) {
        let far = self.states.iter().rfind(|state| state.length + BACK <= at).map_or(0, |state| state.length);
        if far > self.recorded {
            self.row_places.free.extend(self.rows.drain(..far - self.recorded));
            self.recorded = far;
        }
        self.prune(self.recorded);
    }

    /// Forgets the states of fewer than `length` tokens that do not last.
    fn prune(&mut self, length: usize) {
        for state in self.states.extract_if(.., |state| state.length < length && !state.lasting) {
            self.state_places.free.push(state.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `rows` tokens one after the other, in passes of `size`, of which nothing is scored, or everything.
    fn run(past: &mut Past, rows: usize, size: usize, scored: bool) {
        for _ in 0..rows / size {
            let at = past.length();
            past.plan(&TokenTree::chain(0..size as u32), 0, at, scored, false);
        }
    }

    /// The text that the state and the records make which a pass begins with, and where they are.
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
