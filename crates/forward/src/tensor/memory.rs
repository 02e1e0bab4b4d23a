//! Memory of a recurrent layer: states of the text, and step logs of its last tokens, in the slots
//! that [`StateHistory`](crate::state_history::StateHistory) names.

use candle_core::{Result, Tensor};

use crate::state_history::StatePlan;
use crate::tree::TokenTree;

/// State and log slots of a pass, and its tree.
pub struct RecurrentPass<'a> {
    pub plan: StatePlan,
    pub tree: &'a TokenTree,
    /// First node to run; earlier nodes have step logs.
    pub first: usize,
}

impl RecurrentPass<'_> {
    /// Leading nodes of the tree whose step logs are not kept.
    pub fn skipped(&self) -> usize {
        self.plan.logs.iter().take_while(|row| row.is_none()).count()
    }
}

/// State of a recurrent layer after some text.
#[derive(Debug, Clone)]
pub struct State {
    /// Previous rows that the convolution reads.
    pub tail: Tensor, // [taps - 1, channels]
    /// State matrix of every value head; empty for layers without.
    pub matrices: Tensor, // [values, key_size, value_size]
}

/// Step log: the effect of one row on the state.
#[derive(Debug, Clone)]
pub struct StepRecord {
    pub inputs: Tensor, // [1, channels]
    /// Update of the matrices, if the layer has any.
    pub update: Option<Update>,
}

/// Update of state matrices M to `decay * M + key * correction`.
#[derive(Debug, Clone)]
pub struct Update {
    pub decay: Tensor,      // [values, 1, 1]
    pub key: Tensor,        // [values, key_size, 1]
    pub correction: Tensor, // [values, 1, value_size]
}

impl Update {
    pub fn apply(&self, matrices: &Tensor) -> Result<Tensor> {
        matrices.broadcast_mul(&self.decay)? + self.key.broadcast_mul(&self.correction)?
    }
}

/// States and step logs of a layer.
#[derive(Debug)]
pub struct RecurrentMemory {
    /// State of the empty text.
    empty: State,
    states: Vec<Option<State>>,
    records: Vec<Option<StepRecord>>,
}

impl RecurrentMemory {
    pub fn new(empty: State) -> Self {
        Self { empty, states: Vec::new(), records: Vec::new() }
    }

    /// State that a pass begins with, and the step logs to apply first.
    ///
    /// # Errors
    /// A slot that holds no state.
    pub fn initial(&self, plan: &StatePlan) -> Result<(State, Vec<StepRecord>)> {
        let state = plan.from.map_or_else(|| Ok(self.empty.clone()), |from| read_slot(&self.states, from))?;
        Ok((state, plan.before.iter().map(|&slot| self.record(slot)).collect::<Result<_>>()?))
    }

    /// # Errors
    /// As [`Self::initial`].
    pub fn record(&self, slot: usize) -> Result<StepRecord> {
        read_slot(&self.records, slot)
    }

    pub fn write_state(&mut self, slot: usize, state: State) {
        write_slot(&mut self.states, slot, state);
    }

    pub fn write_record(&mut self, slot: usize, record: StepRecord) {
        write_slot(&mut self.records, slot, record);
    }
}

fn read_slot<T: Clone>(all: &[Option<T>], slot: usize) -> Result<T> {
    let found = all.get(slot).and_then(Option::as_ref).cloned();
    found.ok_or_else(|| candle_core::Error::Msg(format!("slot {slot} of the recurrent states is empty")))
}

fn write_slot<T>(all: &mut Vec<Option<T>>, slot: usize, value: T) {
    all.resize_with(all.len().max(slot + 1), || None);
    all[slot] = Some(value);
}
