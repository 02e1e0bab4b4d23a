//! Replies that are over and could not be stored: the disk is full, or another program holds the database. They are
//! kept here, shown with the reason, and stored as soon as that is possible: tried again with back-off, before the
//! next reply, and when the application ends.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use foretoken_store::{self as store, Store};

use crate::app::App;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode, Message};
use crate::lock::lock;

/// The pause before the second attempt, doubled before each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A reply that is over, and what of it is not stored yet.
pub(crate) struct Ended {
    /// As it is in the store.
    pub(crate) begun: store::Message,
    pub(crate) text: String,
    pub(crate) rounds: Vec<(u32, String)>,
    pub(crate) finish: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) problem: Option<String>,
    /// It was neither stopped nor did it fail.
    pub(crate) whole: bool,
}

impl Ended {
    /// What is stored of it stays stored where the rest is refused.
    pub(crate) fn store(&mut self, store: &mut Store) -> store::Result<store::Message> {
        if !self.rounds.is_empty() {
            store.append_rounds(self.begun.id, &self.text, &self.rounds)?;
            self.rounds.clear();
        }
        let ending = store::Ending {
            text: &self.text,
            finish: self.finish.as_deref(),
            summary: self.summary.as_deref(),
            problem: self.problem.as_deref(),
            whole: self.whole,
        };
        store.finish_reply(self.begun.id, ending)
    }

    /// As it will be stored.
    fn message(&self) -> store::Message {
        store::Message {
            text: self.text.clone(),
            finish: self.finish.clone(),
            summary: self.summary.clone(),
            problem: self.problem.clone(),
            instead_of: self.begun.instead_of.filter(|_| !self.whole),
            ..self.begun.clone()
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Unstored(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// With the sentence that says why it is not stored.
    replies: Vec<(Ended, String)>,
    /// Whether a thread tries again.
    retried: bool,
}

impl Unstored {
    /// What the store has of a conversation, and over it the replies that wait, each with why it does.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn over(
        &self,
        conversation: i64,
        stored: impl FnOnce() -> store::Result<Vec<store::Message>>,
    ) -> Result<Vec<(store::Message, Option<String>)>> {
        // Held meanwhile: what is stored in between would be in neither.
        let waiting = lock(&self.0);
        let mut messages: Vec<_> = stored()?.into_iter().map(|message| (message, None)).collect();
        let of_it = |(ended, _): &&(Ended, String)| ended.begun.conversation == conversation;
        for (ended, reason) in waiting.replies.iter().filter(of_it) {
            let message = ended.message();
            let gone = ended.begun.instead_of.filter(|_| ended.whole);
            messages.retain(|(stored, _)| stored.id != message.id && Some(stored.id) != gone);
            messages.push((message, Some(reason.clone())));
        }
        messages.sort_by_key(|(message, _)| message.id);
        Ok(messages)
    }

    /// The rounds that the store has of a reply, and those that wait.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn rounds(
        &self,
        reply: i64,
        stored: impl FnOnce() -> store::Result<Vec<String>>,
    ) -> Result<Vec<String>> {
        let waiting = lock(&self.0);
        let ended = waiting.replies.iter().filter(|(ended, _)| ended.begun.id == reply);
        let rounds = ended.flat_map(|(ended, _)| ended.rounds.iter().map(|(_, json)| json.clone()));
        Ok(stored()?.into_iter().chain(rounds).collect())
    }
}

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

/// What is said of a reply that the store refused.
fn sentence(error: &store::Error) -> String {
    let why = match error {
        store::Error::DiskFull => {
            "the disk is full. It will be stored as soon as there is room: free some space.".to_owned()
        }
        store::Error::Busy => {
            "another program is using the database. It will be stored as soon as that is over.".to_owned()
        }
        other => format!("{other} It will be tried again."),
    };
    format!("This reply could not be stored: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_is_wrong_and_that_nothing_is_lost() {
        assert_eq!(
            sentence(&store::Error::DiskFull),
            "This reply could not be stored: the disk is full. It will be stored as soon as there is room: free \
             some space."
        );
        assert!(sentence(&store::Error::Busy).contains("another program"));
        let other = sentence(&store::Error::ReadOnly);
        assert!(other.contains("read-only") && other.ends_with("It will be tried again."), "{other}");
    }
}
