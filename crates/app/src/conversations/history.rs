//! Converts stored messages to the chat that a model replies to.

use std::borrow::Borrow;
use std::ops::Deref;

use foretoken_engine::trace::Summary;
use foretoken_model::{ChatMessage, Role, ToolCall, call_id};
use foretoken_store::{self as store, CallState, NewCall};
use foretoken_tools::REFUSED;

use super::pictures::AskedPicture;

/// Results of calls that were not run, for the model.
const STOPPED: &str = "The person stopped this call.";
const LOST: &str = "The program ended before this call did.";

/// A stored message as the model reads it: with its attachments in the text, and its pictures.
#[derive(Debug, Clone)]
pub(crate) struct ReadMessage {
    pub(crate) message: store::Message,
    pub(crate) pictures: Vec<AskedPicture>,
}

impl From<store::Message> for ReadMessage {
    fn from(message: store::Message) -> Self {
        Self { message, pictures: Vec::new() }
    }
}

impl Borrow<store::Message> for ReadMessage {
    fn borrow(&self) -> &store::Message {
        &self.message
    }
}

impl Deref for ReadMessage {
    type Target = store::Message;

    fn deref(&self) -> &store::Message {
        &self.message
    }
}

/// Returns whether a message is in a context that starts at `seen_from`, if it is set.
pub(crate) fn is_seen(message: &store::Message, seen_from: Option<i64>) -> bool {
    seen_from.is_none_or(|from| message.id >= from)
}

/// Returns the messages from `seen_from` on, if it is set.
pub(crate) fn seen_since<M: Borrow<store::Message>>(messages: Vec<M>, seen_from: Option<i64>) -> Vec<M> {
    messages.into_iter().filter(|message| is_seen(message.borrow(), seen_from)).collect()
}

/// Returns the chat from the first question on. Replies without text are left out.
pub(crate) fn chat_messages(messages: Vec<ReadMessage>) -> Vec<ChatMessage> {
    let mut chat = Vec::new();
    let asked = messages.iter().skip_while(|message| message.role == store::Role::Assistant);
    for message in asked.filter(|message| !message.text.is_empty() || !message.pictures.is_empty()) {
        let role = match message.role {
            store::Role::User => Role::User,
            store::Role::Assistant => Role::Assistant,
        };
        if !message.calls.is_empty() {
            push_calls(&mut chat, message);
            continue;
        }
        push(&mut chat, role, &message.text, &message.pictures);
        if let Some(last) = chat.last_mut() {
            last.unfinished = unfinished(message);
        }
    }
    chat
}

/// Appends a reply with calls, and their results.
fn push_calls(chat: &mut Vec<ChatMessage>, message: &store::Message) {
    let start = message.calls[0].call.text_start as usize;
    push(chat, Role::Assistant, message.text.get(..start).unwrap_or(&message.text), &[]);
    let made: usize = chat.iter().map(|message| message.calls.len()).sum();
    let mut results = Vec::with_capacity(message.calls.len());
    for (number, store::Call { call, .. }) in message.calls.iter().enumerate() {
        let id = call_id(made + number);
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        if let Some(reply) = chat.last_mut() {
            reply.calls.push(ToolCall { id: id.clone(), name: call.name.clone(), arguments });
        }
        results.push(ChatMessage { call_id: Some(id), ..ChatMessage::new(Role::Tool, result_of(call)) });
    }
    chat.append(&mut results);
}

/// Result of a call, for the model.
fn result_of(call: &NewCall) -> &str {
    match call.state {
        CallState::Done | CallState::Failed => &call.result,
        CallState::Refused => REFUSED,
        CallState::Asked | CallState::Running | CallState::Stopped => STOPPED,
        CallState::Lost => LOST,
    }
}

/// Returns the bytes of a character that a reply ended in.
fn unfinished(message: &store::Message) -> Vec<u8> {
    let summary =
        message.summary.as_deref().and_then(|summary| serde_json::from_str::<Summary>(summary).ok());
    summary.map_or_else(Vec::new, |summary| summary.unfinished)
}

/// Appends a message. Consecutive messages of one role are merged, because some templates require
/// alternating roles: questions without a reply in between, and a reply that continues an
/// interrupted one. Pictures stand before the text.
pub(crate) fn push(chat: &mut Vec<ChatMessage>, role: Role, text: &str, pictures: &[AskedPicture]) {
    let mut message = match chat.pop_if(|last| last.role == role) {
        Some(mut last) => {
            if role == Role::User {
                last.content.push_str("\n\n");
            }
            last
        }
        None => ChatMessage::new(role, ""),
    };
    for AskedPicture { picture, detail } in pictures {
        message = message.with_picture(picture, *detail);
    }
    message.content.push_str(text);
    chat.push(message);
}

#[cfg(test)]
mod tests {
    use foretoken_engine::trace::Finish;

    use super::*;

    fn message(role: store::Role, text: &str) -> store::Message {
        store::Message {
            id: 1,
            conversation: 1,
            role,
            text: text.to_owned(),
            created_at: 0,
            finish: None,
            summary: None,
            target: None,
            draft: None,
            problem: None,
            seen_from: None,
            parent: None,
            siblings: vec![1],
            attachments: Vec::new(),
            excerpts: None,
            calls: Vec::new(),
        }
    }

    #[test]
    fn roles_alternate_even_after_an_empty_reply_and_a_continued_one() {
        use store::Role::{Assistant, User};
        let stored = [
            (User, "One?"),
            (Assistant, ""),
            (User, "Two?"),
            (Assistant, "Tw"),
            (Assistant, "o."),
            (User, "Three?"),
        ];
        let chat = chat_messages(stored.into_iter().map(|(role, text)| message(role, text).into()).collect());
        let chat: Vec<_> = chat.iter().map(|turn| (turn.role, turn.content.as_str())).collect();
        assert_eq!(chat, [(Role::User, "One?\n\nTwo?"), (Role::Assistant, "Two."), (Role::User, "Three?")]);
    }

    #[test]
    fn the_bytes_of_an_unfinished_character_are_kept_with_the_reply_and_go_to_its_continuation() {
        let mut reply = message(store::Role::Assistant, "a");
        let summary = Summary { unfinished: vec![0xE2, 0x96], ..Summary::of(&[], Finish::Length, 1, 0, 1.0) };
        reply.summary = Some(serde_json::to_string(&summary).unwrap());
        let question = message(store::Role::User, "Why?");
        let chat = chat_messages(vec![question.clone().into(), reply.clone().into()]);
        assert_eq!(chat[1].unfinished, [0xE2, 0x96]);
        // The continuation contains the whole character.
        let rest = message(store::Role::Assistant, "\u{2588}b");
        let chat = chat_messages(vec![question.into(), reply.into(), rest.into()]);
        assert_eq!((chat[1].content.as_str(), &chat[1].unfinished[..]), ("a\u{2588}b", &[][..]));
    }
}
