//! What a recurrent layer remembers of a text: states, and records of what its last tokens did to them, at the places
//! that [`Past`](crate::forward::past::Past) names.

use candle_core::{Result, Tensor};

use crate::forward::past::Plan;
use crate::tree::TokenTree;

/// What a pass does with states and records, and the tree it is over.
pub struct Course<'a> {
    pub plan: Plan,
    pub tree: &'a TokenTree,
    /// The first node that is run; those before have records.
    pub first: usize,
}

impl Course<'_> {
    /// Nodes of the tree, from its first on, whose records need not last.
    pub fn skipped(&self) -> usize {
        self.plan.rows.iter().take_while(|row| row.is_none()).count()
    }
}

/// A state of the text.
#[derive(Debug, Clone)]
pub struct State {
    /// What a convolution sees of the rows before.
    pub tail: Tensor, // [taps - 1, channels]
    /// Of every value head; without numbers where a layer has none.
    pub matrices: Tensor, // [values, key_size, value_size]
}

/// What a row did to the state.
#[derive(Debug, Clone)]
pub struct Record {
    pub inputs: Tensor, // [1, channels]
    /// To the matrices, if there are any.
    pub update: Option<Update>,
}

/// Matrices M become `decay * M + key * correction`.
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

/// The states and records of a layer.
#[derive(Debug)]
pub struct Memory {
    /// Of the text without a token.
    nothing: State,
    states: Vec<Option<State>>,
    records: Vec<Option<Record>>,
}

impl Memory {
    pub fn new(nothing: State) -> Self {
        Self { nothing, states: Vec::new(), records: Vec::new() }
    }

    /// The state that a pass begins with, and the records that are applied to it first.
    ///
    /// # Errors
    /// Where there is none at its place.
    pub fn begin(&self, plan: &Plan) -> Result<(State, Vec<Record>)> {
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
