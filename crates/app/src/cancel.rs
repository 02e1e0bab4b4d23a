//! Cancellation of jobs: each job has a [`Cancel`] of its own, created with it and passed along. So
//! a cancellation never affects an earlier or later job.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// Flag of a job; all clones belong to the same job.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the job after its current step, or soon after its start if it is queued.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns `Break` once the job is cancelled.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Latest job of its kind, queued or running.
#[derive(Debug, Default)]
pub struct Latest(Mutex<Cancel>);

impl Latest {
    /// Cancels the previous job and returns the flag of the next.
    pub fn begin(&self) -> Cancel {
        let next = Cancel::default();
        std::mem::replace(&mut *lock(&self.0), next.clone()).cancel();
        next
    }

    pub fn end(&self) {
        lock(&self.0).cancel();
    }
}

/// Background jobs, which any other job cancels.
#[derive(Debug, Default)]
pub struct BackgroundJobs {
    /// Trials of drafts.
    pub trials: Latest,
    pub title: Latest,
}

impl BackgroundJobs {
    /// Cancels all background jobs.
    pub fn all(&self) {
        self.trials.end();
        self.title.end();
    }
}

/// Slot that allows one queued or running job at a time.
#[derive(Debug, Default)]
pub struct JobSlot(Mutex<Option<Cancel>>);

/// Guard of the slot, which is free again when the guard is dropped.
#[derive(Debug)]
pub struct SlotGuard<'a> {
    slot: &'a JobSlot,
    cancel: Cancel,
}

impl JobSlot {
    /// Takes the slot; `None` while another job has it.
    pub fn take(&self) -> Option<SlotGuard<'_>> {
        let mut current = lock(&self.0);
        if current.is_some() {
            return None;
        }
        let cancel = current.insert(Cancel::default()).clone();
        Some(SlotGuard { slot: self, cancel })
    }

    /// Returns whether a job is queued or running.
    pub fn is_taken(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Cancels the job in the slot, if there is one.
    pub fn cancel(&self) {
        lock(&self.0).iter().for_each(Cancel::cancel);
    }
}

impl SlotGuard<'_> {
    /// Returns the job's flag.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.slot.0) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_can_be_cancelled_as_soon_as_it_has_the_slot() {
        let slot = JobSlot::default();
        let guard = slot.take().unwrap();
        slot.cancel();
        assert!(guard.cancel().is_cancelled() && guard.cancel().flow().is_break());
    }

    #[test]
    fn cancelling_affects_no_earlier_or_later_job() {
        let slot = JobSlot::default();
        slot.cancel();
        let first = slot.take().unwrap();
        let kept = first.cancel();
        drop(first);
        slot.cancel();
        let second = slot.take().unwrap();
        assert!(!kept.is_cancelled() && !second.cancel().is_cancelled());
        slot.cancel();
        assert!(!kept.is_cancelled() && second.cancel().is_cancelled());
    }

    #[test]
    fn there_is_one_slot_and_it_is_returned() {
        let slot = JobSlot::default();
        let guard = slot.take();
        assert!(guard.is_some() && slot.take().is_none() && slot.is_taken());
        drop(guard);
        assert!(!slot.is_taken());
        assert!(slot.take().is_some());
    }
}
