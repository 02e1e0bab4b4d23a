//! Positions that a row attends to, and the runs in which it does.

use std::ops::Range;

use super::cache::PAGE;

/// Text positions in a run. Softmax and weighted sum of a run are computed by themselves, and then
/// joined in order, so that runs can be computed in parallel. A run of cached positions is a page.
pub const RUN: usize = PAGE;

/// Positions that a row sees, in the order of the text: cached ones, then nodes of its path in the
/// pass. The next text position after the cached ones is that of the path's first node, wherever in
/// the pass a node lies.
#[derive(Debug, Clone, Copy)]
pub struct Visible<'a> {
    /// Positions before this pass.
    pub cached: usize,
    /// First visible position of the cache; all from there on are visible. `cached` if none is.
    pub first: usize,
    /// Nodes of the path that lie before a window.
    pub hidden: usize,
    /// Visible nodes of the path, ascending, as offsets from `cached`.
    pub own: &'a [usize],
}

impl Visible<'_> {
    /// Visible text positions.
    pub fn positions(&self) -> Range<usize> {
        let own = self.cached + self.hidden;
        (if self.first < self.cached { self.first } else { own })..own + self.own.len()
    }

    /// Visible text positions in `run`.
    pub fn positions_in(&self, run: usize) -> Range<usize> {
        let Range { start, end } = self.positions();
        let start = start.max(run * RUN);
        start..end.min((run + 1) * RUN).max(start)
    }

    /// Runs with visible positions.
    pub fn runs(&self) -> Range<usize> {
        let positions = self.positions();
        positions.start / RUN..positions.end.div_ceil(RUN)
    }

    /// Where a visible text position lies in the cache.
    pub fn slot(&self, position: usize) -> usize {
        let own = position.checked_sub(self.cached + self.hidden);
        own.map_or(position, |own| self.cached + self.own[own])
    }

    /// Slots from the first visible text position in `run` to the last; there must be one.
    pub fn slots_in(&self, run: usize) -> Range<usize> {
        let positions = self.positions_in(run);
        self.slot(positions.start)..self.slot(positions.end - 1) + 1
    }

    /// Returns whether both see the same positions of `run`, all of them before the pass.
    pub fn shares_run_with(&self, other: &Self, run: usize) -> bool {
        let positions = self.positions_in(run);
        positions.end <= self.cached && positions == other.positions_in(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_positions_follow_a_path_wherever_its_nodes_lie() {
        let visible = Visible { cached: 254, first: 10, hidden: 0, own: &[0, 3, 9, 10] };
        assert_eq!((visible.positions(), visible.runs()), (10..258, 0..2));
        assert_eq!((visible.positions_in(0), visible.positions_in(1)), (10..256, 256..258));
        assert_eq!(
            [10, 253, 254, 255, 256, 257].map(|position| visible.slot(position)),
            [10, 253, 254, 257, 263, 264]
        );
    }

    #[test]
    fn a_window_hides_cached_positions_and_then_nodes_of_the_path() {
        let visible = Visible { cached: 300, first: 300, hidden: 2, own: &[4, 5] };
        assert_eq!((visible.positions(), visible.runs()), (302..304, 1..2));
        assert_eq!([302, 303].map(|position| visible.slot(position)), [304, 305]);
        assert!(visible.positions_in(0).is_empty());
    }

    #[test]
    fn rows_share_the_runs_that_both_see_whole_before_the_pass() {
        let [near, far] = [700, 701].map(|first| Visible { cached: 1030, first, hidden: 0, own: &[0, 1] });
        assert_eq!([2, 3, 4].map(|run| near.shares_run_with(&far, run)), [false, true, false]);
    }
}
