//! A drafter whose panics are errors: a failure of a draft never ends its target's reply.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use foretoken_forward::Taps;
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;

use super::{Cost, Draft, DraftRequest, Drafter, Observation, ParkedDrafter};
use crate::context::Context;
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;

/// Runs `work` and turns a panic into an error; the panic itself is in the log.
///
/// # Errors
/// Errors of `work`; `Error::DraftPanicked`.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What a panic interrupted is not used again.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Error::DraftPanicked))
}

/// A drafter that is not called again after a panic, which left it in an unknown state.
pub struct CaughtDrafter {
    drafter: Box<dyn Drafter>,
    kind: DrafterKind,
    cost: Cost,
    taps: Option<Taps>,
    panicked: bool,
}

impl CaughtDrafter {
    pub fn new(drafter: Box<dyn Drafter>) -> Self {
        let (kind, cost, taps) = (drafter.kind(), drafter.cost(), drafter.taps().cloned());
        Self { drafter, kind, cost, taps, panicked: false }
    }

    /// Returns true if the drafter panicked once.
    pub fn panicked(&self) -> bool {
        self.panicked
    }

    fn call<T>(&mut self, work: impl FnOnce(&mut dyn Drafter) -> Result<T>) -> Result<T> {
        if self.panicked {
            return Err(Error::DraftPanicked);
        }
        self.panicked = true;
        let result = caught(|| work(self.drafter.as_mut()));
        self.panicked = matches!(result, Err(Error::DraftPanicked));
        result
    }

    /// Result of a method that only reads; `otherwise` after a panic.
    fn read<T>(&self, otherwise: T, read: impl FnOnce(&dyn Drafter) -> T) -> T {
        if self.panicked {
            return otherwise;
        }
        caught(|| Ok(read(self.drafter.as_ref()))).unwrap_or(otherwise)
    }
}

impl Drafter for CaughtDrafter {
    fn kind(&self) -> DrafterKind {
        self.kind
    }

    fn prepare(
        &mut self,
        context: &Context,
        on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.call(|drafter| drafter.prepare(context, on_progress))
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        self.call(|drafter| drafter.draft(context, request, sampler))
    }

    fn observe(&mut self, observed: &Observation<'_>) -> Result<()> {
        self.call(|drafter| drafter.observe(observed))
    }

    fn taps(&self) -> Option<&Taps> {
        self.taps.as_ref()
    }

    fn missing_features(&self, context: &Context) -> usize {
        self.read(0, |drafter| drafter.missing_features(context))
    }

    fn grows_trees(&self) -> bool {
        self.read(false, |drafter| drafter.grows_trees())
    }

    fn remember(&mut self, texts: &[Vec<TokenId>]) {
        let _ = self.call(|drafter| {
            drafter.remember(texts);
            Ok(())
        });
    }

    fn forget(&mut self) {
        let _ = self.call(|drafter| {
            drafter.forget();
            Ok(())
        });
    }

    fn park(&self) -> Option<ParkedDrafter> {
        self.read(None, |drafter| drafter.park())
    }

    fn resume(&mut self, parked: &ParkedDrafter) {
        let _ = self.call(|drafter| {
            drafter.resume(parked);
            Ok(())
        });
    }

    fn behind(&self, context: &Context) -> usize {
        self.read(0, |drafter| drafter.behind(context))
    }

    fn cost(&self) -> Cost {
        self.cost
    }
}
