//! Kinds of text, and what texts of one kind taught. What a drafter is worth differs more between code and
//! prose, or between the likeliest tokens and drawn ones, than between two models of a family.

use serde::{Deserialize, Serialize};

use super::acceptance::{Acceptance, Calibration};
use crate::sampling::Sampling;

/// A kind of text, as far as it can be told before it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextKind {
    code: bool,
    drawn: bool,
}

impl TextKind {
    pub const COUNT: usize = 4;

    /// Of a reply to a prompt that ends in `end`, with tokens chosen as `sampling` says.
    pub fn of(end: &str, sampling: &Sampling) -> Self {
        Self { code: is_code(end), drawn: !sampling.is_greedy() }
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.code) * 2 + usize::from(self.drawn)
    }
}

/// Whether a text holds a block of code, or a third of its lines are indented or end like a statement.
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

/// What is known of one drafter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub acceptance: Acceptance,
    pub calibration: Calibration,
}

impl Record {
    /// Whether it can have come of rounds.
    pub fn is_sound(&self) -> bool {
        self.acceptance.is_sound() && self.calibration.is_sound()
    }
}

/// How fast text comes of rounds in which no drafter has a part whose drafts take time: tokens of theirs, and
/// their time in plain rounds. Later ones count more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Alone {
    tokens: f32,
    rounds: f32,
}

/// What a round counts after the next.
const KEEP: f32 = 0.97;
/// In a new text, those of the ones before count as at most so many rounds.
const CARRIED: f32 = 16.0;
/// As long as little is known, so many rounds were plain.
const PLAIN: f32 = 4.0;

impl Alone {
    /// Whether it can have come of rounds.
    pub fn is_sound(self) -> bool {
        [self.tokens, self.rounds].iter().all(|&number| (0.0..1e6).contains(&number))
    }

    /// A round brought `tokens` and took as long as `rounds` plain ones.
    pub fn learn(&mut self, tokens: usize, rounds: f64) {
        self.tokens = self.tokens * KEEP + tokens as f32;
        self.rounds = self.rounds * KEEP + rounds as f32;
    }

    /// Tokens in the time of a plain round.
    pub fn tokens(self) -> f64 {
        f64::from((self.tokens + PLAIN) / (self.rounds + PLAIN))
    }

    fn fade(&mut self) {
        let scale = (CARRIED / self.rounds.max(CARRIED)).min(1.0);
        (self.tokens, self.rounds) = (self.tokens * scale, self.rounds * scale);
    }
}

/// What texts of one kind taught.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Lessons {
    /// By the drafters' numbers.
    pub records: Vec<Record>,
    pub alone: Alone,
}

impl Lessons {
    /// Of nothing yet, about so many drafters.
    pub fn new(drafters: usize) -> Self {
        Self { records: vec![Record::default(); drafters], alone: Alone::default() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::new(self.records.len())
    }

    /// Another text begins.
    pub fn begin_text(&mut self) {
        self.records.iter_mut().for_each(|record| record.acceptance.begin_text());
        self.alone.fade();
    }

    /// Another run of the program begins, or they are of another kind of text.
    pub fn fade(&mut self) {
        self.begin_text();
        self.records.iter_mut().for_each(|record| record.calibration.fade());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_prose() {
        let code = ["fn main() {\n    run();\n}", "Complete this:\n```python\nx = 1\n```", "a\n\tb\n\tc"];
        let prose =
            ["Tell me a story about a fox.", "Why (or why not)?\n\nSay it in one line.\nOr two.\n", ""];
        assert!(code.iter().all(|text| is_code(text)));
        assert!(!prose.iter().any(|text| is_code(text)));
    }

    #[test]
    fn kinds_have_places_of_their_own() {
        let drawn = Sampling::default();
        let kinds = ["x", "```"].map(|end| [&Sampling::greedy(), &drawn].map(|by| TextKind::of(end, by)));
        let mut places: Vec<_> = kinds.iter().flatten().map(|kind| kind.index()).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3]);
    }

    #[test]
    fn what_comes_without_the_model_is_plain_until_it_is_known() {
        let mut alone = Alone::default();
        assert!((alone.tokens() - 1.0).abs() < 1e-6);
        (0..60).for_each(|_| alone.learn(3, 1.5));
        assert!((alone.tokens() - 2.0).abs() < 0.15, "{}", alone.tokens());
    }
}
