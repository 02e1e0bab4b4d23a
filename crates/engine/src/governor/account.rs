//! What is known of one drafter: what its drafts cost, and how the governor used it last.

use super::READING;
use super::costs::{Costs, DraftCosts, Estimate};
use super::probe::Probes;
use super::shape::KnownTree;
use crate::drafter_kind::DrafterKind;
use crate::speculation::MAX_DRAFT_LENGTH;

#[derive(Debug, Clone)]
pub(super) struct Account {
    /// What it is called, here and in what is kept of it.
    pub label: DrafterKind,
    /// Whether its drafts take next to no time; nothing below is of use then.
    pub is_free: bool,
    /// Most tokens of a draft that is there at once, however many are asked for; `None` of one that comes token by
    /// token.
    pub at_once: Option<usize>,
    /// What of it was asked for last.
    pub asked: usize,
    /// What drafts cost by length, by itself and staged.
    pub draft: [Costs; 2],
    /// Of [`DraftCosts`].
    pub pollution: Estimate,
    /// What a tree's draft takes against what its levels would as tokens of a chain.
    pub level: Estimate,
    /// Milliseconds in which it reads a token of the context.
    pub reading: f64,
    pub tree: KnownTree,
    /// The length chosen last.
    pub length: usize,
    /// Whether the last plan departs from that to try it.
    pub is_on_trial: bool,
    pub probes: Probes,
    /// Plans so far.
    pub plans: usize,
}

impl Account {
    /// `costs` is what its drafts cost; `None` where they are free.
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

    /// Of a chain, by itself or staged.
    pub fn chain_ms(&self, length: usize, staged: bool) -> f64 {
        let length = length.min(self.longest());
        if length > 0 { self.draft[usize::from(staged)].get(length) } else { 0.0 }
    }

    /// Most tokens it drafts.
    pub fn longest(&self) -> usize {
        self.at_once.map_or(MAX_DRAFT_LENGTH, |longest| longest.min(MAX_DRAFT_LENGTH))
    }

    /// T_s: milliseconds of a further token in a long draft, which are none where it is there already.
    pub fn token_ms(&self, staged: bool) -> f64 {
        if self.at_once.is_some() {
            return 0.0;
        }
        self.chain_ms(MAX_DRAFT_LENGTH, staged) / MAX_DRAFT_LENGTH as f64
    }
}
