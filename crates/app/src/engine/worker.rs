//! Engine thread: runs queued jobs in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use foretoken_model::ChatMessage;

use super::job::{Job, OnReply, WhenIdle};
use super::local::Local;
use super::remote::{Remote, not_here};
use super::replier::{Chat, Ending, Event, Replier};
use super::serving::refusal;
use crate::cancel::Cancel;
use crate::conversations::title;
use crate::error::Result;
use crate::ipc::{EnginePhase, PresetValues, Settings};
use crate::models::servers::is_remote;

/// Idle time after which the memory bandwidth is measured.
const IDLE: Duration = Duration::from_secs(2);

/// State of the engine thread.
pub(super) struct Worker {
    pub(super) local: Local,
    pub(super) remote: Remote,
    /// Replaces local and remote models, if set.
    pub(super) instead: Option<Box<dyn Replier>>,
    /// Work for when no job waits.
    pub(super) when_idle: Option<WhenIdle>,
}

impl Worker {
    /// Runs jobs until the sender is dropped.
    pub(super) fn work(mut self, queue: mpsc::Receiver<Job>) {
        while let Some(job) = self.next(&queue) {
            let computes = job.computes();
            let done = catch_unwind(AssertUnwindSafe(|| {
                self.run(job);
                self.local.recover();
            }));
            if done.is_err() {
                self.local.unload();
                // A failure on one text may not recur with others; a failure while loading would.
                let again = || {
                    if computes {
                        self.local.reload()
                    }
                };
                if catch_unwind(AssertUnwindSafe(again)).is_err() {
                    self.local.unload();
                }
            }
        }
    }

    /// Returns the next job. A pause is used for other work, and to measure this computer: right
    /// after the start the window is still being drawn.
    fn next(&mut self, queue: &mpsc::Receiver<Job>) -> Option<Job> {
        while let Some(work) = &mut self.when_idle {
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            // Work that panics ends.
            if !catch_unwind(AssertUnwindSafe(work)).unwrap_or(false) {
                self.when_idle = None;
            }
        }
        match queue.recv_timeout(IDLE) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                self.local.measure_bandwidth();
                self.local.save_context();
            }
        }
        queue.recv().ok()
    }

    /// Runs a job. The receiver of its result may be dropped; send errors are ignored.
    fn run(&mut self, job: Job) {
        match job {
            Job::Settings { settings, defaults, earlier, revision } => {
                self.local.defaults = *defaults;
                self.local.apply_settings(*settings, earlier, revision);
            }
            Job::List => self.local.list_models(),
            Job::WhenIdle(work) => self.when_idle = Some(work),
            Job::Advise { text, on_advice, cancel, done } => {
                let _ = done.send(self.here().and_then(|local| local.advise(&text, &on_advice, &cancel)));
            }
            Job::Reply { chat, values, mut on, cancel, done } => {
                let outcome = self.reply(&chat, &self.with(*values), &cancel, &mut on);
                // The recorder ends when its sender is dropped.
                drop(on);
                let written = outcome.as_ref().ok().and_then(|ending| ending.summary.clone());
                let _ = done.send(outcome);
                self.local.save_stats();
                // A reply by another writer says nothing about the local models.
                if let Some(reply) = written.filter(|_| self.replies_here()) {
                    self.local.keep_speed(&reply);
                    self.local.keep_context();
                }
            }
            Job::Stored { conversation } if self.replies_here() => self.local.name_context(conversation),
            Job::Restore { conversation, messages, values, cancel } if self.replies_here() => {
                self.local.restore(conversation, &messages, &self.with(*values), &cancel);
            }
            Job::Stored { .. } | Job::Restore { .. } => {}
            Job::Forget { conversation } => self.local.forget_context(conversation),
            Job::FinishContexts { done } => {
                self.local.save_context();
                self.local.contexts.finish();
                let _ = done.send(Ok(()));
            }
            Job::Title { messages, values, cancel, done } => {
                let _ = done.send(self.title(&messages, &self.with(*values), &cancel));
            }
            Job::Serve { order, sink } => {
                match self.here() {
                    Ok(local) => local.serve(*order, sink),
                    Err(error) => sink.end(Err(refusal(error))),
                }
                self.local.save_stats();
            }
            Job::Measure { chat, values, done } => {
                let settings = self.with(*values);
                let _ = done.send(self.replier().measure(&chat, &settings));
            }
            Job::Check { stored, on_progress, cancel, done } => {
                let _ = done.send(self.here().and_then(|local| local.check(&stored, &on_progress, &cancel)));
            }
            Job::Arena { request, on_event, cancel, done } => {
                let _ = done.send(self.here().and_then(|local| local.arena(&request, &on_event, &cancel)));
            }
        }
    }

    /// Writes a title without showing it as a reply. Small local models are not asked.
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
        let status = Arc::clone(&self.local.status);
        let why = status.get().why;
        let outcome = title::ask(self.replier(), messages, settings, cancel);
        status.update(|status| status.why = why);
        outcome
    }

    /// Returns the settings with the values of the job's conversation, which may no longer be the
    /// open one.
    fn with(&self, values: PresetValues) -> Settings {
        self.local.settings.clone().with(values)
    }

    /// Returns whether a model on this computer replies.
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

    /// Returns the local models.
    ///
    /// # Errors
    /// Returns `NoTarget` while the target is on a server.
    fn here(&mut self) -> Result<&mut Local> {
        if is_remote(&self.local.settings.target) { Err(not_here()) } else { Ok(&mut self.local) }
    }

    /// Writes a reply, and updates the status once the conversation is accepted.
    fn reply(
        &mut self,
        chat: &Chat,
        settings: &Settings,
        cancel: &Cancel,
        on: &mut OnReply,
    ) -> Result<Ending> {
        let status = Arc::clone(&self.local.status);
        let idle = status.get().phase;
        let mut on_event = |event: Event<'_>| {
            on(event);
            if matches!(event, Event::Started { .. }) {
                status.update(|status| status.phase = EnginePhase::Replying);
            }
        };
        let outcome = self.replier().reply(chat, settings, cancel, &mut on_event);
        status.update(|status| status.phase = idle);
        self.local.report_memory();
        outcome
    }
}
