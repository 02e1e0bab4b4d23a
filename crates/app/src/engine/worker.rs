//! The engine thread: takes jobs from its queue, one after the other, and gives them to whom they are for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use foretoken_engine::model::ChatMessage;

use super::job::{Job, OnReply};
use super::local::Local;
use super::remote::{Remote, not_here};
use super::serving::refusal;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{EnginePhase, PresetValues, Settings};
use crate::replier::{Ending, Event, Replier};
use crate::servers::is_remote;
use crate::title;

/// For so long nothing is asked for, when there is nothing to do.
const QUIET: Duration = Duration::from_secs(2);

/// What the engine thread works with.
pub(super) struct Worker {
    pub(super) local: Local,
    pub(super) remote: Remote,
    /// Who replies in the place of both, if anybody.
    pub(super) instead: Option<Box<dyn Replier>>,
}

impl Worker {
    /// Works until nobody can send jobs any more.
    pub(super) fn work(mut self, queue: mpsc::Receiver<Job>) {
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

    /// The next job. While there is none for a moment is the time to measure this computer: after a start the window is
    /// busy with showing itself.
    fn next(&mut self, queue: &mpsc::Receiver<Job>) -> Option<Job> {
        match queue.recv_timeout(QUIET) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => self.local.measure_reading(),
        }
        queue.recv().ok()
    }

    /// Whoever asked may have gone, so that nobody hears what comes of it.
    fn carry_out(&mut self, job: Job) {
        match job {
            Job::Settings { settings, defaults, earlier, revision } => {
                self.local.defaults = *defaults;
                self.local.apply_settings(*settings, earlier, revision);
            }
            Job::List => self.local.list_models(),
            Job::Advise { text, on_advice, cancel, done } => {
                let _ = done.send(self.here().and_then(|local| local.advise(&text, &on_advice, &cancel)));
            }
            Job::Reply { messages, values, mut on, cancel, done } => {
                let outcome = self.reply(&messages, &self.with(*values), &cancel, &mut on);
                // The recorder ends with what it hears from.
                drop(on);
                let written = outcome.as_ref().ok().and_then(|ending| ending.summary.clone());
                let _ = done.send(outcome);
                self.local.keep_learned();
                // What another wrote says nothing of the models here.
                if let Some(reply) = written.filter(|_| self.replies_here()) {
                    self.local.keep_speed(&reply);
                }
            }
            Job::Title { messages, values, cancel, done } => {
                let _ = done.send(self.title(&messages, &self.with(*values), &cancel));
            }
            Job::Serve { order, sink } => {
                match self.here() {
                    Ok(local) => local.serve(*order, sink),
                    Err(error) => sink.end(Err(refusal(error))),
                }
                self.local.keep_learned();
            }
            Job::Measure { messages, values, done } => {
                let settings = self.with(*values);
                let _ = done.send(self.replier().measure(&messages, &settings));
            }
            Job::Check { stored, on_progress, cancel, done } => {
                let _ = done.send(self.here().and_then(|local| local.check(&stored, &on_progress, &cancel)));
            }
            Job::Arena { request, on_event, cancel, done } => {
                let _ = done.send(self.here().and_then(|local| local.arena(&request, &on_event, &cancel)));
            }
        }
    }

    /// Asks whoever replies for a title, which is not shown as a reply. Small models on this computer are not asked.
    fn title(
        &mut self,
        messages: &[ChatMessage],
        settings: &Settings,
        cancel: &Cancel,
    ) -> Result<Option<String>> {
        let parameters = self.local.target.as_ref().map_or(0, |target| target.entry.parameters);
        if cancel.is_cancelled() || (self.replies_here() && parameters < title::MIN_PARAMETERS) {
            return Ok(None);
        }
        let board = Arc::clone(&self.local.board);
        let why = board.status().why;
        let outcome = title::ask(self.replier(), messages, settings, cancel);
        board.update(|status| status.why = why);
        outcome
    }

    /// The settings, with what the conversation of a job is written with: another one may be open by now.
    fn with(&self, values: PresetValues) -> Settings {
        self.local.settings.clone().with(values)
    }

    /// Whether a model on this computer replies.
    fn replies_here(&self) -> bool {
        self.instead.is_none() && !is_remote(&self.local.settings.target)
    }

    fn replier(&mut self) -> &mut dyn Replier {
        match &mut self.instead {
            Some(replier) => replier.as_mut(),
            None if is_remote(&self.local.settings.target) => &mut self.remote,
            None => &mut self.local,
        }
    }

    /// What the models on this computer are asked for.
    ///
    /// # Errors
    /// `NoTarget` while the target is elsewhere.
    fn here(&mut self) -> Result<&mut Local> {
        if is_remote(&self.local.settings.target) { Err(not_here()) } else { Ok(&mut self.local) }
    }

    /// Lets whoever replies do so, and shows it from the moment the conversation is accepted.
    fn reply(
        &mut self,
        messages: &[ChatMessage],
        settings: &Settings,
        cancel: &Cancel,
        on: &mut OnReply,
    ) -> Result<Ending> {
        let board = Arc::clone(&self.local.board);
        let idle = board.status().phase;
        let mut hear = |event: Event<'_>| {
            on(event);
            if matches!(event, Event::Started { .. }) {
                board.update(|status| status.phase = EnginePhase::Replying);
            }
        };
        let outcome = self.replier().reply(messages, settings, cancel, &mut hear);
        board.update(|status| status.phase = idle);
        self.local.report_memory();
        outcome
    }
}
