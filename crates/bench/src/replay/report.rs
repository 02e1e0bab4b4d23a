//! Speed of a policy on a set, over plain decoding's and over another policy's.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use foretoken_engine::replay::{Calibrated, Recording, ReplayedText, Simulated};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

/// Resamples of the texts for an interval.
const RESAMPLES: usize = 1000;

#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(rename = "type")]
    kind: &'static str,
    set: String,
    computer: String,
    policy: String,
    /// Speed over plain decoding's.
    pub speedup: f64,
    /// Speed over plain decoding's in the first 24 rounds of each text.
    first_rounds: f64,
    /// Speed over the first policy's; `None` for that policy.
    pub over_first: Option<Interval>,
    tokens_per_round: f64,
    rows_per_round: f64,
    acceptance: f64,
    /// Verified guesses by tenths of their estimated chance.
    calibration: [Calibrated; 10],
    /// Speedup by topic.
    topics: BTreeMap<String, f64>,
}

impl Report {
    /// Sums up the replays `texts` of `recordings`; `names` are those of set, computer and policy.
    pub fn new(names: [&str; 3], recordings: &[Arc<Recording>], texts: &[ReplayedText]) -> Self {
        let sum = |of: fn(&ReplayedText) -> usize| texts.iter().map(of).sum::<usize>() as f64;
        let (rounds, drafted) = (sum(|text| text.rounds), sum(|text| text.drafted));
        let mut topics: BTreeMap<String, Vec<Simulated>> = BTreeMap::new();
        for (recording, text) in recordings.iter().zip(texts) {
            topics.entry(recording.topic.clone()).or_default().push(text.all);
        }
        let mut calibration = [Calibrated::default(); 10];
        for text in texts {
            calibration.iter_mut().zip(text.calibration).for_each(|(range, more)| range.add(more));
        }
        let [set, computer, policy] = names.map(str::to_owned);
        Self {
            kind: "replay",
            set,
            computer,
            policy,
            speedup: speedup(texts.iter().map(|text| text.all)),
            first_rounds: speedup(texts.iter().map(|text| text.first)),
            over_first: None,
            tokens_per_round: sum(|text| text.tokens) / rounds,
            rows_per_round: 1.0 + drafted / rounds,
            acceptance: sum(|text| text.accepted) / drafted.max(1.0),
            calibration,
            topics: topics.into_iter().map(|(topic, texts)| (topic, speedup(texts))).collect(),
        }
    }

    pub fn key(&self) -> String {
        format!("{}, {}, {}", self.set, self.computer, self.policy)
    }

    /// The report in words, followed by its calibration if `calibration`.
    pub fn line(&self, calibration: bool) -> String {
        let topics: Vec<String> =
            self.topics.iter().map(|(topic, speedup)| format!("{topic} {speedup:.3}")).collect();
        let mut line = format!(
            "{:22} {:8} {:10} {:.3} times plain ({:.3} in the first rounds), {:.2} tokens and {:.2} rows a \
             round, {:.0} % accepted; {}",
            self.set,
            self.computer,
            self.policy,
            self.speedup,
            self.first_rounds,
            self.tokens_per_round,
            self.rows_per_round,
            self.acceptance * 1e2,
            topics.join(", ")
        );
        if let Some(Interval { ratio, low, high }) = self.over_first {
            _ = write!(line, "; {ratio:.3} ({low:.3} to {high:.3}) times the first policy");
        }
        for range in self.calibration.iter().filter(|range| calibration && range.guesses > 0) {
            let Calibrated { guesses, expected, reached } = *range;
            let (expected, reached) = (expected / guesses as f64, reached as f64 / guesses as f64);
            _ = write!(line, "\n  {guesses:6} guesses: {expected:.3} expected, {reached:.3} accepted");
        }
        line
    }
}

/// A policy's speed over another's, with the 95 % interval of a bootstrap over texts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Interval {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Speed of `texts` over that of `first`, replays of the same recordings.
    pub fn of(first: &[ReplayedText], texts: &[ReplayedText]) -> Self {
        let pairs: Vec<Simulated> =
            first.iter().zip(texts).map(|(a, b)| Simulated { ms: b.all.ms, plain_ms: a.all.ms }).collect();
        let mut random = StdRng::seed_from_u64(0);
        let mut resample = || speedup((0..pairs.len()).map(|_| pairs[random.random_range(0..pairs.len())]));
        let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let [low, high] = [RESAMPLES / 40, RESAMPLES - 1 - RESAMPLES / 40].map(|at| ratios[at]);
        Self { ratio: speedup(pairs), low, high }
    }
}

fn speedup(parts: impl IntoIterator<Item = Simulated>) -> f64 {
    let add = |(ms, plain_ms), part: Simulated| (ms + part.ms, plain_ms + part.plain_ms);
    let (ms, plain_ms) = parts.into_iter().fold((0.0, 0.0), add);
    plain_ms / ms
}
