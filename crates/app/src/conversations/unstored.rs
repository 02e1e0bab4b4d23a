//! Finished replies that could not be stored, because the disk is full or another program holds the
//! database. They are kept here and shown with the reason; `storing.rs` retries them.

use std::sync::Mutex;

use foretoken_store::{self as store, Store};

use crate::error::Result;
use crate::lock::lock;

/// A finished reply with the part that is not stored yet.
pub(crate) struct FinishedReply {
    /// The reply as the store has it.
    pub(crate) begun: store::Message,
    pub(crate) text: String,
    pub(crate) rounds: Vec<(u32, String)>,
    pub(crate) finish: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) problem: Option<String>,
}

impl FinishedReply {
    /// Stores the rest; a part stays stored if a later one is refused.
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
        };
        store.finish_reply(self.begun.id, ending)
    }

    /// Returns the reply as it will be stored.
    pub(crate) fn message(&self) -> store::Message {
        store::Message {
            text: self.text.clone(),
            finish: self.finish.clone(),
            summary: self.summary.clone(),
            problem: self.problem.clone(),
            ..self.begun.clone()
        }
    }
}

/// Replies that wait for the store; see the module.
#[derive(Default)]
pub(crate) struct Unstored(pub(crate) Mutex<Waiting>);

#[derive(Default)]
pub(crate) struct Waiting {
    /// Replies with the reason why they are not stored.
    pub(crate) replies: Vec<(FinishedReply, String)>,
    /// `true` while a thread retries.
    pub(crate) retried: bool,
}

impl Unstored {
    /// Returns the stored messages; waiting replies among them have their final text and the
    /// reason.
    ///
    /// # Errors
    /// Returns errors of the store.
    pub(crate) fn over(
        &self,
        stored: impl FnOnce() -> store::Result<Vec<store::Message>>,
    ) -> Result<Vec<(store::Message, Option<String>)>> {
        // Locked meanwhile: a reply stored in between would be in neither list.
        let waiting = lock(&self.0);
        let over = |message: store::Message| match waiting
            .replies
            .iter()
            .find(|(ended, _)| ended.begun.id == message.id)
        {
            Some((ended, reason)) => {
                (store::Message { siblings: message.siblings, ..ended.message() }, Some(reason.clone()))
            }
            None => (message, None),
        };
        Ok(stored()?.into_iter().map(over).collect())
    }

    /// Returns the stored rounds of a reply and those that wait.
    ///
    /// # Errors
    /// Returns errors of the store.
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

/// Returns the message about a reply that the store refused.
pub(crate) fn message_of(error: &store::Error) -> String {
    let why = match error {
        store::Error::DiskFull => {
            "the disk is full. Free some space; it will then be saved automatically.".to_owned()
        }
        store::Error::Busy => {
            "another program is using the database. It will be saved automatically afterwards.".to_owned()
        }
        other => format!("{other} Foretoken keeps trying."),
    };
    format!("This reply could not be saved: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_gives_the_reason_and_says_that_nothing_is_lost() {
        assert_eq!(
            message_of(&store::Error::DiskFull),
            "This reply could not be saved: the disk is full. Free some space; it will then be saved \
             automatically."
        );
        assert!(message_of(&store::Error::Busy).contains("another program"));
        let other = message_of(&store::Error::ReadOnly);
        assert!(other.contains("read-only") && other.ends_with("Foretoken keeps trying."), "{other}");
    }
}
