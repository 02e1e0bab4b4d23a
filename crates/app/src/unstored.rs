//! Replies that are over and could not be stored: the disk is full, or another program holds the database. They are
//! kept here and shown with the reason; when they are tried again is for `storing.rs`.

use std::sync::Mutex;

use foretoken_store::{self as store, Store};

use crate::error::Result;
use crate::lock::lock;

/// A reply that is over, and what of it is not stored yet.
pub(crate) struct Ended {
    /// As it is in the store.
    pub(crate) begun: store::Message,
    pub(crate) text: String,
    pub(crate) rounds: Vec<(u32, String)>,
    pub(crate) finish: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) problem: Option<String>,
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
        };
        store.finish_reply(self.begun.id, ending)
    }

    /// As it will be stored.
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

/// See the module.
#[derive(Default)]
pub(crate) struct Unstored(pub(crate) Mutex<Waiting>);

#[derive(Default)]
pub(crate) struct Waiting {
    /// With the sentence that says why it is not stored.
    pub(crate) replies: Vec<(Ended, String)>,
    /// Whether a thread tries again.
    pub(crate) retried: bool,
}

impl Unstored {
    /// What the store has, and of the replies in it that wait what will be stored, each with why it waits.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn over(
        &self,
        stored: impl FnOnce() -> store::Result<Vec<store::Message>>,
    ) -> Result<Vec<(store::Message, Option<String>)>> {
        // Held meanwhile: what is stored in between would be in neither.
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

/// What is said of a reply that the store refused.
pub(crate) fn sentence(error: &store::Error) -> String {
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
