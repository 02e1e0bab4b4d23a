//! Conversations that exceed the model's context: the oldest turns are dropped from the context, by
//! the user or by the settings. They stay in the conversation and can be included again.

use foretoken_engine::session::ToolUse;
use foretoken_model::Role;
use foretoken_store as store;

use super::attachments::ReadQuestion;
use super::history::{ReadMessage, chat_messages, push, seen_since};
use super::reply::engine_gone;
use crate::app::App;
use crate::engine::replier::Chat;
use crate::error::Result;
use crate::ipc::{CommandError, Conversation, ErrorCode, PresetValues, PromptSize, Sent};

/// Messages that lead to a reply: one branch of a conversation, and the new question.
pub(crate) struct Branch {
    /// Stored messages with the text of their attachments, oldest first.
    pub(crate) messages: Vec<ReadMessage>,
    /// A new question.
    pub(crate) next: Option<ReadQuestion>,
    /// Tools of the reply.
    pub(crate) tools: Option<ToolUse>,
}

impl Branch {
    /// Returns the chat in the context that starts at the message `start`; `None` is the first.
    pub(crate) fn chat(&self, start: Option<i64>) -> Chat {
        let mut chat = chat_messages(seen_since(self.messages.clone(), start));
        if let Some(ReadQuestion { words, pictures }) = &self.next {
            push(&mut chat, Role::User, words, pictures);
        }
        Chat { messages: chat, tools: self.tools.clone() }
    }

    /// Returns whether the branch ends with a question.
    pub(crate) fn is_asked(&self) -> bool {
        self.next.is_some() || self.messages.last().is_some_and(|last| last.role == store::Role::User)
    }

    /// Returns the messages at which the context can start later than at `start`: every later
    /// question. A new question has no id yet, so it is the id after the last message's.
    fn later_starts(&self, start: Option<i64>) -> Vec<i64> {
        let questions = self.messages.iter().filter(|message| message.role == store::Role::User);
        let seen = questions.map(|question| question.id).filter(|&id| start.is_none_or(|start| id >= start));
        let new = self.next.as_ref().and(self.messages.last()).map(|last| last.id + 1);
        // Starting at the first question drops nothing.
        seen.chain(new).skip(1).collect()
    }
}

impl App {
    /// Drops the oldest turns of a conversation from the model's context: as few as leave space for
    /// `next`, or without it for the last reply again, and a quarter of the context for the reply.
    /// The question to be answered next always stays.
    ///
    /// # Errors
    /// Returns `MessageTooLong` if that question alone does not fit; `Busy`, `NoTarget`,
    /// `NotFound`.
    pub fn leave_out_oldest(&self, conversation: i64, next: Option<Sent>) -> Result<Conversation> {
        let _guard = self.take_slot()?;
        let values = self.open(Some(conversation))?.values;
        let start = self.store().conversation(conversation)?.seen_from;
        let mut messages = self.shown(conversation)?;
        let read = |sent| {
            let asked = self.question(sent, &messages, Some(conversation))?;
            self.read_question(&asked, &messages, Some(conversation))
        };
        let next = next.map(read).transpose()?;
        if next.is_none() {
            messages.pop_if(|last| last.role == store::Role::Assistant);
        }
        let start = self.drop_oldest(&Branch { messages, next, tools: None }, start, &values)?;
        Ok(self.store().see_from(conversation, Some(start))?.into())
    }

    /// Returns the later start of the context that drops as few turns as possible and leaves a
    /// quarter of the context for the reply.
    ///
    /// # Errors
    /// Returns `MessageTooLong` if the last question does not fit by itself.
    pub(crate) fn drop_oldest(
        &self,
        branch: &Branch,
        start: Option<i64>,
        values: &PresetValues,
    ) -> Result<i64> {
        let starts = branch.later_starts(start);
        let size = |start| self.measure(branch.chat(start), values);
        let index = fewest(&starts, |&start| Ok(size(Some(start))?.leaves_room()))?;
        let Some(&found) = starts.get(index) else {
            return Err(CommandError::message_too_long(size(start)?));
        };
        if index + 1 == starts.len() {
            let alone = size(Some(found))?;
            if !alone.fits() {
                return Err(CommandError::message_too_long(alone));
            }
        }
        Ok(found)
    }

    /// Starts the model's context at this question; `None` starts it at the next message.
    ///
    /// # Errors
    /// Returns `NotFound` if it is not a question of this conversation; `Busy`.
    pub fn see_from(&self, conversation: i64, question: Option<i64>) -> Result<Conversation> {
        let _guard = self.take_slot()?;
        let shown = self.store().messages(conversation)?;
        let is_question =
            |id| shown.iter().any(|message| message.id == id && message.role == store::Role::User);
        if let Some(id) = question.filter(|&id| !is_question(id)) {
            return Err(store::Error::NotFound { what: "question", id }.into());
        }
        let next = shown.last().map(|last| last.id + 1);
        Ok(self.store().see_from(conversation, question.or(next))?.into())
    }

    /// Includes the whole conversation in the model's context again.
    ///
    /// # Errors
    /// Returns `PromptTooLong` if it does not fit; `Busy`, `NoTarget`, `NotFound`.
    pub fn see_all(&self, conversation: i64) -> Result<Conversation> {
        let _guard = self.take_slot()?;
        let values = self.open(Some(conversation))?.values;
        let size =
            self.measure(Chat { messages: chat_messages(self.shown(conversation)?), tools: None }, &values)?;
        if !size.fits() {
            let message = format!(
                "The whole conversation is too long: {size}. Choose a model with a larger context first."
            );
            return Err(CommandError {
                prompt: Some(size),
                ..CommandError::new(ErrorCode::PromptTooLong, message)
            });
        }
        Ok(self.store().see_from(conversation, None)?.into())
    }

    fn measure(&self, chat: Chat, values: &PresetValues) -> Result<PromptSize> {
        self.engine.measure(chat, values.clone()).recv().unwrap_or_else(|_| Err(engine_gone()))
    }
}

/// Returns the index of the first element that `fits`, given that all later ones do as well; the
/// last if none does.
fn fewest<T>(of: &[T], fits: impl Fn(&T) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, of.len().saturating_sub(1));
    while low < high {
        let middle = usize::midpoint(low, high);
        if fits(&of[middle])? { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_few_elements_as_possible_are_dropped_and_never_the_last() {
        for fitting in 0..=7 {
            let from = fewest(&[0, 1, 2, 3, 4, 5, 6], |&start| Ok(start >= fitting)).unwrap();
            assert_eq!(from, fitting.min(6));
        }
        assert_eq!(fewest(&[0; 0], |_| Ok(true)).unwrap(), 0);
    }
}
