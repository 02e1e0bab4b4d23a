//! Drafter that repeats recorded drafts.

use std::sync::{Arc, Mutex, PoisonError};

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::costs::ReplayCosts;
use super::recording::{RecordedPosition, Recording};
use crate::accept::Guess;
use crate::context::Context;
use crate::draft::{Cost, Draft, DraftRequest, Drafter, Search};
use crate::drafter_kind::DrafterKind;
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

    fn guess(&self, token: TokenId, confidence: f32) -> Guess {
        let drafter = self.kind;
        Guess { token, parent: None, drawn_from: None, probability: confidence, confidence, drafter }
    }

    fn search(&self, position: &RecordedPosition, request: &DraftRequest<'_>, context: &Context) -> Draft {
        let mut search = Search::new(request, context, self.kind, &[]);
        loop {
            let places = search.next_step();
            if places.is_empty() {
                return search.finish();
            }
            for place in places {
                let children = position.after(&search.path(place));
                search.add(place, children.map(|(token, confidence)| self.guess(token, confidence)));
            }
        }
    }
}

impl Drafter for RecordedDrafter {
    fn kind(&self) -> DrafterKind {
        self.kind
    }

    fn draft(&mut self, context: &Context, request: &DraftRequest<'_>, _: &mut Sampler) -> Result<Draft> {
        let mut state = self.work.state();
        let position = state.recording.as_ref().and_then(|recording| {
            recording.positions.get(context.len().checked_sub(recording.prompt.len())?)
        });
        let draft = position.map_or_else(Draft::default, |position| self.search(position, request, context));
        state.passes.extend(&draft.steps);
        Ok(draft)
    }

    fn grows_trees(&self) -> bool {
        true
    }

    fn cost(&self) -> Cost {
        Cost::BY_TOKEN
    }
}
