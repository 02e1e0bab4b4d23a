//! Memory of a recurrent layer: states of the text, and step logs of its last tokens, in the slots
//! that [`StateHistory`](crate::forward::state_history::StateHistory) names.

use candle_core::{Result, Tensor};

use crate::forward::state_history::StatePlan;
use crate::tree::TokenTree;

/// State and log slots of a pass, and its tree.
pub struct Course<'a> {
    pub plan: StatePlan,
    pub tree: &'a TokenTree,
    /// First node to run; earlier nodes have step logs.
    pub first: usize,
}

impl Course<'_> {
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
pub struct Record {
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
pub struct Memory {
    /// State of the empty text.
    nothing: State,
    states: Vec<Option<State>>,
    records: Vec<Option<Record>>,
}

impl Memory {
    pub fn new(nothing: State) -> Self {
        Self { nothing, states: Vec::new(), records: Vec::new() }
    }

    /// State that a pass begins with, and the step logs to apply first.
    ///
    /// # Errors
    /// A slot that holds no state.
    pub fn begin(&self, plan: &StatePlan) -> Result<(State, Vec<Record>)> {
        let state = plan.from.map_or_else(|| Ok(self.nothing.clone()), |from| held(&self.states, from))?;
        Ok((state, plan.before.iter().map(|&place| self.record(place)).collect::<Result<_>>()?))
    }

    /// # Errors
    /// As [`Self::begin`].
    pub fn record(&self, place: usize) -> Result<Record> {
        held(&self.records, place)
    }

    pub fn leave(&mut self, place: usize, state: State) {
        put(&mut self.states, place, state);
    }

    pub fn write(&mut self, place: usize, record: Record) {
        put(&mut self.records, place, record);
    }
}

fn held<T: Clone>(all: &[Option<T>], place: usize) -> Result<T> {
    let found = all.get(place).and_then(Option::as_ref).cloned();
    found.ok_or_else(|| candle_core::Error::Msg(format!("nothing is remembered at place {place}")))
}

fn put<T>(all: &mut Vec<Option<T>>, place: usize, value: T) {
    all.resize_with(all.len().max(place + 1), || None);
    all[place] = Some(value);
}
