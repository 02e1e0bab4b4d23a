//! Conversations exported by Open WebUI.

use std::collections::BTreeMap;

use foretoken_store::Tree;
use serde::Deserialize;

use super::bounded::map;
use super::reply_tree::{Head, ImportedMessage, Shown, milliseconds, tree as reply_tree};

#[derive(Deserialize)]
pub struct Conversation {
    title: Option<String>,
    chat: Chat,
    /// Seconds since 1970.
    created_at: Option<f64>,
    updated_at: Option<f64>,
    pinned: Option<bool>,
}

#[derive(Deserialize)]
struct Chat {
    title: Option<String>,
    history: History,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    #[serde(deserialize_with = "map")]
    messages: BTreeMap<String, Message>,
    current_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    parent_id: Option<String>,
    role: String,
    content: String,
    /// Seconds since 1970.
    timestamp: Option<f64>,
    model: Option<String>,
}

pub fn tree(conversation: Conversation) -> Tree {
    let Conversation { title, chat, created_at, updated_at, pinned } = conversation;
    let head = Head {
        title: title.or(chat.title),
        created_at: created_at.map(milliseconds),
        updated_at: updated_at.map(milliseconds),
        pinned: pinned == Some(true),
        current: chat.history.current_id,
    };
    let imported = |(key, message): (String, Message)| ImportedMessage {
        key,
        parent: message.parent_id,
        at: message.timestamp.map(milliseconds),
        shown: ["user", "assistant"].contains(&message.role.as_str()).then(|| Shown {
            reply: message.role == "assistant",
            text: message.content,
            model: message.model,
        }),
    };
    reply_tree(head, chat.history.messages.into_iter().map(imported).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_branches_of_a_chat_are_read() {
        let json = r#"{"id":"x","title":"Foxes","created_at":1700000000,"updated_at":1700000009,"pinned":true,
            "chat":{"title":"New Chat","models":["m"],"history":{"currentId":"c","messages":{
            "a":{"id":"a","parentId":null,"childrenIds":["b","c"],"role":"user","content":"Why?","timestamp":1700000001},
            "c":{"id":"c","parentId":"a","role":"assistant","content":"Two.","timestamp":1700000003,"model":"m"},
            "b":{"id":"b","parentId":"a","role":"assistant","content":"One.","timestamp":1700000002,"model":"m"}}}}}"#;
        let tree = tree(serde_json::from_str(json).unwrap());
        let lines: Vec<_> = tree.nodes.iter().map(|node| (node.text.as_str(), node.parent)).collect();
        assert_eq!(lines, [("Why?", None), ("One.", Some(0)), ("Two.", Some(0))]);
        assert_eq!((tree.title.as_str(), tree.leaf, tree.pinned), ("Foxes", Some(2), true));
        assert_eq!(tree.created_at, 1_700_000_000_000);
    }
}
