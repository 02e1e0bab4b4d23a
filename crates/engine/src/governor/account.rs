//! State of one drafter: the cost of its drafts and its last plan.

use super::READING;
use super::costs::{Costs, DraftCosts, Estimate};
use super::probe::Probes;
use super::shape::KnownTree;
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
    pub asked: usize,
    /// Cost of a draft by length, unstaged and staged.
    pub draft: [Costs; 2],
    /// See [`DraftCosts`].
    pub pollution: Estimate,
    /// Cost of a tree's draft against the expected cost of its levels.
    pub level: Estimate,
    /// Milliseconds to prefill a token.
    pub reading: f64,
    pub tree: KnownTree,
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
        let free = || DraftCosts { draft: Costs::measured(&[(1, 0.0)]), pollution: 1.0 };
        let DraftCosts { draft, pollution } = costs.unwrap_or_else(free);
        Self {
            label,
            is_free,
            at_once: None,
            asked: 0,
            reading: draft.get(1) * READING,
            draft: [draft.clone(), draft],
            pollution: Estimate::new(pollution),
            level: Estimate::new(1.0),
            tree: KnownTree::default(),
            length: 0,
            is_on_trial: false,
            probes: Probes::default(),
            plans: 0,
        }
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
