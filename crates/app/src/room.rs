//! Conversations that outgrow the model's context: the oldest turns are dropped from it, by a person or by the settings.
//! They stay in the conversation, and the model can be shown them again.

use foretoken_engine::model::{ChatMessage, Role};
use foretoken_store as store;

use crate::app::App;
use crate::error::Result;
use crate::history::{chat_messages, push, seen_since};
use crate::ipc::{CommandError, Conversation, ErrorCode, PresetValues, PromptSize, Sent};
use crate::reply::engine_gone;

/// Messages that lead to a reply: one branch of a conversation, and what is sent at its end.
pub(crate) struct Branch {
    /// Stored messages with the text of their files, oldest first.
    pub(crate) messages: Vec<store::Message>,
    /// Words of a new question.
    pub(crate) next: Option<String>,
}

impl Branch {
    /// The chat that the model sees when its context starts at the message `start`; `None` starts at the first.
    pub(crate) fn chat(&self, start: Option<i64>) -> Vec<ChatMessage> {
        let mut chat = chat_messages(seen_since(self.messages.clone(), start));
        self.next.iter().for_each(|words| push(&mut chat, Role::User, words));
        chat
    }

    /// Messages at which the context can start to be shorter than from `start` on: every later question. A new question
    /// is the id after the last message's, as it has none yet.
    fn later_starts(&self, start: Option<i64>) -> Vec<i64> {
        let questions = self.messages.iter().filter(|message| message.role == store::Role::User);
        let seen = questions.map(|question| question.id).filter(|&id| start.is_none_or(|start| id >= start));
        let new = self.next.as_ref().and(self.messages.last()).map(|last| last.id + 1);
        // To start at the first question drops nothing.
        seen.chain(new).skip(1).collect()
    }
}

impl App {
    /// Drops the oldest turns of a conversation from the model's context: whole turns, as few as leave room for `next`,
    /// which is to be sent, or else for the last reply again, and a quarter of the context for the reply. The
    /// question that is answered next always stays.
    ///
    /// # Errors
    /// `MessageTooLong` when that alone does not fit; `Busy`, `NoTarget`, `NotFound`.
    pub fn leave_out_oldest(&self, conversation: i64, next: Option<Sent>) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        let values = self.face(Some(conversation))?.values;
        let next = next.map(|sent| self.question(sent)).transpose()?.map(|question| question.words());
        let start = self.store().conversation(conversation)?.seen_from;
        let mut messages = self.shown(conversation)?;
        if next.is_none() {
            messages.pop_if(|last| last.role == store::Role::Assistant);
        }
        let start = self.drop_oldest(&Branch { messages, next }, start, &values)?;
        Ok(self.store().see_from(conversation, Some(start))?.into())
    }

    /// Returns the message at which the context has to start instead of at `start`, so that as few turns as possible
    /// are dropped and a quarter of the context is free for the reply.
    ///
    /// # Errors
    /// `MessageTooLong` where the last question does not fit by itself.
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

    /// Starts the model's context at this question; `None` starts it at the message that is sent next.
    ///
    /// # Errors
    /// `NotFound` for what is no question of this conversation; `Busy`.
    pub fn see_from(&self, conversation: i64, question: Option<i64>) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        let shown = self.store().messages(conversation)?;
        let is_question =
            |id| shown.iter().any(|message| message.id == id && message.role == store::Role::User);
        if let Some(id) = question.filter(|&id| !is_question(id)) {
            return Err(store::Error::NotFound { what: "question", id }.into());
        }
        let next = shown.last().map(|last| last.id + 1);
        Ok(self.store().see_from(conversation, question.or(next))?.into())
    }

    /// Lets the model see all of a conversation again.
    ///
    /// # Errors
    /// `PromptTooLong` where it does not fit; `Busy`, `NoTarget`, `NotFound`.
    pub fn see_all(&self, conversation: i64) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        let values = self.face(Some(conversation))?.values;
        let size = self.measure(chat_messages(self.shown(conversation)?), &values)?;
        if !size.fits() {
            let message = format!(
                "All of this conversation is too long: {size}. Choose a model with a larger context first."
            );
            return Err(CommandError {
                prompt: Some(size),
                ..CommandError::new(ErrorCode::PromptTooLong, message)
            });
        }
        Ok(self.store().see_from(conversation, None)?.into())
    }

    fn measure(&self, messages: Vec<ChatMessage>, values: &PresetValues) -> Result<PromptSize> {
        self.engine.measure(messages, values.clone()).recv().unwrap_or_else(|_| Err(engine_gone()))
    }
}

/// The index of the first that `fits`, if all after it do as well; the last one where none does.
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
    fn as_few_are_left_out_as_must_be_and_the_last_never_is() {
        for fitting in 0..=7 {
            let from = fewest(&[0, 1, 2, 3, 4, 5, 6], |&start| Ok(start >= fitting)).unwrap();
            assert_eq!(from, fitting.min(6));
        }
        assert_eq!(fewest(&[0; 0], |_| Ok(true)).unwrap(), 0);
    }
}
