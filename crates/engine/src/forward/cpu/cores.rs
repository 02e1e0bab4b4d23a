//! How many cores the system really gives a team: a rule over what passes took and how long their members
//! held each other up. Knows no threads and no clock.
//!
//! A phase of a pass ends with its slowest member. One that shares its core with another program is away for
//! milliseconds at a time, and the others wait for it in one phase after the other. So a member is given up
//! when it costs more than it brings, and tried again for as little as [`PRICE`] allows.

/// Milliseconds over which hold-ups are averaged: what lasts less changes nothing, such as a page that is
/// painted four times a second beside the engine.
const MEMORY: f64 = 400.0;
/// The most that one pass counts for in that, so that a single interruption is nothing, however long.
const MAX_WEIGHT: f64 = 0.25;

/// How long a trial lasts that goes well, in milliseconds and in passes: longer than another program on the
/// same core stays away from it.
const TRIAL: (f64, u32) = (30.0, 3);
/// Milliseconds until the next trial for each that this one lost against fewer members: 1 % of the time.
const PRICE: f64 = 100.0;
/// Milliseconds until the next trial, at least and at most.
const WAIT: (f64, f64) = (250.0, 4000.0);
/// The first trials that fail may have met a burst of work: after these many the wait is what they cost; until
/// then it is the shortest, twice that, and so on.
const BURSTS: i32 = 4;

/// A pass that is over.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// Members that carried it out.
    pub size: usize,
    /// Milliseconds from its beginning to its end.
    pub ms: f64,
    /// Milliseconds of these in which the others waited for one that was held up.
    pub held: f64,
}

/// How many of its members a team uses.
#[derive(Debug)]
pub struct Cores {
    most: usize,
    used: usize,
    /// The share of the time that is lost to hold-ups.
    held: f64,
    /// Since the number changed or a trial ended.
    since: Stretch,
    /// Changes in a row in the same direction, above 0 for members taken back: each is twice as large as
    /// the one before.
    run: i32,
    /// Trials in a row that changed nothing.
    failed: i32,
    trial: Option<Trial>,
}

#[derive(Debug, Default)]
struct Stretch {
    /// When it began, in milliseconds; `None` before the first change.
    start: Option<f64>,
    /// Milliseconds of passes by several members, and of these, lost to hold-ups.
    ms: f64,
    held: f64,
    /// Milliseconds from its beginning to the next trial.
    wait: f64,
}

#[derive(Debug, Default)]
struct Trial {
    size: usize,
    passes: u32,
    ms: f64,
    held: f64,
}

impl Cores {
    /// Of a team of `most` members, all of which it uses at first.
    pub fn new(most: usize) -> Self {
        Self { most, used: most, held: 0.0, since: Stretch::default(), run: 0, failed: 0, trial: None }
    }

    /// Members that the next pass may have.
    pub fn members(&self) -> usize {
        self.trial.as_ref().map_or(self.used, |trial| trial.size)
    }

    /// A pass is over at `now`, in milliseconds by a clock that goes on between passes, too: after a pause
    /// other programs may have come or gone.
    pub fn learn(&mut self, now: f64, pass: Pass) {
        match self.trial.take() {
            Some(trial) if trial.size == pass.size => self.judge_trial(now, trial.and(pass)),
            trial => {
                self.trial = trial;
                self.judge(now, pass);
            }
        }
        let waited = self.since.start.is_none_or(|start| now - start >= self.since.wait);
        if self.trial.is_none() && self.used < self.most && waited {
            let size = self.most.min(self.used + step(self.run));
            self.trial = Some(Trial { size, ..Trial::default() });
        }
    }

    fn judge(&mut self, now: f64, pass: Pass) {
        if pass.size == 1 {
            return;
        }
        let weight = (pass.ms / (pass.ms + MEMORY)).min(MAX_WEIGHT);
        self.held += weight * (pass.held / pass.ms - self.held);
        self.since.ms += pass.ms;
        self.since.held += pass.held;
        if self.held > bearable(pass.size) {
            // Members that have just been taken back were so too early: what that cost is waited for.
            let soon = self.since.start.is_some_and(|start| now - start < WAIT.1);
            let price = if soon { PRICE * lost(pass.size, self.since.ms, self.since.held) } else { 0.0 };
            self.run = if soon { self.run.min(0) - 1 } else { -1 };
            let fewer = pass.size.saturating_sub(step(-1 - self.run)).max(1);
            self.change(now, fewer, price.clamp(WAIT.0, WAIT.1));
        }
    }

    /// Decides about a trial or lets it go on.
    fn judge_trial(&mut self, now: f64, trial: Trial) {
        let (long, passes) = TRIAL;
        if trial.held > bearable(trial.size) * trial.ms.max(long) {
            let soon = WAIT.0 * f64::from(1 << self.failed.min(BURSTS));
            let price = PRICE * lost(trial.size, trial.ms, trial.held);
            (self.run, self.failed) = (0, self.failed + 1);
            self.change(now, self.used, price.clamp(WAIT.0, WAIT.1.min(soon)));
        } else if trial.ms >= long && trial.passes >= passes {
            (self.run, self.failed) = (self.run.max(0) + 1, 0);
            self.change(now, trial.size, 0.0);
        } else {
            self.trial = Some(trial);
        }
    }

    fn change(&mut self, now: f64, used: usize, wait: f64) {
        (self.used, self.held, self.trial) = (used, 0.0, None);
        self.since = Stretch { start: Some(now), wait, ..Stretch::default() };
    }
}

impl Trial {
    fn and(self, Pass { size, ms, held }: Pass) -> Self {
        Self { size, passes: self.passes + 1, ms: self.ms + ms, held: self.held + held }
    }
}

/// The share of the time that `size` members may lose to hold-ups. One of them brings at most 1 / size of
/// the speed, and somewhat less as memory does not get faster.
fn bearable(size: usize) -> f64 {
    1.0 / (size + 1) as f64
}

/// Milliseconds that passes of `ms` milliseconds by `size` members took more than by one less, `held` of them
/// hold-ups.
fn lost(size: usize, ms: f64, held: f64) -> f64 {
    (held - bearable(size) * ms).max(0.0)
}

/// Members of the next change after so many in the same direction.
fn step(changes: i32) -> usize {
    1 << changes.clamp(0, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A computer on which passes take `ms` on one core, of which `busy` belong to somebody else, too: whose
    /// core that is stays away for three milliseconds in six.
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

        /// One pass; another program that finds a free core holds up nobody.
        fn pass(&mut self, cores: &mut Cores) -> usize {
            let size = cores.members();
            let work = self.ms / size as f64;
            let crowded = size > 1 && size + self.busy > self.cores;
            let held = if crowded { 3.0 * (work / 3.0).max(1.0).ceil() } else { 0.0 };
            self.now += work + held;
            cores.learn(self.now, Pass { size, ms: work + held, held });
            size
        }

        /// Passes for so long. Says how much of one thread's work was done in that time, and by how many
        /// members the last pass was carried out that was no trial.
        fn run(&mut self, cores: &mut Cores, ms: f64) -> (f64, usize) {
            let start = self.now;
            let mut work = 0.0;
            while self.now - start < ms {
                self.pass(cores);
                work += self.ms;
            }
            (work / (self.now - start), cores.used)
        }
    }

    #[test]
    fn all_members_are_used_while_nobody_is_held_up() {
        for most in [1, 2, 16] {
            let (mut cores, mut computer) = (Cores::new(most), Computer::new(most, 5.0));
            for _ in 0..10_000 {
                assert_eq!(computer.pass(&mut cores), most);
            }
        }
    }

    #[test]
    fn a_member_beside_a_busy_program_is_given_up_within_half_a_second() {
        for ms in [0.3, 5.0, 50.0] {
            let (mut cores, mut computer) = (Cores::new(2), Computer::new(2, ms));
            computer.run(&mut cores, 1000.0);
            computer.busy = 1;
            assert_eq!(computer.run(&mut cores, 500.0).1, 1, "passes of {ms} ms");
        }
    }

    #[test]
    fn beside_a_busy_program_trials_cost_two_percent_at_most() {
        for ms in [0.3, 5.0, 50.0] {
            let (mut cores, mut computer) = (Cores::new(2), Computer::new(2, ms));
            computer.busy = 1;
            computer.run(&mut cores, 1000.0);
            let (speed, used) = computer.run(&mut cores, 60_000.0);
            assert!(used == 1 && speed > 0.98, "passes of {ms} ms: {speed}");
        }
    }

    #[test]
    fn members_are_taken_back_within_seconds_once_their_cores_are_free() {
        for (most, ms) in [(2, 0.3), (2, 5.0), (2, 50.0), (16, 10.0)] {
            let (mut cores, mut computer) = (Cores::new(most), Computer::new(most, ms));
            computer.busy = most;
            assert_eq!(computer.run(&mut cores, 5000.0).1, 1);
            computer.busy = 0;
            assert_eq!(computer.run(&mut cores, 5000.0).1, most, "passes of {ms} ms");
        }
    }

    #[test]
    fn after_a_pause_a_trial_comes_at_once() {
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
    fn interruptions_now_and_then_are_borne() {
        // Passes of 4 ms between hold-ups, and how long these are.
        for (passes, held) in [(1, 1.0), (20, 20.0), (200, 150.0), (1000, 2000.0)] {
            let (mut cores, mut now) = (Cores::new(2), 0.0);
            for pass in 1..10_000 {
                let held = if pass % passes == 0 { held } else { 0.0 };
                now += 4.0 + held;
                cores.learn(now, Pass { size: cores.members(), ms: 4.0 + held, held });
                assert_eq!(cores.members(), 2, "{held} ms every {passes} passes, after {pass}");
            }
        }
    }

    #[test]
    fn bursts_of_another_program_a_few_times_a_second_are_borne() {
        // Milliseconds of a burst, four times a second; a pass takes 6 ms, in a burst 20, most of them lost.
        for burst in [20.0, 50.0, 80.0] {
            let (mut cores, mut now) = (Cores::new(2), 0.0);
            while now < 20_000.0 {
                let (ms, held) = if now % 250.0 < burst { (20.0, 14.0) } else { (6.0, 0.0) };
                now += ms;
                cores.learn(now, Pass { size: cores.members(), ms, held });
                assert_eq!(cores.members(), 2, "bursts of {burst} ms, after {now}");
            }
        }
    }

    #[test]
    fn a_member_that_a_cluster_of_bursts_cost_is_back_within_a_second() {
        // 300 ms of work on one of two cores every two seconds, and else 30 of 150, in which passes of 6 ms
        // take 20.
        let (mut cores, mut now, mut missing) = (Cores::new(2), 0.0, 0.0);
        while now < 60_000.0 {
            let size = cores.members();
            let beside = now % 2000.0 < 300.0 || now % 150.0 < 30.0;
            let (ms, held) = if size == 1 {
                (10.0, 0.0)
            } else if beside {
                (20.0, 14.0)
            } else {
                (6.0, 0.0)
            };
            missing += if size == 1 && !beside { ms } else { 0.0 };
            now += ms;
            cores.learn(now, Pass { size, ms, held });
        }
        assert!(missing < 0.1 * now, "{missing} of {now} ms with one member");
    }

    #[test]
    fn passes_of_fewer_members_than_are_tried_are_judged_as_well() {
        let mut cores = Cores::new(8);
        for pass in 0..200 {
            // A model that is too small for more than two members.
            let size = cores.members().min(2);
            let held = if size == 2 { 3.0 } else { 0.0 };
            cores.learn(f64::from(pass), Pass { size, ms: 1.0 + held, held });
        }
        assert_eq!(cores.used, 1);
    }
}
