//! The running reply, which a page that is loaded meanwhile can follow: its events so far, then
//! those to come.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::error::Result;
use crate::ipc::{Reply, ReplyEvent};
use crate::lock::lock;

/// Receiver of a reply's events.
pub type Events = Arc<dyn Fn(ReplyEvent) + Send + Sync>;

/// The running reply; there is at most one.
#[derive(Default)]
pub(crate) struct Running(Mutex<Option<Arc<Live>>>);

/// A running reply: its events so far and its listeners.
#[derive(Default)]
pub(crate) struct Live {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<ReplyEvent>,
    listeners: Vec<Events>,
    outcome: Option<Result<Reply>>,
}

impl Running {
    /// Runs `reply` as the running reply, with the function that receives its events; `events` is
    /// the first listener.
    pub(crate) fn during(
        &self,
        events: Events,
        reply: impl FnOnce(Events) -> Result<Reply>,
    ) -> Result<Reply> {
        let live = Arc::new(Live::default());
        lock(&live.state).listeners.push(events);
        *lock(&self.0) = Some(Arc::clone(&live));
        let sender = Arc::clone(&live);
        let outcome = reply(Arc::new(move |event| sender.send(event)));
        *lock(&self.0) = None;
        live.end(outcome.clone());
        outcome
    }

    pub(crate) fn current(&self) -> Option<Arc<Live>> {
        lock(&self.0).clone()
    }
}

impl Live {
    fn send(&self, event: ReplyEvent) {
        let mut state = lock(&self.state);
        for listener in &state.listeners {
            listener(event.clone());
        }
        match (state.events.last_mut(), event) {
            (Some(ReplyEvent::Text { delta }), ReplyEvent::Text { delta: more }) => delta.push_str(&more),
            (Some(last @ ReplyEvent::Prompt { .. }), later @ ReplyEvent::Prompt { .. }) => *last = later,
            (Some(last @ ReplyEvent::Pictures { .. }), later @ ReplyEvent::Pictures { .. }) => *last = later,
            (_, event) => state.events.push(event),
        }
    }

    fn end(&self, outcome: Result<Reply>) {
        let mut state = lock(&self.state);
        state.outcome = Some(outcome);
        state.listeners.clear();
        self.ended.notify_all();
    }

    /// Sends `events` everything so far and to come, and waits for the end.
    pub(crate) fn follow(&self, events: Events) -> Option<Result<Reply>> {
        let mut state = lock(&self.state);
        for event in &state.events {
            events(event.clone());
        }
        if state.outcome.is_none() {
            state.listeners.push(events);
        }
        let ended = self.ended.wait_while(state, |state| state.outcome.is_none());
        ended.unwrap_or_else(PoisonError::into_inner).outcome.clone()
    }
}
