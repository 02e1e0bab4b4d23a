//! Kinds of text, and the statistics of each. A drafter's acceptance differs more between code and
//! prose, or between greedy and sampled text, than between two models of a family.

use foretoken_model::sampling::Sampling;
use serde::{Deserialize, Serialize};

use super::acceptance::{Acceptance, Calibration};
use super::plan::Prospect;

/// Kind of a reply, as far as its prompt and settings show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextKind {
    code: bool,
    drawn: bool,
}

impl TextKind {
    pub const COUNT: usize = 4;

    /// Kind of a reply to a prompt that ends in `end`, sampled with `sampling`.
    pub fn of(end: &str, sampling: &Sampling) -> Self {
        Self { code: is_code(end), drawn: !sampling.is_greedy() }
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.code) * 2 + usize::from(self.drawn)
    }
}

/// Returns true if a text has a code block, or a third of its lines are indented or end like a
/// statement.
fn is_code(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (mut all, mut code) = (0, 0);
    for line in lines {
        all += 1;
        let statement = line.trim_end().ends_with([';', '{', '}', '(', ')', ']']);
        code += usize::from(statement || line.starts_with("  ") || line.starts_with('\t'));
    }
    text.contains("```") || code * 3 > all
}

/// Acceptance statistics of one drafter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct DrafterStats {
    pub acceptance: Acceptance,
    pub calibration: Calibration,
    #[serde(default)]
    pub drafted: DraftedRounds,
}

impl DrafterStats {
    /// Returns true if the counts are possible.
    pub fn is_sound(&self) -> bool {
        self.acceptance.is_sound() && self.calibration.is_sound() && self.drafted.is_sound()
    }
}

/// Results of rounds whose draft ended by its worth: their tokens, and their time in plain rounds,
/// decayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct DraftedRounds {
    rounds: f32,
    tokens: f32,
    time: f32,
}

/// Weight in rounds of the prospect that is expected from chances alone.
const EXPECTED: f64 = 8.0;

impl DraftedRounds {
    /// Returns true if the counts are possible.
    fn is_sound(self) -> bool {
        [self.rounds, self.tokens, self.time].iter().all(|&number| (0.0..1e6).contains(&number))
    }

    /// Adds a round with `tokens` expected tokens that took as long as `time` plain ones.
    pub fn learn(&mut self, tokens: f64, time: f64) {
        self.rounds = self.rounds * KEEP + 1.0;
        self.tokens = self.tokens * KEEP + tokens as f32;
        self.time = self.time * KEEP + time as f32;
    }

    /// Adds a round that another drafter or none drafted.
    pub fn wait(&mut self) {
        self.scale(KEEP_WAITING);
    }

    /// Mean of these rounds, and of the expected one.
    pub fn prospect(self, expected: Prospect, plain_ms: f64) -> Prospect {
        let rounds = f64::from(self.rounds) + EXPECTED;
        Prospect {
            tokens: (f64::from(self.tokens) + EXPECTED * expected.tokens) / rounds,
            ms: (f64::from(self.time) * plain_ms + EXPECTED * expected.ms) / rounds,
        }
    }

    fn fade(&mut self) {
        self.scale((CARRIED / self.rounds.max(CARRIED)).min(1.0));
    }

    fn scale(&mut self, scale: f32) {
        for number in [&mut self.rounds, &mut self.tokens, &mut self.time] {
            *number *= scale;
        }
    }
}

/// Speed of rounds without a paid drafter: their tokens, and their time in plain rounds, decayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct UnpaidSpeed {
    tokens: f32,
    rounds: f32,
}

/// Decay per round.
const KEEP: f32 = 0.97;
/// Decay per round that another drafter or none drafted.
const KEEP_WAITING: f32 = 0.995;
/// Maximum weight of earlier texts in a new one, in rounds.
const CARRIED: f32 = 16.0;
/// Plain rounds in the prior.
const PLAIN: f32 = 4.0;

impl UnpaidSpeed {
    /// Returns true if the counts are possible.
    pub fn is_sound(self) -> bool {
        [self.tokens, self.rounds].iter().all(|&number| (0.0..1e6).contains(&number))
    }

    /// Adds a round with `tokens` tokens that took as long as `rounds` plain ones.
    pub fn learn(&mut self, tokens: usize, rounds: f64) {
        self.tokens = self.tokens * KEEP + tokens as f32;
        self.rounds = self.rounds * KEEP + rounds as f32;
    }

    /// Tokens per time of a plain round.
    pub fn tokens(self) -> f64 {
        f64::from((self.tokens + PLAIN) / (self.rounds + PLAIN))
    }

    fn fade(&mut self) {
        let scale = (CARRIED / self.rounds.max(CARRIED)).min(1.0);
        (self.tokens, self.rounds) = (self.tokens * scale, self.rounds * scale);
    }
}

/// Statistics of one kind of text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TextStats {
    /// Statistics by drafter index.
    pub records: Vec<DrafterStats>,
    pub unpaid: UnpaidSpeed,
}

impl TextStats {
    /// Empty statistics of `drafters` drafters.
    pub fn new(drafters: usize) -> Self {
        Self { records: vec![DrafterStats::default(); drafters], unpaid: UnpaidSpeed::default() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::new(self.records.len())
    }

    /// Starts another text.
    pub fn begin_text(&mut self) {
        for record in &mut self.records {
            record.acceptance.begin_text();
            record.drafted.fade();
        }
        self.unpaid.fade();
    }

    /// Reduces the weight of statistics from another run of the program or another kind of text.
    pub fn fade(&mut self) {
        self.begin_text();
        self.records.iter_mut().for_each(|record| record.calibration.fade());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_distinguished_from_prose() {
        let code = ["fn main() {\n    run();\n}", "Complete this:\n```python\nx = 1\n```", "a\n\tb\n\tc"];
        let prose =
            ["Tell me a story about a fox.", "Why (or why not)?\n\nSay it in one line.\nOr two.\n", ""];
        assert!(code.iter().all(|text| is_code(text)));
        assert!(!prose.iter().any(|text| is_code(text)));
    }

    #[test]
    fn kinds_of_text_have_different_indices() {
        let drawn = Sampling::default();
        let kinds = ["x", "```"].map(|end| [&Sampling::greedy(), &drawn].map(|by| TextKind::of(end, by)));
        let mut places: Vec<_> = kinds.iter().flatten().map(|kind| kind.index()).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3]);
    }

    #[test]
    fn the_speed_without_paid_drafters_is_plain_until_it_is_measured() {
        let mut unpaid = UnpaidSpeed::default();
        assert!((unpaid.tokens() - 1.0).abs() < 1e-6);
        (0..60).for_each(|_| unpaid.learn(3, 1.5));
        assert!((unpaid.tokens() - 2.0).abs() < 0.15, "{}", unpaid.tokens());
    }
}
