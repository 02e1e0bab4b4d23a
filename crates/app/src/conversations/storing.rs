//! Retries of replies that could not be stored: with back-off, before the next reply, and at the
//! end of the program.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use foretoken_store as store;

use super::unstored::{FinishedReply, message_of};
use crate::app::App;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, Message};
use crate::lock::lock;

/// Pause before the second attempt; doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl App {
    /// Stores the remaining replies as far as possible; returns whether none is left.
    pub fn store_rest(&self) -> bool {
        self.try_again(false)
    }

    /// Retries the remaining replies; `for_good` says that the caller stops retrying once none is
    /// left.
    fn try_again(&self, for_good: bool) -> bool {
        let mut waiting = lock(&self.unstored.0);
        waiting.replies.retain_mut(|(ended, reason)| match ended.store(&mut self.store()) {
            // Its conversation was purged.
            Ok(_) | Err(store::Error::NotFound { .. }) => false,
            Err(error) => {
                *reason = message_of(&error);
                true
            }
        });
        let stored = waiting.replies.is_empty();
        waiting.retried &= !(for_good && stored);
        stored
    }

    /// # Errors
    /// Returns an error while an earlier reply of this conversation is not stored: later messages
    /// would be stored before it.
    pub(crate) fn store_rest_of(&self, conversation: i64) -> Result<()> {
        self.store_rest();
        let waiting = lock(&self.unstored.0);
        match waiting.replies.iter().find(|(ended, _)| ended.begun.conversation == conversation) {
            Some((_, reason)) => {
                let message =
                    format!("The previous reply is not saved yet: {reason} Send this again afterwards.");
                Err(CommandError::new(ErrorCode::Internal, message))
            }
            None => Ok(()),
        }
    }

    /// Keeps a reply that the store refused until it can be stored, and returns it for display.
    pub(crate) fn keep(self: &Arc<Self>, ended: FinishedReply, error: &store::Error) -> Result<Message> {
        tracing::error!(%error, "a reply could not be stored; trying again");
        let reason = message_of(error);
        let message = Message { unstored: Some(reason.clone()), ..ended.message().try_into()? };
        let mut waiting = lock(&self.unstored.0);
        waiting.replies.push((ended, reason));
        if !std::mem::replace(&mut waiting.retried, true) {
            let app = Arc::downgrade(self);
            let mut pause = FIRST_PAUSE;
            let retry = move || {
                loop {
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    // The end of the program made the last attempt.
                    if app.upgrade().is_none_or(|app| app.try_again(true)) {
                        return;
                    }
                }
            };
            let started = thread::Builder::new().name("unstored".to_owned()).spawn(retry);
            waiting.retried = started.is_ok();
        }
        Ok(message)
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.store_rest();
    }
}
