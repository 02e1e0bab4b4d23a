//! Decides when to try what was not chosen: a draft that does not pay, and plain decoding while
//! drafts do.

/// Share of the time without drafts that trials may take.
const SHARE: f64 = 0.01;
const SHORTEST_WAIT: usize = 8;
const LONGEST_WAIT: usize = 64;

/// Budget of a drafter's trials: after 8 tokens without a draft, then after twice as many up to 64,
/// and only from saved time.
#[derive(Debug, Clone, Default)]
pub struct Probes {
    /// Tokens since the last draft.
    since: usize,
    /// True if it drafted before.
    is_known: bool,
    /// Trials in a row after which drafting still did not pay.
    failed: u32,
    /// Milliseconds saved for trials.
    saved: f64,
    owed: f64,
}

impl Probes {
    /// Returns true if a trial that costs `loss` milliseconds may start.
    pub fn due(&self, loss: f64) -> bool {
        let wait = (SHORTEST_WAIT << self.failed.min(3)).min(LONGEST_WAIT);
        self.since >= wait && self.saved >= loss
    }

    /// Returns true before the first draft.
    pub fn is_new(&self) -> bool {
        !self.is_known
    }

    /// Starts a trial that costs `loss` milliseconds.
    pub fn begin(&mut self, loss: f64) {
        self.owed = loss;
    }

    /// Takes `ms` milliseconds of prefill from the saved time.
    pub fn charge(&mut self, ms: f64) {
        self.saved -= ms;
    }

    /// Adds a round without a draft: `tokens` tokens in `ms` milliseconds.
    pub fn waited(&mut self, tokens: usize, ms: f64) {
        self.since += tokens;
        self.saved += ms * SHARE;
    }

    /// Adds a round with a draft, chosen by the governor or on trial.
    pub fn drafted(&mut self, chosen: bool) {
        (self.since, self.is_known) = (0, true);
        if chosen {
            self.failed = 0;
        } else {
            self.failed += 1;
            self.saved -= std::mem::take(&mut self.owed);
        }
    }
}

/// Cost that the time of a round's pass measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassCost {
    /// A pass after a pass.
    Plain,
    /// The eviction cost: a pass after a draft, right after a plain run.
    Eviction,
    /// Both together.
    Both,
    /// Neither: the pass before it followed a draft.
    Unknown,
}

/// Schedules runs of rounds without a paid draft. A pass after a draft takes longer than a pass
/// after a pass of the same model, whose weights and keys are still in the processor's cache. So
/// the cost of plain decoding shows only in a run.
#[derive(Debug, Clone, Default)]
pub struct PlainRuns {
    /// True if the last round had no paid draft.
    follows: bool,
    /// Measured passes after a pass in the present run, and rounds since the last run.
    passes: usize,
    since: usize,
}

impl PlainRuns {
    /// Rounds of a run after its first, which measures nothing.
    const LENGTH: usize = 3;
    /// Rounds after a run in which its measurement still counts.
    const FRESH: usize = 3;
    /// Rounds between runs if drafting gains little, and if it gains much.
    const EVERY: [usize; 2] = [64, 256];
    const MUCH: f64 = 1.3;

    /// Returns true if the next round shall be plain although drafting is expected to be `gain`
    /// times as fast.
    pub fn due(&self, gain: f64) -> bool {
        self.since >= Self::EVERY[usize::from(gain > Self::MUCH)]
    }

    /// Adds a finished round; `drafted` is true if its draft took time. Rounds with drafts may come
    /// in between: a run ends after a number of rounds without.
    pub fn learn(&mut self, drafted: bool) -> PassCost {
        let follows = std::mem::replace(&mut self.follows, !drafted);
        let measured = match (drafted, follows) {
            (false, true) => PassCost::Plain,
            (false, false) => PassCost::Unknown,
            (true, _) if self.since < Self::FRESH => PassCost::Eviction,
            (true, _) => PassCost::Both,
        };
        (self.passes, self.since) = (self.passes + usize::from(measured == PassCost::Plain), self.since + 1);
        if self.passes >= Self::LENGTH {
            (self.passes, self.since) = (0, 0);
        }
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of tokens until the next trial.
    fn wait(probes: &mut Probes, loss: f64) -> usize {
        let mut tokens = 0;
        while !probes.due(loss) && tokens < 100_000 {
            probes.waited(1, 10.0);
            tokens += 1;
        }
        probes.begin(loss);
        tokens
    }

    #[test]
    fn trials_get_rarer_and_start_again_once_drafting_pays() {
        let mut probes = Probes::default();
        let waits: Vec<usize> = (0..5)
            .map(|_| {
                let tokens = wait(&mut probes, 0.5);
                probes.drafted(false);
                tokens
            })
            .collect();
        assert_eq!(waits, [8, 16, 32, 64, 64]);
        probes.drafted(true);
        assert_eq!(wait(&mut probes, 0.5), 8);
    }

    #[test]
    fn plain_runs_come_between_drafts_and_their_first_round_is_not_counted() {
        let mut runs = PlainRuns::default();
        let mut rounds = Vec::new();
        for _ in 0..200 {
            let plain = runs.due(1.1);
            rounds.push((plain, runs.learn(!plain)));
        }
        let plain: Vec<usize> = (0..200).filter(|&round| rounds[round].0).collect();
        assert_eq!(plain, [64, 65, 66, 67, 132, 133, 134, 135]);
        let costs: Vec<_> = rounds[63..72].iter().map(|round| round.1).collect();
        let (plain, eviction, both) = (PassCost::Plain, PassCost::Eviction, PassCost::Both);
        let run = [both, PassCost::Unknown, plain, plain, plain, eviction, eviction, eviction, both];
        assert_eq!(costs, run);
        let mut fresh = PlainRuns::default();
        fresh.learn(false);
        assert!(!fresh.due(1.1), "a plain round for another reason begins no run");
        assert!(!runs.due(2.0), "what pays well is compared less often");
    }

    #[test]
    fn trials_take_no_more_than_their_share() {
        let mut probes = Probes::default();
        let mut tokens = 0;
        for _ in 0..4 {
            tokens += wait(&mut probes, 100.0);
            probes.drafted(false);
        }
        assert!(4.0 * 100.0 <= tokens as f64 * 10.0 * SHARE + 1e-6, "after {tokens} tokens");
    }
}
