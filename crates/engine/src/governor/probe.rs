//! When what was not chosen is tried: a draft that does not pay, and plain decoding while drafts do.

/// Of the time that passes without drafts, this share may go into trying.
const SHARE: f64 = 0.01;
const SHORTEST_WAIT: usize = 32;
const LONGEST_WAIT: usize = 256;

/// The account of drafts on trial: after 32 tokens without, then after twice as many up to 256, and only
/// from time that was set aside for it.
#[derive(Debug, Clone, Default)]
pub struct Probes {
    /// Tokens since the last draft.
    since: usize,
    /// Trials in a row that changed nothing.
    failed: u32,
    /// Milliseconds set aside.
    saved: f64,
    owed: f64,
}

impl Probes {
    /// Tokens of a trial.
    pub const LENGTH: usize = 2;

    /// Whether to try now, where that would cost `loss` milliseconds.
    pub fn due(&self, loss: f64) -> bool {
        let wait = (SHORTEST_WAIT << self.failed.min(3)).min(LONGEST_WAIT);
        self.since >= wait && self.saved >= loss
    }

    /// A trial begins that costs `loss` milliseconds.
    pub fn begin(&mut self, loss: f64) {
        self.owed = loss;
    }

    /// To be able to draft took `ms` milliseconds of what is set aside.
    pub fn charge(&mut self, ms: f64) {
        self.saved -= ms;
    }

    /// A round without a draft brought `tokens` in `ms`.
    pub fn waited(&mut self, tokens: usize, ms: f64) {
        self.since += tokens;
        self.saved += ms * SHARE;
    }

    /// A round with a draft, because the governor chose it or as a trial.
    pub fn drafted(&mut self, chosen: bool) {
        self.since = 0;
        if chosen {
            self.failed = 0;
        } else {
            self.failed += 1;
            self.saved -= std::mem::take(&mut self.owed);
        }
    }
}

/// What the time of a round's pass tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lesson {
    /// What a pass takes after a pass.
    Pass,
    /// What it takes after a draft, where it is known from right before what it takes after a pass.
    Pollution,
    /// The two together.
    Polluted,
    /// Nothing: it follows a pass that followed a draft.
    Nothing,
}

/// Runs of rounds without a draft that takes time, plain ones above all, between those with one. A pass after a draft
/// takes longer than one after a pass of the same model, whose weights and keys are still near; so what plain decoding
/// costs shows only in a run.
#[derive(Debug, Clone, Default)]
pub struct PlainRuns {
    /// Whether the last round had no such draft.
    follows: bool,
    /// Rounds that told what a pass takes after a pass, and all, since there was a run.
    passes: usize,
    since: usize,
}

impl PlainRuns {
    /// Rounds of a run after its first, which tells nothing.
    const LENGTH: usize = 3;
    /// Rounds after a run in which what it told still holds.
    const FRESH: usize = 3;
    /// Rounds between runs where drafting promises little, and where it promises much.
    const EVERY: [usize; 2] = [64, 256];
    const MUCH: f64 = 1.3;

    /// Whether the next round shall be plain, although drafting promises to be `gain` times as fast.
    pub fn due(&self, gain: f64) -> bool {
        self.since >= Self::EVERY[usize::from(gain > Self::MUCH)]
    }

    /// A round is over; `drafted` says whether its draft took time. Rounds with drafts may come in between: a run is
    /// over after so many without all the same.
    pub fn learn(&mut self, drafted: bool) -> Lesson {
        let follows = std::mem::replace(&mut self.follows, !drafted);
        let lesson = match (drafted, follows) {
            (false, true) => Lesson::Pass,
            (false, false) => Lesson::Nothing,
            (true, _) if self.since < Self::FRESH => Lesson::Pollution,
            (true, _) => Lesson::Polluted,
        };
        (self.passes, self.since) = (self.passes + usize::from(lesson == Lesson::Pass), self.since + 1);
        if self.passes >= Self::LENGTH {
            (self.passes, self.since) = (0, 0);
        }
        lesson
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens until the next trial.
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
                let tokens = wait(&mut probes, 1.0);
                probes.drafted(false);
                tokens
            })
            .collect();
        assert_eq!(waits, [32, 64, 128, 256, 256]);
        probes.drafted(true);
        assert_eq!(wait(&mut probes, 1.0), 32);
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
        let told: Vec<_> = rounds[63..72].iter().map(|round| round.1).collect();
        let (pass, pollution, polluted) = (Lesson::Pass, Lesson::Pollution, Lesson::Polluted);
        let run = [polluted, Lesson::Nothing, pass, pass, pass, pollution, pollution, pollution, polluted];
        assert_eq!(told, run);
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
