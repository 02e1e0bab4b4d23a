//! Conversations exported by Open WebUI.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::bounded::map;
use super::lenient::{Lenient, or_none};
use super::parts::Parts;
use super::reply_tree::{Head, ImportedMessage, ReadTree, Shown, milliseconds, tree as reply_tree};

#[derive(Deserialize)]
pub struct Conversation {
    #[serde(default, deserialize_with = "or_none")]
    title: Option<String>,
    chat: Chat,
    /// Seconds since 1970.
    #[serde(default, deserialize_with = "or_none")]
    created_at: Option<f64>,
    #[serde(default, deserialize_with = "or_none")]
    updated_at: Option<f64>,
    #[serde(default, deserialize_with = "or_none")]
    pinned: Option<bool>,
}

#[derive(Deserialize)]
struct Chat {
    #[serde(default, deserialize_with = "or_none")]
    title: Option<String>,
    history: History,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    #[serde(deserialize_with = "map")]
    messages: BTreeMap<String, Lenient<Message>>,
    #[serde(default, deserialize_with = "or_none")]
    current_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default, deserialize_with = "or_none")]
    parent_id: Option<String>,
    #[serde(default, deserialize_with = "or_none")]
    role: Option<String>,
    content: Option<Lenient<Parts>>,
    /// Seconds since 1970.
    #[serde(default, deserialize_with = "or_none")]
    timestamp: Option<f64>,
    #[serde(default, deserialize_with = "or_none")]
    model: Option<String>,
}

pub fn tree(conversation: Conversation) -> ReadTree {
    let Conversation { title, chat, created_at, updated_at, pinned } = conversation;
    let head = Head {
        title: title.or(chat.title),
        created_at: created_at.map(milliseconds),
        updated_at: updated_at.map(milliseconds),
        pinned: pinned == Some(true),
        current: chat.history.current_id,
    };
    let imported = |(key, message): (String, Lenient<Message>)| {
        let Lenient::Read(Message { parent_id, role, content, timestamp, model }) = message else {
            return ImportedMessage { key, odd: true, ..ImportedMessage::default() };
        };
        let reply = match role.as_deref() {
            Some("user") => Some(false),
            Some("assistant") => Some(true),
            _ => None,
        };
        let text = if let Some(Lenient::Read(Parts(text))) = content { Some(text) } else { None };
        // Other roles are not shown, so nothing of theirs is missed.
        let odd = role.is_none() || reply.is_some() && text.is_none();
        let shown = reply.zip(text).map(|(reply, text)| Shown {
            reply,
            text: if reply { with_thinking(text) } else { text },
            model,
        });
        ImportedMessage { key, parent: parent_id, at: timestamp.map(milliseconds), shown, odd }
    };
    reply_tree(head, chat.history.messages.into_iter().map(imported).collect())
}

const DETAILS: &str = "<details type=\"reasoning\"";
const END: &str = "</details>";

/// Replaces the elements in which Open WebUI keeps reasoning: quoted and escaped, after a summary.
fn with_thinking(text: String) -> String {
    if !text.contains(DETAILS) {
        return text;
    }
    let mut pieces = text.split(DETAILS);
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // After the tag's other attributes.
        let inner = piece.split_once('>').map_or("", |(_, inner)| inner);
        let (reasoning, after) = inner.split_once(END).unwrap_or((inner, ""));
        let reasoning = reasoning.split_once("</summary>").map_or(reasoning, |(_, reasoning)| reasoning);
        let lines: Vec<String> = reasoning.trim().lines().map(|line| unquoted(&unescaped(line))).collect();
        shown.push_str("<think>\n");
        shown.push_str(lines.join("\n").trim());
        shown.push_str("\n</think>");
        if !after.trim().is_empty() {
            shown.push_str("\n\n");
            shown.push_str(after.trim_start_matches('\n'));
        }
    }
    shown
}

fn unquoted(line: &str) -> String {
    let line = line.strip_prefix('>').map_or(line, |line| line.strip_prefix(' ').unwrap_or(line));
    line.to_owned()
}

fn unescaped(line: &str) -> String {
    if !line.contains('&') {
        return line.to_owned();
    }
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&amp;", "&")];
    pairs.iter().fold(line.to_owned(), |line, (escaped, plain)| line.replace(escaped, plain))
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
        let tree = tree(serde_json::from_str(json).unwrap()).tree;
        let lines: Vec<_> = tree.nodes.iter().map(|node| (node.text.as_str(), node.parent)).collect();
        assert_eq!(lines, [("Why?", None), ("One.", Some(0)), ("Two.", Some(0))]);
        assert_eq!((tree.title.as_str(), tree.leaf, tree.pinned), ("Foxes", Some(2), true));
        assert_eq!(tree.created_at, 1_700_000_000_000);
    }

    #[test]
    fn reasoning_in_details_is_folded_as_thinking() {
        let read = |content: &str| {
            let json = serde_json::json!({ "chat": { "history": { "messages": {
                "a": { "role": "assistant", "content": content },
            } } } });
            tree(serde_json::from_str(&json.to_string()).unwrap()).tree.nodes.remove(0).text
        };
        let details = "<details type=\"reasoning\" done=\"true\" duration=\"3\">\n<summary>Thought for 3 seconds</summary>\n";
        let one = format!("{details}&gt; A &lt;fox&gt; &amp; a hen.\n&gt; \n&gt; Hm.\n</details>\nBecause.");
        assert_eq!(read(&one), "<think>\nA <fox> & a hen.\n\nHm.\n</think>\n\nBecause.");
        let old = format!("{details}> Hm.\n</details>\n");
        assert_eq!(
            read(&format!("{old}One.\n{old}Two.")),
            "<think>\nHm.\n</think>\n\nOne.\n<think>\nHm.\n</think>\n\nTwo."
        );
        assert_eq!(read(&format!("{details}> It was cut")), "<think>\nIt was cut\n</think>");
        for other in [
            "<details>\n<summary>a</summary>\nb</details>",
            "<details type=\"tool_calls\">\n</details>",
            "a <details",
        ] {
            assert_eq!(read(other), other);
        }
        let many = "<details type=\"reasoning\">".repeat(100_000);
        assert!(read(&many).len() <= many.len());
    }
}
