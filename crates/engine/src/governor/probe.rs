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

/// Runs of plain rounds between drafts. A pass after a draft takes longer than one after a pass of the same
/// model, whose weights and keys are still near; so what plain decoding costs shows only in a run.
#[derive(Debug, Clone, Default)]
pub struct PlainRuns {
    /// Whether the last round was plain.
    follows: bool,
    /// Plain rounds, and all, since there was a run.
    plain: usize,
    since: usize,
}

impl PlainRuns {
    const LENGTH: usize = 4;
    /// Rounds between runs where drafting promises little, and where it promises much.
    const EVERY: [usize; 2] = [64, 256];
    const MUCH: f64 = 1.3;

    /// Whether the next round shall be plain, although drafting promises to be `gain` times as fast.
    pub fn due(&self, gain: f64) -> bool {
        self.since >= Self::EVERY[usize::from(gain > Self::MUCH)]
    }

    /// A round with so many drafted tokens is over. Says whether its pass took what such passes take. Rounds
    /// that others draft may come in between: a run is over after so many plain ones all the same.
    pub fn learn(&mut self, drafted: usize) -> bool {
        let follows = std::mem::replace(&mut self.follows, drafted == 0);
        (self.plain, self.since) = (self.plain + usize::from(drafted == 0), self.since + 1);
        if self.plain >= Self::LENGTH {
            (self.plain, self.since) = (0, 0);
        }
        drafted > 0 || follows
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
            rounds.push((plain, runs.learn(if plain { 0 } else { 3 })));
        }
        let plain: Vec<usize> = (0..200).filter(|&round| rounds[round].0).collect();
        assert_eq!(plain, [64, 65, 66, 67, 132, 133, 134, 135]);
        assert_eq!(rounds[64..68].iter().map(|round| round.1).collect::<Vec<_>>(), [false, true, true, true]);
        assert!(rounds[68].1, "drafts always are");
        let mut fresh = PlainRuns::default();
        fresh.learn(0);
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
