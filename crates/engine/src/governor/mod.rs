//! The governor: chooses the draft length and shape with the most expected tokens per second. No
//! draft at all is one of the choices. Inputs are costs of passes and drafts on this device, and
//! acceptance statistics; there is no randomness and no I/O.
//!
//! This file has the statistics and the expected speed. The rest:
//! - `choosing`: the next [`Plan`] of a drafter; `picking`: the plan that is carried out
//! - `worth`: chances of guesses and prices of rows and steps, by which a draft grows; `pricing`:
//!   these from the statistics
//! - `certain`: number of free guesses to verify
//! - `explaining`: the speed curve behind a choice, for the trace
//! - `learning`: updates after a round; [`GovernorStats`]: statistics that are saved
//! - [`RowRatios`]: assumed costs of passes before they are measured
//! - `account`: state of one drafter, by its index; [`Costs`], [`Acceptance`], [`TextKind`],
//!   [`Probes`]: its parts

mod acceptance;
mod account;
mod certain;
mod choosing;
mod costs;
mod explaining;
mod learning;
mod picking;
mod plan;
mod pricing;
mod probe;
mod recent_speed;
mod row_ratios;
mod saved_stats;
#[cfg(test)]
mod tests;
mod text;
mod worth;

use crate::accept::Guess;
use crate::drafter_kind::DrafterKind;
use crate::speculation::MAX_DRAFT_LENGTH;
use account::Account;

pub use acceptance::{Acceptance, Calibration};
pub use costs::{Costs, DraftCosts, Estimate, MAX_ROWS};
pub use plan::{DraftWork, Part, Plan, Prospect};
pub use probe::{PlainRuns, Probes};
use recent_speed::RecentSpeed;
pub use row_ratios::{CostClass, RowRatios};
pub use saved_stats::GovernorStats;
pub use text::TextKind;
use text::{DrafterStats, TextStats};
pub use worth::{Chances, Prices, Worth};

/// Expected speedup from which drafting begins.
const HYSTERESIS: f64 = 1.03;

/// Assumed cost of prefilling a token against drafting one, until it is measured.
const PREFILL_COST: f64 = 0.25;

/// Assumed cost of a token of a prompt against a plain pass, until a prompt was measured.
const PROMPT_COST: f64 = 0.1;

/// Last choice explained in the trace, and its age in rounds.
#[derive(Debug, Clone, Copy)]
struct Explained {
    drafter: usize,
    length: usize,
    age: usize,
}

/// Assumed cost of a drafter's drafts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AssumedDraft {
    /// Time of a step over the time of a plain pass of the target.
    pub share: f64,
    /// True if all tokens of a draft come from one step.
    pub at_once: bool,
    /// Milliseconds in which the target reads a token of a prompt; `None` if unknown. The drafter
    /// is assumed to take its share of them.
    pub prompt_ms: Option<f64>,
}

/// Statistics of a target and its drafters.
#[derive(Debug, Clone)]
pub struct Governor {
    /// Cost of the target's passes, by rows.
    verify: Costs,
    /// Cost of the rest of a round, by rows: computing distributions and verifying.
    judge: Costs,
    drafters: Vec<Account>,
    /// Statistics by kind of text, and the kind of the present reply.
    texts: [TextStats; TextKind::COUNT],
    kind: TextKind,
    /// Tokens of the present reply.
    written: usize,
    recent: RecentSpeed,
    plain: PlainRuns,
    /// Last choice explained in the trace.
    explained: Option<Explained>,
}

impl Governor {
    /// Creates a governor from the cost of the target's passes and the kind and cost of each
    /// drafter; `None` for a drafter whose drafts are free.
    pub fn new(verify: Costs, drafters: Vec<(DrafterKind, Option<DraftCosts>)>) -> Self {
        let texts = std::array::from_fn(|_| TextStats::new(drafters.len()));
        Self {
            verify,
            judge: Costs::measured(&[(1, 0.01), (2, 0.02)]),
            drafters: drafters.into_iter().map(|(label, draft)| Account::new(label, draft)).collect(),
            texts,
            kind: TextKind::default(),
            written: 0,
            recent: RecentSpeed::default(),
            plain: PlainRuns::default(),
            explained: None,
        }
    }

    /// Creates a governor from plain passes that took `plain_ms` milliseconds (`None` before the
    /// first), and from the kind and the assumed cost of each drafter; `None` for a drafter whose
    /// drafts are free. The first rounds measure what is assumed here.
    pub fn assumed(
        plain_ms: Option<f64>,
        ratios: &RowRatios,
        drafters: Vec<(DrafterKind, Option<AssumedDraft>)>,
    ) -> Self {
        let mut verify = Costs::assumed(|rows| ratios.get(rows));
        plain_ms.iter().for_each(|&ms| verify.learn(1, ms));
        let plain_ms = verify.get(1);
        let costs = |AssumedDraft { share, at_once, .. }: AssumedDraft| {
            let steps = |tokens: usize| if at_once { 1.0 } else { tokens as f64 };
            let draft = Costs::assumed(|tokens| share * plain_ms * steps(tokens));
            DraftCosts { draft, eviction_cost: 1.0 }
        };
        let priced = drafters.iter().map(|&(kind, draft)| (kind, draft.map(costs)));
        let mut governor = Self::new(verify, priced.collect());
        for (account, (_, draft)) in governor.drafters.iter_mut().zip(drafters) {
            let Some(AssumedDraft { share, prompt_ms, .. }) = draft else { continue };
            account.token_prefill_ms = share * prompt_ms.unwrap_or(plain_ms * PROMPT_COST);
            account.assumes_prefill = true;
        }
        governor
    }

    /// Marks a drafter that drafts up to `longest` tokens in one pass: a draft costs what was
    /// requested, even if it ends early.
    pub fn set_block_length(&mut self, drafter: usize, longest: usize) {
        self.drafters[drafter].at_once = Some(longest);
    }

    /// Returns true if plain passes were measured.
    pub fn has_measured_plain(&self) -> bool {
        self.verify.is_measured(1)
    }

    /// Longest draft to verify: passes grow to three times the rows of the largest measured one,
    /// so that wrong assumptions cost little.
    pub fn longest_draft(&self) -> usize {
        (3 * self.verify.largest_measured()).max(3) - 1
    }

    /// P(accepted, given that all its ancestors were) for a guess of a drafter's chain.
    fn chance(&self, drafter: usize, depth: usize, guess: &Guess) -> f64 {
        if guess.drafter == DrafterKind::Forced {
            return 1.0;
        }
        self.stats(drafter).calibration.chance(depth, 0, guess.confidence, guess.drawn_from.is_some())
    }

    /// Statistics of a drafter for the present kind of text.
    fn stats(&self, drafter: usize) -> &DrafterStats {
        &self.texts[self.kind.index()].records[drafter]
    }

    /// Starts a reply of this kind. A kind without statistics starts with those of the last reply,
    /// at less weight.
    pub fn begin_reply(&mut self, kind: TextKind) {
        (self.explained, self.written, self.recent) = (None, 0, RecentSpeed::default());
        if self.texts[kind.index()].is_empty() {
            let mut stats = self.texts[self.kind.index()].clone();
            stats.fade();
            self.texts[kind.index()] = stats;
        }
        self.kind = kind;
        self.texts[kind.index()].begin_text();
    }

    /// Tokens per millisecond of plain decoding.
    pub fn plain_rate(&self) -> f64 {
        1.0 / self.time(0)
    }

    /// Milliseconds of a round with a chain of `length` tokens.
    fn chain_time(&self, drafter: usize, length: usize, staged: bool) -> f64 {
        if length == 0 {
            return self.time(0);
        }
        self.drafted_time(drafter, length, self.drafters[drafter].chain_ms(length, staged))
    }

    /// Milliseconds of a round that verifies `drafted` tokens, drafted in `draft_ms`.
    fn drafted_time(&self, drafter: usize, drafted: usize, draft_ms: f64) -> f64 {
        let evicted_ms = (self.drafters[drafter].eviction_cost.get() - 1.0) * self.verify.get(drafted + 1);
        draft_ms + evicted_ms + self.time(drafted)
    }

    /// Milliseconds of a round that verifies `drafted` free tokens.
    fn time(&self, drafted: usize) -> f64 {
        self.verify.get(drafted + 1) + self.judge.get(drafted + 1)
    }

    /// Expected tokens and time by draft length N, 0 to [`MAX_DRAFT_LENGTH`]: 1 + sum over j <= N
    /// of S_j tokens, where S_j is the product of a_1 to a_j, in the time to draft N tokens + T_v(N
    /// + 1) + the time to judge.
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

    /// Value of a round against rounds of other drafters: its tokens, minus the tokens usually
    /// written in the time it takes longer than a plain round (renewal-reward). A long draft that
    /// is hardly faster than plain decoding keeps better ones from being made, since every round is
    /// another chance for repetition.
    pub fn round_value(&self, Prospect { tokens, ms }: Prospect) -> f64 {
        let plain = self.time(0);
        tokens - self.recent.rate(plain) * (ms - plain)
    }

    /// Fastest draft length of a drafter if every drafted token has chance `acceptance`, and its
    /// expected tokens per millisecond.
    pub fn expected_speed(&self, drafter: usize, acceptance: f64) -> (usize, f64) {
        let rates = self.prospects(drafter, &[acceptance; MAX_DRAFT_LENGTH], false).map(Prospect::rate);
        let best = highest(&rates);
        (best, rates[best])
    }
}

/// Index of the largest rate.
fn highest(rates: &[f64]) -> usize {
    (0..rates.len()).max_by(|&a, &b| rates[a].total_cmp(&rates[b])).unwrap_or(0)
}
