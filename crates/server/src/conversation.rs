//! Conversation of a request, built from its parts in order.

use foretoken_model::{ChatMessage, Detail, Role, ToolCall};

use crate::order::{Order, Prompt};
use crate::picture_file::{MAX_PICTURES, PictureFile};
use crate::refusal::Refusal;

/// Text between two texts of one message.
pub const BETWEEN: &str = "\n\n";

/// See the module. Neighbouring parts of one author are one message, since templates expect authors
/// to alternate.
#[derive(Debug, Default)]
pub struct Builder(Input);

/// Messages of a request, and the pictures in them.
#[derive(Debug, Default)]
pub struct Input {
    pub messages: Vec<ChatMessage>,
    pub pictures: Vec<PictureFile>,
}

impl Input {
    /// Adds text to the last message.
    pub fn text(&mut self, text: &str) {
        if let Some(last) = self.messages.last_mut() {
            last.content.push_str(text);
        }
    }

    /// Adds a picture at the end of the last message.
    pub fn picture(&mut self, bytes: Vec<u8>, detail: Detail) {
        let Some(last) = self.messages.last() else { return };
        let (message, at) = (self.messages.len() - 1, last.content.len());
        self.pictures.push(PictureFile { message, at, bytes, detail });
    }

    /// Orders a reply; `field` is the request's.
    ///
    /// # Errors
    /// Refuses more than [`MAX_PICTURES`] pictures.
    pub fn order(self, field: &str) -> Result<Order, Refusal> {
        let Self { messages, pictures } = self;
        if pictures.len() > MAX_PICTURES {
            return Err(Refusal::bad_field(field, &format!("at most {MAX_PICTURES} pictures")));
        }
        Ok(Order { pictures, ..Order::new(Prompt::Conversation(messages)) })
    }
}

impl Builder {
    pub fn text(&mut self, role: Role, text: &str) {
        let message = self.last(role);
        if !message.content.is_empty() && !text.is_empty() {
            message.content.push_str(BETWEEN);
        }
        message.content.push_str(text);
    }

    /// Adds reasoning, which the content after it follows from.
    pub fn thinking(&mut self, text: &str) {
        let thinking = self.last(Role::Assistant).thinking.get_or_insert_default();
        if !thinking.is_empty() {
            thinking.push_str(BETWEEN);
        }
        thinking.push_str(text);
    }

    pub fn call(&mut self, call: ToolCall) {
        self.last(Role::Assistant).calls.push(call);
    }

    /// Adds the result of the call `id`.
    pub fn result(&mut self, id: String, text: String) {
        self.0.messages.push(ChatMessage { call_id: Some(id), ..ChatMessage::new(Role::Tool, text) });
    }

    /// Adds a picture of the user.
    pub fn picture(&mut self, bytes: Vec<u8>, detail: Detail) {
        self.last(Role::User);
        self.0.picture(bytes, detail);
    }

    /// Returns the conversation; `field` is the request's.
    ///
    /// # Errors
    /// Refuses one without messages.
    pub fn finish(self, field: &str) -> Result<Input, Refusal> {
        if self.0.messages.iter().all(|message| message.role == Role::System) {
            return Err(Refusal::bad_field(field, "a list with at least one message"));
        }
        Ok(self.0)
    }

    /// The last message, if `role` wrote it, or else a new one.
    fn last(&mut self, role: Role) -> &mut ChatMessage {
        let messages = &mut self.0.messages;
        if messages.last().is_none_or(|last| last.role != role) {
            messages.push(ChatMessage::new(role, ""));
        }
        let last = messages.len() - 1;
        &mut messages[last]
    }
}
