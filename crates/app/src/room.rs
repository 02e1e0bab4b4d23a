//! A conversation that has outgrown the context: a person may leave out its oldest turns, so that the model no longer
//! sees them, and have them seen again. They stay in the conversation.

use foretoken_engine::model::{ChatMessage, Role};
use foretoken_store as store;

use crate::app::App;
use crate::error::Result;
use crate::history::{chat_messages, push};
use crate::ipc::{CommandError, Conversation, ErrorCode, PresetValues, Sent};
use crate::replier::PromptSize;
use crate::reply::engine_gone;

impl App {
    /// Lets the model no longer see the oldest turns of a conversation: whole turns, as few as leave room for `next`,
    /// which is to be sent, or else for the last reply again, and a quarter of the context for the reply. What
    /// is answered next is always seen.
    ///
    /// # Errors
    /// `PromptTooLong` when that alone does not fit; `Busy`, `NoTarget`, `NotFound`.
    pub fn leave_out_oldest(&self, conversation: i64, next: Option<Sent>) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        let values = self.face(Some(conversation))?.values;
        let next = next.map(|sent| self.question(sent)).transpose()?.map(|question| question.words());
        let seen_from = self.store().conversation(conversation)?.seen_from;
        let mut messages = self.shown(conversation)?;
        if next.is_none() {
            messages.pop_if(|last| last.role == store::Role::Assistant);
        }
        // Of all, as there may be none left that the model sees.
        let last = messages.last().map(|last| last.id);
        messages.retain(|message| seen_from.is_none_or(|from| message.id >= from));
        let mut starts: Vec<i64> = messages
            .iter()
            .filter(|message| message.role == store::Role::User)
            .map(|message| message.id)
            .collect();
        // The number after the last one is that of what is said next, or one before it.
        starts.extend(last.filter(|_| next.is_some()).map(|last| last + 1));
        let size = |from: i64| {
            let seen = messages.iter().filter(|message| message.id >= from).cloned().collect();
            let mut seen = chat_messages(seen);
            next.iter().for_each(|words| push(&mut seen, Role::User, words));
            self.measure(seen, &values)
        };
        let first = fewest(&starts, |&from| Ok(size(from)?.leaves_room()))?;
        if first + 1 == starts.len() {
            let alone = size(starts[first])?;
            if !alone.fits() {
                return Err(too_long(format!(
                    "This message alone is too long: {alone}. Shorten it, attach less, or choose a model with a larger context."
                )));
            }
        }
        Ok(self.store().see_from(conversation, starts.get(first).copied())?.into())
    }

    /// Lets the model see a conversation from this question on.
    ///
    /// # Errors
    /// `NotFound` for what is no question of this conversation; `Busy`.
    pub fn see_from(&self, conversation: i64, question: i64) -> Result<Conversation> {
        let _turn = self.take_turn()?;
        let shown = self.store().messages(conversation)?;
        if !shown.iter().any(|message| message.id == question && message.role == store::Role::User) {
            return Err(store::Error::NotFound { what: "question", id: question }.into());
        }
        Ok(self.store().see_from(conversation, Some(question))?.into())
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
            return Err(too_long(format!(
                "All of this conversation is too long: {size}. Choose a model with a larger context first."
            )));
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

fn too_long(message: String) -> CommandError {
    CommandError::new(ErrorCode::PromptTooLong, message)
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
