//! State of one drafter: the cost of its drafts and its last plan.

use super::PREFILL_COST;
use super::costs::{Costs, DraftCosts, Estimate, SMALLEST};
use super::probe::Probes;
use crate::drafter_kind::DrafterKind;
use crate::speculation::MAX_DRAFT_LENGTH;

#[derive(Debug, Clone)]
pub(super) struct Account {
    /// Kind of the drafter, also in saved statistics.
    pub label: DrafterKind,
    /// True if its drafts are free; the fields below are then unused.
    pub is_free: bool,
    /// Maximum length of a one-pass draft, which costs the same at any length; `None` if tokens are
    /// drafted one by one.
    pub at_once: Option<usize>,
    /// Length requested last.
    pub requested: usize,
    /// Cost of a draft by length, unstaged and staged.
    pub draft: [Costs; 2],
    /// See [`DraftCosts`].
    pub eviction_cost: Estimate,
    /// Cost of steps over several rows against the expected cost.
    pub level: Estimate,
    /// Milliseconds to prefill a token.
    pub token_prefill_ms: f64,
    /// True if `token_prefill_ms` was never measured.
    pub assumes_prefill: bool,
    /// Length chosen last.
    pub length: usize,
    /// True if the last plan was a trial.
    pub is_on_trial: bool,
    pub probes: Probes,
    /// Number of plans so far.
    pub plans: usize,
}

impl Account {
    /// `costs` is the cost of its drafts; `None` if they are free.
    pub fn new(label: DrafterKind, costs: Option<DraftCosts>) -> Self {
        let is_free = costs.is_none();
        let free = || DraftCosts { draft: Costs::measured(&[(1, 0.0)]), eviction_cost: 1.0 };
        let DraftCosts { draft, eviction_cost } = costs.unwrap_or_else(free);
        Self {
            label,
            is_free,
            at_once: None,
            requested: 0,
            token_prefill_ms: draft.get(1) * PREFILL_COST,
            assumes_prefill: false,
            draft: [draft.clone(), draft],
            eviction_cost: Estimate::new(eviction_cost),
            level: Estimate::new(1.0),
            length: 0,
            is_on_trial: false,
            probes: Probes::default(),
            plans: 0,
        }
    }

    /// Updates the cost of a chain of `tokens` tokens. If the first one takes longer than assumed,
    /// so does an assumed prefill.
    pub fn learn_chain(&mut self, tokens: usize, staged: bool, ms: f64) {
        let costs = &mut self.draft[usize::from(staged)];
        if self.assumes_prefill && costs.measured_bits() == 0 {
            self.token_prefill_ms = (self.token_prefill_ms * ms / costs.get(tokens.max(1))).max(SMALLEST);
        }
        costs.learn(tokens, ms);
    }

    /// Updates the cost of a prefill. The first measurement replaces an assumption; after that each
    /// one weighs as much as all before, since prefills are rare and long, so that little disturbs
    /// them.
    pub fn learn_prefill(&mut self, token_ms: f64) {
        let known = if self.assumes_prefill { token_ms } else { self.token_prefill_ms };
        self.token_prefill_ms = (known * token_ms).sqrt();
        self.assumes_prefill = false;
    }

    /// Returns true if the cost of its drafts is no longer decided by single measurements.
    pub fn has_settled(&self, staged: bool) -> bool {
        self.draft[usize::from(staged)].is_settled(1)
    }

    /// Milliseconds to draft a chain.
    pub fn chain_ms(&self, length: usize, staged: bool) -> f64 {
        let length = length.min(self.longest());
        if length > 0 { self.draft[usize::from(staged)].get(length) } else { 0.0 }
    }

    /// Maximum draft length.
    pub fn longest(&self) -> usize {
        self.at_once.map_or(MAX_DRAFT_LENGTH, |longest| longest.min(MAX_DRAFT_LENGTH))
    }

    /// T_s: milliseconds of a further token in a long draft; 0 for one-pass drafts.
    pub fn token_ms(&self, staged: bool) -> f64 {
        if self.at_once.is_some() {
            return 0.0;
        }
        self.chain_ms(MAX_DRAFT_LENGTH, staged) / MAX_DRAFT_LENGTH as f64
    }
}
