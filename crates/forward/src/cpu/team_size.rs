//! Number of members that pays for a model's passes, by their rows. More members are not always
//! faster, since barriers cost time. Pure arithmetic over measured passes: no threads and no clock.

use super::cores::PassTiming;

/// Passes over more rows use all members.
const MAX_ROWS: usize = 17;

/// Share of the time that trials with other numbers of members may cost.
const TRIAL_BUDGET: f64 = 0.005;
/// Assumed cost of the first trial, in passes. Too low for a large model, which recovers it before
/// the next one; but a small model should learn early.
const FIRST_TRIAL_COST: f64 = 0.5;
/// Passes with either number in a trial, alternating.
const PASSES_PER_TRIAL: usize = 5;
/// Passes between two trials without a change: the first wait, and the longest.
const WAIT: (u32, u32) = (64, 8192);
/// Factor from which a time counts as clearly faster.
const CLEAR_FACTOR: f64 = 1.03;

/// Best numbers of members of one model, by rows from 1.
#[derive(Debug)]
pub struct TeamSizes(Vec<RowTimings>);

/// Statistics of passes over one number of rows.
#[derive(Debug, Clone)]
struct RowTimings {
    max: usize,
    /// Best number of members so far.
    size: usize,
    /// Direction of the next trial: fewer members instead of more.
    fewer: bool,
    /// Milliseconds saved up for trials since the last one.
    budget: f64,
    /// Passes since the last trial.
    passes: u32,
    /// Passes until the next trial.
    wait: u32,
    /// Expected cost of the next trial, in passes with the current number of members.
    cost: f64,
    trial: Option<Trial>,
}

/// Durations in milliseconds with the best number so far, and with the tried one.
#[derive(Debug, Clone, Default)]
struct Trial {
    current: Vec<f64>,
    other: Vec<f64>,
}

impl TeamSizes {
    /// Starts from `first(rows)` members of a team of `max`.
    pub fn new(max: usize, first: impl Fn(usize) -> usize) -> Self {
        Self((1..=MAX_ROWS).map(|rows| RowTimings::new(max, first(rows).clamp(1, max))).collect())
    }

    /// Returns the number of members for a pass over `rows`; `None` for all.
    pub fn members(&self, rows: usize) -> Option<usize> {
        self.0.get(rows.checked_sub(1)?).map(RowTimings::members)
    }

    /// Records a pass over `rows`.
    pub fn record(&mut self, rows: usize, pass: PassTiming) {
        // Disturbances by other programs say nothing about the model.
        if let Some(current) = self.0.get_mut(rows.wrapping_sub(1)).filter(|_| pass.delay == 0.0) {
            let before = current.size;
            current.record(pass);
            if current.size != before {
                tracing::debug!("passes over {rows} rows use {} threads", current.size);
            }
        }
    }
}

impl RowTimings {
    fn new(max: usize, size: usize) -> Self {
        Self {
            max,
            size,
            fewer: size > 1,
            budget: 0.0,
            passes: 0,
            wait: WAIT.0,
            cost: FIRST_TRIAL_COST,
            trial: None,
        }
    }

    fn members(&self) -> usize {
        match &self.trial {
            Some(trial) if trial.other.len() < trial.current.len() => self.other(),
            _ => self.size,
        }
    }

    /// Returns the number of members to try.
    fn other(&self) -> usize {
        if self.fewer { (self.size / 2).max(1) } else { (self.size * 2).min(self.max) }
    }

    fn record(&mut self, pass: PassTiming) {
        let (size, other) = (self.size, self.other());
        match &mut self.trial {
            Some(trial) if pass.size == size => trial.current.push(pass.ms),
            // A pass that the team itself reduced is not part of the trial.
            Some(trial) if pass.size == other && trial.other.len() < trial.current.len() => {
                trial.other.push(pass.ms);
            }
            None if pass.size == size => {
                self.budget += TRIAL_BUDGET * pass.ms;
                self.passes += 1;
                let due = self.passes >= self.wait && self.budget >= self.cost * pass.ms;
                self.trial = (due && size != other).then(Trial::default);
            }
            _ => {}
        }
        if let Some(Trial { current, other }) =
            self.trial.take_if(|trial| trial.other.len() == PASSES_PER_TRIAL)
        {
            self.decide(median(current), median(other));
        }
    }

    fn decide(&mut self, current: f64, other: f64) {
        let pays = if self.fewer { other < current * CLEAR_FACTOR } else { other * CLEAR_FACTOR < current };
        if pays {
            (self.size, self.wait, self.cost) = (self.other(), WAIT.0, 0.0);
        } else {
            self.wait = (self.wait * 2).min(WAIT.1);
            self.cost = PASSES_PER_TRIAL as f64 * (other / current - 1.0).max(0.0);
            // If the other direction has nothing to try, the same one is tried again.
            self.fewer = !self.fewer;
        }
        self.fewer = if self.size == 1 { false } else { self.fewer || self.size == self.max };
        (self.budget, self.passes) = (0.0, 0);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs passes over `rows` that take `ms(size)`. Returns the best number of members, and the
    /// total time relative to that number.
    fn run(sizes: &mut TeamSizes, rows: usize, passes: usize, ms: impl Fn(usize) -> f64) -> (usize, f64) {
        let mut total = 0.0;
        for _ in 0..passes {
            let size = sizes.members(rows).unwrap();
            total += ms(size);
            sizes.record(rows, PassTiming { size, ms: ms(size), delay: 0.0 });
        }
        let best = sizes.0[rows - 1].size;
        (best, total / (passes as f64 * ms(best)))
    }

    #[test]
    fn two_faster_members_stay_and_trials_cost_one_percent_at_most() {
        for slower in [1.1, 1.4, 2.0] {
            let mut sizes = TeamSizes::new(2, |_| 2);
            let (size, cost) = run(&mut sizes, 1, 5000, |size| if size == 2 { 4.0 } else { 4.0 * slower });
            assert!(size == 2 && cost < 1.01, "{slower}: {size}, {cost}");
        }
    }

    #[test]
    fn one_member_is_chosen_if_two_are_not_clearly_faster() {
        for two in [0.98, 1.0, 1.5] {
            let mut sizes = TeamSizes::new(2, |_| 2);
            assert_eq!(run(&mut sizes, 1, 150, |size| if size == 2 { two } else { 1.0 }).0, 1, "{two}");
        }
    }

    #[test]
    fn the_best_of_sixteen_is_found_from_either_side() {
        for first in [1, 16] {
            let mut sizes = TeamSizes::new(16, |_| first);
            // Four members are best; more spend longer at barriers.
            let ms = |size: usize| 4.0 / size as f64 + 0.2 * size as f64;
            assert_eq!(run(&mut sizes, 1, 10_000, ms).0, 4, "from {first}");
        }
    }

    #[test]
    fn every_number_of_rows_is_measured_by_itself_and_large_ones_use_all_members() {
        let mut sizes = TeamSizes::new(2, |_| 2);
        run(&mut sizes, 1, 2000, |_| 1.0);
        run(&mut sizes, 8, 2000, |size| 1.0 / size as f64);
        assert_eq!((sizes.0[0].size, sizes.0[7].size), (1, 2));
        assert_eq!((sizes.members(MAX_ROWS + 1), sizes.members(0)), (None, None));
    }

    #[test]
    fn passes_with_fewer_members_than_requested_decide_nothing() {
        let mut sizes = TeamSizes::new(2, |_| 2);
        // The team sometimes has one member only, whatever is requested.
        for pass in 0..2000 {
            let requested = sizes.members(1).unwrap();
            let size = if pass % 200 < 100 { requested } else { 1 };
            sizes.record(1, PassTiming { size, ms: 1.0 / size as f64, delay: 0.0 });
        }
        assert_eq!(sizes.0[0].size, 2);
    }

    #[test]
    fn passes_slowed_down_by_other_programs_decide_nothing() {
        let mut sizes = TeamSizes::new(2, |_| 2);
        for pass in 0..5000 {
            let size = sizes.members(1).unwrap();
            let ms = 1.0 / size as f64;
            let delay = if size == 2 { 3.0 } else { 0.0 };
            sizes.record(1, PassTiming { size, ms: ms + delay, delay });
            // Interruptions of all members at once look like work.
            let ms = if pass % 4 == 0 { 10.0 * ms } else { ms };
            sizes.record(1, PassTiming { size, ms, delay: 0.0 });
        }
        assert_eq!(sizes.0[0].size, 2);
    }
}
