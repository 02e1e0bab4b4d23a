//! Conversation of a request, built from its parts in order.

use foretoken_model::{ChatMessage, Role, ToolCall};

use crate::refusal::Refusal;

/// Text between two texts of one message.
pub const BETWEEN: &str = "\n\n";

/// See the module. Neighbouring parts of one author are one message, since templates expect authors
/// to alternate.
#[derive(Debug, Default)]
pub struct Builder(Vec<ChatMessage>);

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
        self.0.push(ChatMessage { call_id: Some(id), ..ChatMessage::new(Role::Tool, text) });
    }

    /// Returns the conversation; `field` is the request's.
    ///
    /// # Errors
    /// Refuses one without messages.
    pub fn finish(self, field: &str) -> Result<Vec<ChatMessage>, Refusal> {
        if self.0.iter().all(|message| message.role == Role::System) {
            return Err(Refusal::bad_field(field, "a list with at least one message"));
        }
        Ok(self.0)
    }

    /// The last message, if `role` wrote it, or else a new one.
    fn last(&mut self, role: Role) -> &mut ChatMessage {
        if self.0.last().is_none_or(|last| last.role != role) {
            self.0.push(ChatMessage::new(role, ""));
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }
}
