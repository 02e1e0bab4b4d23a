//! Number of cores that the system really gives a team, estimated from the durations of passes and
//! from how long members waited for each other. Pure arithmetic: no threads and no clock.
//!
//! A phase ends with its slowest member. A member that shares its core with another program is away
//! for milliseconds at a time, and all others wait for it in every phase. So a member is dropped
//! when it costs more than it contributes, and tried again within the budget of [`PRICE`].

/// Milliseconds over which delays are averaged. Shorter disturbances change nothing, such as a page
/// that repaints four times a second beside the engine.
const AVERAGING_MS: f64 = 400.0;
/// Largest weight of one pass in that average, so that a single interruption does not matter,
/// however long.
const MAX_WEIGHT: f64 = 0.25;

/// Duration of a successful trial, in milliseconds and in passes: longer than another program on
/// the same core stays away.
const TRIAL: (f64, u32) = (30.0, 3);
/// Milliseconds until the next trial for each one that this trial lost: 1 % of the time.
const PRICE: f64 = 100.0;
/// Bounds of the wait until the next trial, in milliseconds.
const WAIT: (f64, f64) = (250.0, 4000.0);
/// Failed trials after which the wait is what they cost. The first ones may have met a burst of
/// work, so until then the wait is the shortest, twice that, and so on.
const BURSTS: i32 = 4;

/// Measurements of a finished pass.
#[derive(Debug, Clone, Copy)]
pub struct PassTiming {
    /// Members that ran it.
    pub size: usize,
    /// Duration in milliseconds.
    pub ms: f64,
    /// Milliseconds of it that members waited for a delayed one.
    pub delay: f64,
}

/// Number of members that a team uses.
#[derive(Debug)]
pub struct Cores {
    max: usize,
    size: usize,
    /// Average share of time lost to delays.
    delay: f64,
    /// Statistics since the number changed or a trial ended.
    period: Period,
    /// Consecutive changes in the same direction, positive for added members. Each is twice as
    /// large as the one before.
    run: i32,
    /// Consecutive trials that failed.
    failed: i32,
    trial: Option<Trial>,
}

#[derive(Debug, Default)]
struct Period {
    /// Start in milliseconds; `None` before the first change.
    start: Option<f64>,
    /// Milliseconds of passes by several members, and of delays in them.
    ms: f64,
    delay: f64,
    /// Milliseconds from the start to the next trial.
    wait: f64,
}

#[derive(Debug, Default)]
struct Trial {
    size: usize,
    passes: u32,
    ms: f64,
    delay: f64,
}

impl Cores {
    /// Starts with all of `most` members.
    pub fn new(max: usize) -> Self {
        Self { max, size: max, delay: 0.0, period: Period::default(), run: 0, failed: 0, trial: None }
    }

    /// Returns the number of members for the next pass.
    pub fn members(&self) -> usize {
        self.trial.as_ref().map_or(self.size, |trial| trial.size)
    }

    /// Records a pass that ended at `now`, in milliseconds of a clock that also runs between
    /// passes. After a pause other programs may have come or gone.
    pub fn record(&mut self, now: f64, pass: PassTiming) {
        match self.trial.take() {
            Some(trial) if trial.size == pass.size => self.evaluate_trial(now, trial.and(pass)),
            trial => {
                self.trial = trial;
                self.evaluate(now, pass);
            }
        }
        let waited = self.period.start.is_none_or(|start| now - start >= self.period.wait);
        if self.trial.is_none() && self.size < self.max && waited {
            let size = self.max.min(self.size + step(self.run));
            self.trial = Some(Trial { size, ..Trial::default() });
        }
    }

    fn evaluate(&mut self, now: f64, pass: PassTiming) {
        if pass.size == 1 {
            return;
        }
        let weight = (pass.ms / (pass.ms + AVERAGING_MS)).min(MAX_WEIGHT);
        self.delay += weight * (pass.delay / pass.ms - self.delay);
        self.period.ms += pass.ms;
        self.period.delay += pass.delay;
        if self.delay > tolerable_delay(pass.size) {
            // Members were added too early: the cost of that sets the wait.
            let soon = self.period.start.is_some_and(|start| now - start < WAIT.1);
            let price =
                if soon { PRICE * lost_ms(pass.size, self.period.ms, self.period.delay) } else { 0.0 };
            self.run = if soon { self.run.min(0) - 1 } else { -1 };
            let fewer = pass.size.saturating_sub(step(-1 - self.run)).max(1);
            self.change(now, fewer, price.clamp(WAIT.0, WAIT.1));
        }
    }

    /// Decides a trial, or continues it.
    fn evaluate_trial(&mut self, now: f64, trial: Trial) {
        let (long, passes) = TRIAL;
        if trial.delay > tolerable_delay(trial.size) * trial.ms.max(long) {
            let soon = WAIT.0 * f64::from(1 << self.failed.min(BURSTS));
            let price = PRICE * lost_ms(trial.size, trial.ms, trial.delay);
            (self.run, self.failed) = (0, self.failed + 1);
            self.change(now, self.size, price.clamp(WAIT.0, WAIT.1.min(soon)));
        } else if trial.ms >= long && trial.passes >= passes {
            (self.run, self.failed) = (self.run.max(0) + 1, 0);
            self.change(now, trial.size, 0.0);
        } else {
            self.trial = Some(trial);
        }
    }

    fn change(&mut self, now: f64, size: usize, wait: f64) {
        (self.size, self.delay, self.trial) = (size, 0.0, None);
        self.period = Period { start: Some(now), wait, ..Period::default() };
    }
}

impl Trial {
    fn and(self, PassTiming { size, ms, delay }: PassTiming) -> Self {
        Self { size, passes: self.passes + 1, ms: self.ms + ms, delay: self.delay + delay }
    }
}

/// Share of time that `size` members may lose to delays. One of them contributes at most 1 / size
/// of the speed, and less than that since memory does not get faster.
fn tolerable_delay(size: usize) -> f64 {
    1.0 / (size + 1) as f64
}

/// Milliseconds that passes of `ms` by `size` members lost against one member fewer, with delays of
/// `delay`.
fn lost_ms(size: usize, ms: f64, delay: f64) -> f64 {
    (delay - tolerable_delay(size) * ms).max(0.0)
}

/// Members of the next change after `changes` in the same direction.
fn step(changes: i32) -> usize {
    1 << changes.clamp(0, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A computer on which passes take `ms` on one core. Other programs use `busy` cores; a member
    /// on such a core is away for three milliseconds in six.
    struct Computer {
        cores: usize,
        ms: f64,
        busy: usize,
        now: f64,
    }

    impl Computer {
        fn new(cores: usize, ms: f64) -> Self {
            Self { cores, ms, busy: 0, now: 0.0 }
        }

        /// Runs one pass; a program that finds a free core delays nobody.
        fn pass(&mut self, cores: &mut Cores) -> usize {
            let size = cores.members();
            let work = self.ms / size as f64;
            let crowded = size > 1 && size + self.busy > self.cores;
            let delay = if crowded { 3.0 * (work / 3.0).max(1.0).ceil() } else { 0.0 };
            self.now += work + delay;
            cores.record(self.now, PassTiming { size, ms: work + delay, delay });
            size
        }

        /// Runs passes for `ms`. Returns the work done in units of one thread's, and the members of
        /// the last pass outside a trial.
        fn run(&mut self, cores: &mut Cores, ms: f64) -> (f64, usize) {
            let start = self.now;
            let mut work = 0.0;
            while self.now - start < ms {
                self.pass(cores);
                work += self.ms;
            }
            (work / (self.now - start), cores.size)
        }
    }

    #[test]
    fn all_members_are_used_without_delays() {
        for max in [1, 2, 16] {
            let (mut cores, mut computer) = (Cores::new(max), Computer::new(max, 5.0));
            for _ in 0..10_000 {
                assert_eq!(computer.pass(&mut cores), max);
            }
        }
    }

    #[test]
    fn a_member_on_a_busy_core_is_dropped_within_half_a_second() {
        for ms in [0.3, 5.0, 50.0] {
            let (mut cores, mut computer) = (Cores::new(2), Computer::new(2, ms));
            computer.run(&mut cores, 1000.0);
            computer.busy = 1;
            assert_eq!(computer.run(&mut cores, 500.0).1, 1, "passes of {ms} ms");
        }
    }

    #[test]
    fn trials_on_a_busy_core_cost_two_percent_at_most() {
        for ms in [0.3, 5.0, 50.0] {
            let (mut cores, mut computer) = (Cores::new(2), Computer::new(2, ms));
            computer.busy = 1;
            computer.run(&mut cores, 1000.0);
            let (speed, used) = computer.run(&mut cores, 60_000.0);
            assert!(used == 1 && speed > 0.98, "passes of {ms} ms: {speed}");
        }
    }

    #[test]
    fn members_return_within_seconds_once_their_cores_are_free() {
        for (max, ms) in [(2, 0.3), (2, 5.0), (2, 50.0), (16, 10.0)] {
            let (mut cores, mut computer) = (Cores::new(max), Computer::new(max, ms));
            computer.busy = max;
            assert_eq!(computer.run(&mut cores, 5000.0).1, 1);
            computer.busy = 0;
            assert_eq!(computer.run(&mut cores, 5000.0).1, max, "passes of {ms} ms");
        }
    }

    #[test]
    fn a_trial_follows_a_pause_at_once() {
        let (mut cores, mut computer) = (Cores::new(2), Computer::new(2, 5.0));
        computer.busy = 1;
        computer.run(&mut cores, 1000.0);
        computer.busy = 0;
        computer.now += 10_000.0;
        assert_eq!(computer.run(&mut cores, 50.0).1, 2);
    }

    #[test]
    fn one_busy_core_of_sixteen_costs_one_member_or_two() {
        let (mut cores, mut computer) = (Cores::new(16), Computer::new(16, 16.0));
        computer.busy = 1;
        computer.run(&mut cores, 5000.0);
        let (speed, used) = computer.run(&mut cores, 20_000.0);
        assert!((14..16).contains(&used) && speed > 13.5, "{used} members, {speed}");
    }

    #[test]
    fn occasional_interruptions_drop_no_member() {
        // Passes of 4 ms between delays, and the length of these.
        for (passes, delay) in [(1, 1.0), (20, 20.0), (200, 150.0), (1000, 2000.0)] {
            let (mut cores, mut now) = (Cores::new(2), 0.0);
            for pass in 1..10_000 {
                let delay = if pass % passes == 0 { delay } else { 0.0 };
                now += 4.0 + delay;
                cores.record(now, PassTiming { size: cores.members(), ms: 4.0 + delay, delay });
                assert_eq!(cores.members(), 2, "{delay} ms every {passes} passes, after {pass}");
            }
        }
    }

    #[test]
    fn short_bursts_of_another_program_drop_no_member() {
        // Milliseconds of a burst, four times a second. A pass takes 6 ms, in a burst 20, of which
        // 14 are lost.
        for burst in [20.0, 50.0, 80.0] {
            let (mut cores, mut now) = (Cores::new(2), 0.0);
            while now < 20_000.0 {
                let (ms, delay) = if now % 250.0 < burst { (20.0, 14.0) } else { (6.0, 0.0) };
                now += ms;
                cores.record(now, PassTiming { size: cores.members(), ms, delay });
                assert_eq!(cores.members(), 2, "bursts of {burst} ms, after {now}");
            }
        }
    }

    #[test]
    fn a_member_dropped_by_a_cluster_of_bursts_returns_within_a_second() {
        // 300 ms of work on one of two cores every two seconds, otherwise 30 of 150 ms. Passes of 6
        // ms take 20 meanwhile.
        let (mut cores, mut now, mut missing) = (Cores::new(2), 0.0, 0.0);
        while now < 60_000.0 {
            let size = cores.members();
            let is_busy = now % 2000.0 < 300.0 || now % 150.0 < 30.0;
            let (ms, delay) = if size == 1 {
                (10.0, 0.0)
            } else if is_busy {
                (20.0, 14.0)
            } else {
                (6.0, 0.0)
            };
            missing += if size == 1 && !is_busy { ms } else { 0.0 };
            now += ms;
            cores.record(now, PassTiming { size, ms, delay });
        }
        assert!(missing < 0.1 * now, "{missing} of {now} ms with one member");
    }

    #[test]
    fn passes_with_fewer_members_than_the_trial_count_as_well() {
        let mut cores = Cores::new(8);
        for pass in 0..200 {
            // A model too small for more than two members.
            let size = cores.members().min(2);
            let delay = if size == 2 { 3.0 } else { 0.0 };
            cores.record(f64::from(pass), PassTiming { size, ms: 1.0 + delay, delay });
        }
        assert_eq!(cores.size, 1);
    }
}
