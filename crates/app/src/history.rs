//! Stored messages as the conversation that a model replies to.

use foretoken_engine::model::{ChatMessage, Role};
use foretoken_store as store;

/// Those from the message `seen_from` on, if there is one.
pub(crate) fn seen_since(messages: Vec<store::Message>, seen_from: Option<i64>) -> Vec<store::Message> {
    messages.into_iter().filter(|message| seen_from.is_none_or(|from| message.id >= from)).collect()
}

/// The messages so far, from the first that a person wrote. Replies without text are left out.
pub(crate) fn chat_messages(messages: Vec<store::Message>) -> Vec<ChatMessage> {
    let mut chat = Vec::new();
    let asked = messages.iter().skip_while(|message| message.role == store::Role::Assistant);
    for message in asked.filter(|message| !message.text.is_empty()) {
        let role = match message.role {
            store::Role::User => Role::User,
            store::Role::Assistant => Role::Assistant,
        };
        push(&mut chat, role, &message.text);
    }
    chat
}

/// Adds a turn. Two in a row by the same speaker become one, since some templates insist on taking turns: questions of
/// which the first was not replied to, and a reply that goes on where another was cut.
pub(crate) fn push(chat: &mut Vec<ChatMessage>, role: Role, text: &str) {
    match chat.last_mut() {
        Some(last) if last.role == role => {
            if role == Role::User {
                last.content.push_str("\n\n");
            }
            last.content.push_str(text);
        }
        _ => chat.push(ChatMessage { role, content: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
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
        }
    }

    #[test]
    fn speakers_take_turns_also_after_a_reply_without_text_and_one_that_goes_on() {
        use store::Role::{Assistant, User};
        let stored = [
            (User, "One?"),
            (Assistant, ""),
            (User, "Two?"),
            (Assistant, "Tw"),
            (Assistant, "o."),
            (User, "Three?"),
        ];
        let chat = chat_messages(stored.into_iter().map(|(role, text)| message(role, text)).collect());
        let chat: Vec<_> = chat.iter().map(|turn| (turn.role, turn.content.as_str())).collect();
        assert_eq!(chat, [(Role::User, "One?\n\nTwo?"), (Role::Assistant, "Two."), (Role::User, "Three?")]);
    }
}
