//! Storing the replies that could not be stored: with back-off, before the next reply, and when the application ends.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use foretoken_store as store;

use crate::app::App;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, Message};
use crate::lock::lock;
use crate::unstored::{Ended, sentence};

/// The pause before the second attempt, doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl App {
    /// Stores the replies that could not be stored, as far as that is possible now; returns whether none is left.
    /// To be called before the program ends, too.
    pub fn store_rest(&self) -> bool {
        self.try_again(false)
    }

    /// `for_good` says that whoever asks does not ask again where none is left.
    fn try_again(&self, for_good: bool) -> bool {
        let mut waiting = lock(&self.unstored.0);
        waiting.replies.retain_mut(|(ended, reason)| match ended.store(&mut self.store()) {
            // Its conversation was deleted for good.
            Ok(_) | Err(store::Error::NotFound { .. }) => false,
            Err(error) => {
                *reason = sentence(&error);
                true
            }
        });
        let stored = waiting.replies.is_empty();
        waiting.retried &= !(for_good && stored);
        stored
    }

    /// # Errors
    /// Where a reply of this conversation is not stored: what comes after it would be stored before it.
    pub(crate) fn store_rest_of(&self, conversation: i64) -> Result<()> {
        self.store_rest();
        let waiting = lock(&self.unstored.0);
        match waiting.replies.iter().find(|(ended, _)| ended.begun.conversation == conversation) {
            Some((_, reason)) => {
                let message = format!("The last reply comes first. {reason} Send this again then.");
                Err(CommandError::new(ErrorCode::Internal, message))
            }
            None => Ok(()),
        }
    }

    /// Keeps a reply that the store refused for this reason until it can be stored, and returns what is shown of it.
    pub(crate) fn keep(self: &Arc<Self>, ended: Ended, error: &store::Error) -> Result<Message> {
        tracing::error!(%error, "a reply could not be stored; trying again");
        let reason = sentence(error);
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
                    // Whoever ended the application tried once more.
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
