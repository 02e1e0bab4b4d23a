//! The governor: how far ahead to draft, and in what shape, so that most tokens per second come of it. No
//! draft at all is one of the choices. It reckons with what passes and drafts cost on this device and with
//! how often drafted tokens were accepted; it draws nothing and asks nobody.
//!
//! Here is what it knows and how it reckons; the rest of it:
//! - `choosing`, `growing`: what a drafter shall do next, as a chain or as a tree; [`Plan`]: the answer;
//!   `picking`: whose plan is carried out
//! - `certain`: how much to verify of guesses that cost nothing
//! - `explaining`: the curve behind a choice, for the trace
//! - `learning`: what a finished round teaches; [`Knowledge`]: what of it outlives the program
//! - `account`: what it knows of one drafter; [`Costs`], [`Acceptance`], [`TextKind`], [`Shape`], [`Probes`]:
//!   what it knows, part by part. A drafter goes by its number among those that draft for the target

mod acceptance;
mod account;
mod certain;
mod choosing;
mod costs;
mod explaining;
mod growing;
mod knowledge;
mod learning;
mod picking;
mod plan;
mod probe;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod usual;

use crate::accept::Guess;
use crate::drafter_kind::DrafterKind;
use crate::speculation::MAX_DRAFT_LENGTH;
use account::Account;

pub use acceptance::{Acceptance, Calibration};
pub use costs::{Costs, DraftCosts, Estimate, MAX_ROWS};
pub use knowledge::Knowledge;
pub use plan::{Cutoff, Part, Plan, Prospect};
pub use probe::{PlainRuns, Probes};
pub use shape::{Plans, Shape};
pub use text::TextKind;
use text::{Lessons, Record};
use usual::Usual;

/// A change must promise this much to be made.
const HYSTERESIS: f64 = 1.03;

/// What reading a token costs the draft, which reads many at once, against drafting one, until it is known.
const READING: f64 = 0.25;

/// The choice that was explained to the trace last, and how many rounds ago.
#[derive(Debug, Clone, Copy)]
struct Explained {
    drafter: usize,
    length: usize,
    age: usize,
}

/// What was learned about a target and who drafts for it.
#[derive(Debug, Clone)]
pub struct Governor {
    /// Of the target's passes, by rows.
    verify: Costs,
    /// Of a round beside drafting and verifying, by rows: each is made a distribution and judged.
    judge: Costs,
    drafters: Vec<Account>,
    /// What was learned from texts, by their kind, and the kind of the present one.
    texts: [Lessons; TextKind::COUNT],
    kind: TextKind,
    /// Tokens of the present text.
    written: usize,
    usual: Usual,
    plain: PlainRuns,
    /// What was explained to the trace last.
    explained: Option<Explained>,
}

impl Governor {
    /// From what passes of the target cost, and of each drafter its label and what its drafts cost; `None` for one
    /// that guesses at no cost.
    pub fn new(verify: Costs, drafters: Vec<(DrafterKind, Option<DraftCosts>)>) -> Self {
        let texts = std::array::from_fn(|_| Lessons::new(drafters.len()));
        Self {
            verify,
            judge: Costs::measured(&[(1, 0.01), (2, 0.02)]),
            drafters: drafters.into_iter().map(|(label, draft)| Account::new(label, draft)).collect(),
            texts,
            kind: TextKind::default(),
            written: 0,
            usual: Usual::default(),
            plain: PlainRuns::default(),
            explained: None,
        }
    }

    /// This drafter drafts up to `longest` tokens at once: a draft that ends early has cost as much as was asked for.
    pub fn drafts_at_once(&mut self, drafter: usize, longest: usize) {
        self.drafters[drafter].at_once = Some(longest);
    }

    pub fn calibration(&self, drafter: usize) -> &Calibration {
        &self.record(drafter).calibration
    }

    /// That a guess of a drafter's chain is accepted when all before it are.
    fn chance(&self, drafter: usize, depth: usize, guess: &Guess) -> f64 {
        self.calibration(drafter).chance(depth, guess.confidence)
    }

    /// Of the present kind of text.
    fn record(&self, drafter: usize) -> &Record {
        &self.texts[self.kind.index()].records[drafter]
    }

    /// A reply of this kind begins: nothing is explained yet. Of a kind that is new, what the last one
    /// taught is the best guess.
    pub fn begin_reply(&mut self, kind: TextKind) {
        (self.explained, self.written, self.usual) = (None, 0, Usual::default());
        if self.texts[kind.index()].is_empty() {
            let mut lessons = self.texts[self.kind.index()].clone();
            lessons.fade();
            self.texts[kind.index()] = lessons;
        }
        self.kind = kind;
        self.texts[kind.index()].begin_text();
    }

    /// Tokens per millisecond of plain decoding.
    pub fn plain_rate(&self) -> f64 {
        1.0 / self.time(0)
    }

    /// Of a round with a chain of `length` tokens of a drafter.
    fn chain_time(&self, drafter: usize, length: usize, staged: bool) -> f64 {
        if length == 0 {
            return self.time(0);
        }
        self.drafted_time(drafter, length, self.drafters[drafter].chain_ms(length, staged))
    }

    /// Of a round that verifies `drafted` tokens which a drafter took `draft_ms` for.
    fn drafted_time(&self, drafter: usize, drafted: usize, draft_ms: f64) -> f64 {
        let polluted = (self.drafters[drafter].pollution.get() - 1.0) * self.verify.get(drafted + 1);
        draft_ms + polluted + self.time(drafted)
    }

    /// Of a round that verifies `drafted` tokens which are there at no cost.
    fn time(&self, drafted: usize) -> f64 {
        self.verify.get(drafted + 1) + self.judge.get(drafted + 1)
    }

    /// What to expect by draft length, 0 to [`MAX_DRAFT_LENGTH`]: 1 + sum over j <= N of S_j tokens, S_j the product
    /// of a_1 to a_j, in the time to draft N + T_v(N + 1) + time to judge.
    fn prospects(
        &self,
        drafter: usize,
        acceptance: &[f64; MAX_DRAFT_LENGTH],
        staged: bool,
    ) -> [Prospect; MAX_ROWS] {
        let (mut survival, mut tokens) = (1.0, 1.0);
        let longest = self.drafters[drafter].longest();
        std::array::from_fn(|length| {
            if (1..=longest).contains(&length) {
                survival *= acceptance[length - 1];
                tokens += survival;
            }
            Prospect { tokens, ms: self.chain_time(drafter, length, staged) }
        })
    }

    /// What a round is worth beside those of other drafters: its tokens, less those that usually come in the time
    /// it takes longer than a plain one (renewal-reward). A draft that is a little faster than plain decoding and
    /// takes three times as long keeps better ones from being made: every round is another chance that repetition
    /// has something to offer.
    pub fn round_value(&self, Prospect { tokens, ms }: Prospect) -> f64 {
        let plain = self.time(0);
        tokens - self.usual.rate(plain) * (ms - plain)
    }

    /// The draft length of a drafter that promises most where every drafted token has the chance `acceptance`,
    /// and the tokens per millisecond to expect of it.
    pub fn promise(&self, drafter: usize, acceptance: f64) -> (usize, f64) {
        let rates = self.prospects(drafter, &[acceptance; MAX_DRAFT_LENGTH], false).map(Prospect::rate);
        let best = highest(&rates);
        (best, rates[best])
    }
}

/// Where the largest of `rates` is.
fn highest(rates: &[f64]) -> usize {
    (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0)
}
