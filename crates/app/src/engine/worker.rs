//! The engine thread: takes jobs from its queue, one after the other, and gives them to whom they are for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};

use foretoken_engine::model::ChatMessage;

use super::job::{Job, OnReply};
use super::local::Local;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::EnginePhase;
use crate::replier::{Ending, Event, Replier};

/// What the engine thread works with.
pub(super) struct Worker {
    pub(super) local: Local,
    /// Who replies in the place of the models on this computer, if anybody.
    pub(super) replier: Option<Box<dyn Replier>>,
}

impl Worker {
    /// Works until nobody can send jobs any more.
    pub(super) fn work(mut self, queue: mpsc::Receiver<Job>) {
        self.local.list_devices();
        while let Some(job) = self.next(&queue) {
            let computes = job.computes();
            let done = catch_unwind(AssertUnwindSafe(|| {
                self.carry_out(job);
                self.local.recover();
            }));
            if done.is_err() {
                self.local.give_up();
                // What failed on one text may do with others; what failed to load would fail again.
                let again = || {
                    if computes {
                        self.local.load_again()
                    }
                };
                if catch_unwind(AssertUnwindSafe(again)).is_err() {
                    self.local.give_up();
                }
            }
        }
    }

    /// The next job. Before there is one is the time to measure this computer.
    fn next(&mut self, queue: &mpsc::Receiver<Job>) -> Option<Job> {
        if let Ok(job) = queue.try_recv() {
            return Some(job);
        }
        self.local.measure_reading();
        queue.recv().ok()
    }

    /// Whoever asked may have gone, so that nobody hears what comes of it.
    fn carry_out(&mut self, job: Job) {
        let local = &mut self.local;
        match job {
            Job::Settings { settings, earlier, revision } => {
                local.apply_settings(*settings, earlier, revision);
            }
            Job::List => local.list_models(),
            Job::Advise { text, on_advice, cancel, done } => {
                let _ = done.send(local.advise(&text, &on_advice, &cancel));
            }
            Job::Reply { messages, mut on, cancel, done } => {
                let outcome = self.reply(&messages, &cancel, &mut on);
                // The recorder ends with what it hears from.
                drop(on);
                let written = outcome.as_ref().ok().and_then(|ending| ending.summary.clone());
                let _ = done.send(outcome);
                self.local.keep_learned();
                // What another wrote says nothing of the models here.
                written
                    .iter()
                    .filter(|_| self.replier.is_none())
                    .for_each(|reply| self.local.keep_speed(reply));
            }
            Job::Serve { order, teller } => {
                local.serve(*order, teller);
                local.keep_learned();
            }
            Job::Measure { messages, done } => {
                let settings = self.local.settings.clone();
                let _ = done.send(self.replier().measure(&messages, &settings));
            }
            Job::Check { stored, on_progress, cancel, done } => {
                let _ = done.send(local.check(&stored, &on_progress, &cancel));
            }
            Job::Arena { request, on_event, cancel, done } => {
                let _ = done.send(local.arena(&request, &on_event, &cancel));
            }
        }
    }

    fn replier(&mut self) -> &mut dyn Replier {
        match &mut self.replier {
            Some(replier) => replier.as_mut(),
            None => &mut self.local,
        }
    }

    /// Lets whoever replies do so, and shows it from the moment the conversation is accepted.
    fn reply(&mut self, messages: &[ChatMessage], cancel: &Cancel, on: &mut OnReply) -> Result<Ending> {
        let (settings, board) = (self.local.settings.clone(), Arc::clone(&self.local.board));
        let idle = board.status().phase;
        let mut hear = |event: Event<'_>| {
            on(event);
            if matches!(event, Event::Started { .. }) {
                board.update(|status| status.phase = EnginePhase::Replying);
            }
        };
        let outcome = self.replier().reply(messages, &settings, cancel, &mut hear);
        board.update(|status| status.phase = idle);
        self.local.report_memory();
        outcome
    }
}
