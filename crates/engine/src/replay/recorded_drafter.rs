//! Drafter that repeats recorded drafts.

use std::sync::{Arc, Mutex, PoisonError};

use foretoken_model::error::Result;

use super::costs::ReplayCosts;
use super::recording::{RecordedPosition, Recording};
use crate::accept::Guess;
use crate::context::Context;
use crate::draft::{Chain, Cost, Draft, DraftRequest, Drafter};
use crate::drafter_kind::DrafterKind;
use crate::governor::Shape;
use crate::sampler::Sampler;

/// The replayed text, and the drafter's passes since the last round.
#[derive(Debug, Default)]
pub(super) struct Work(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    recording: Option<Arc<Recording>>,
    /// Rows of each pass.
    passes: Vec<usize>,
}

impl Work {
    /// Starts a text.
    pub fn begin(&self, recording: &Arc<Recording>) {
        *self.state() = State { recording: Some(Arc::clone(recording)), passes: Vec::new() };
    }

    /// Milliseconds of the passes since the last call.
    pub fn take_ms(&self, costs: &ReplayCosts) -> f64 {
        std::mem::take(&mut self.state().passes).into_iter().map(|rows| costs.step_ms(rows)).sum()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub(super) struct RecordedDrafter {
    kind: DrafterKind,
    work: Arc<Work>,
}

impl RecordedDrafter {
    pub fn new(kind: DrafterKind, work: Arc<Work>) -> Self {
        Self { kind, work }
    }

    fn guess(&self, parent: Option<usize>, (token, confidence): (u32, f32)) -> Guess {
        Guess { token, parent, drawn_from: None, probability: confidence, confidence, drafter: self.kind }
    }

    fn chain(
        &self,
        position: &RecordedPosition,
        request: &DraftRequest<'_>,
        passes: &mut Vec<usize>,
    ) -> Draft {
        let mut chain = Chain::new(request);
        let mut parent = None;
        while let Some((index, token, confidence)) = position.children(parent).next() {
            passes.push(1);
            if !chain.extend(self.guess(None, (token, confidence)), false) {
                break;
            }
            parent = Some(index);
        }
        chain.draft
    }

    fn tree(&self, position: &RecordedPosition, shape: &Shape, passes: &mut Vec<usize>) -> Draft {
        let mut draft = Draft::default();
        // The recorded guess, the shape's node and the draft's guess of each row of a pass.
        let mut rows = vec![(None, Shape::ROOT, None)];
        while !rows.is_empty() {
            passes.push(rows.len());
            let mut next = Vec::new();
            for (recorded, node, parent) in rows {
                let children = position.children(recorded).zip(shape.children(node));
                for ((index, token, confidence), &child) in children {
                    if !shape.children(child).is_empty() {
                        next.push((Some(index), child, Some(draft.guesses.len())));
                    }
                    draft.guesses.push(self.guess(parent, (token, confidence)));
                }
            }
            rows = next;
        }
        draft
    }
}

impl Drafter for RecordedDrafter {
    fn kind(&self) -> DrafterKind {
        self.kind
    }

    fn draft(&mut self, context: &Context, request: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        let mut state = self.work.state();
        let State { recording, passes } = &mut *state;
        let position = recording.as_ref().and_then(|recording| {
            recording.positions.get(context.len().checked_sub(recording.prompt.len())?)
        });
        Ok(position.map_or_else(Draft::default, |position| match request.shape {
            Some(shape) => self.tree(position, shape, passes),
            None => self.chain(position, request, passes),
        }))
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}
