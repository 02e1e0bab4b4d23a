//! Cancelling a job: each has a [`Cancel`] of its own, which is made with it and handed on with it. So nobody
//! cancels a job that came before or after the one that was meant.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// Whether a job shall end; all clones are about the same job.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the job after its present step, or soon after its beginning while it is queued.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `Break` once it is cancelled.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The latest job of its kind, queued or under way.
#[derive(Debug, Default)]
pub struct Latest(Mutex<Cancel>);

impl Latest {
    /// Ends the one before, and returns what is to be handed to the next.
    pub fn begin(&self) -> Cancel {
        let next = Cancel::default();
        std::mem::replace(&mut *lock(&self.0), next.clone()).cancel();
        next
    }

    pub fn end(&self) {
        lock(&self.0).cancel();
    }
}

/// Jobs that give way to anything else that is asked for.
#[derive(Debug, Default)]
pub struct GiveWay {
    /// Trials of drafts.
    pub trials: Latest,
    pub title: Latest,
}

impl GiveWay {
    /// Ends them all.
    pub fn all(&self) {
        self.trials.end();
        self.title.end();
    }
}

/// Lets one job go on at a time, queued or under way, and knows which.
#[derive(Debug, Default)]
pub struct Turns(Mutex<Option<Cancel>>);

/// The right to be the one job; given back when it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    cancel: Cancel,
}

impl Turns {
    /// `None` while another job has it.
    pub fn take(&self) -> Option<Turn<'_>> {
        let mut current = lock(&self.0);
        if current.is_some() {
            return None;
        }
        let cancel = current.insert(Cancel::default()).clone();
        Some(Turn { turns: self, cancel })
    }

    /// Cancels the job that has the turn; without one nothing happens.
    pub fn cancel(&self) {
        lock(&self.0).iter().for_each(Cancel::cancel);
    }
}

impl Turn<'_> {
    /// To be handed to the job.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.turns.0) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_cancelled_from_the_moment_it_has_its_turn() {
        let turns = Turns::default();
        let turn = turns.take().unwrap();
        turns.cancel();
        assert!(turn.cancel().is_cancelled() && turn.cancel().flow().is_break());
    }

    #[test]
    fn cancelling_reaches_no_job_before_or_after_the_one_that_has_the_turn() {
        let turns = Turns::default();
        turns.cancel();
        let first = turns.take().unwrap();
        let kept = first.cancel();
        drop(first);
        turns.cancel();
        let second = turns.take().unwrap();
        assert!(!kept.is_cancelled() && !second.cancel().is_cancelled());
        turns.cancel();
        assert!(!kept.is_cancelled() && second.cancel().is_cancelled());
    }

    #[test]
    fn there_is_one_turn_and_it_comes_back() {
        let turns = Turns::default();
        let turn = turns.take();
        assert!(turn.is_some() && turns.take().is_none());
        drop(turn);
        assert!(turns.take().is_some());
    }
}
