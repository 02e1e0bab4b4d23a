//! Conversations in ChatGPT's data export: a `mapping` of all messages, including hidden ones.

use std::collections::BTreeMap;

use foretoken_store::Tree;
use serde::Deserialize;

use super::bounded::map;
use super::parts::Parts;
use super::reply_tree::{Head, ImportedMessage, Shown, milliseconds, tree as reply_tree};

#[derive(Deserialize)]
pub struct Conversation {
    title: Option<String>,
    create_time: Option<f64>,
    update_time: Option<f64>,
    #[serde(deserialize_with = "map")]
    mapping: BTreeMap<String, Entry>,
    current_node: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    parent: Option<String>,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    author: Author,
    create_time: Option<f64>,
    content: Content,
    metadata: Option<Metadata>,
    /// Addressee: "all", or a tool.
    recipient: Option<String>,
}

#[derive(Deserialize)]
struct Author {
    role: String,
}

#[derive(Deserialize)]
struct Content {
    content_type: String,
    /// Text of the message; spoken messages are parts with a text.
    parts: Option<Parts>,
}

#[derive(Deserialize)]
struct Metadata {
    is_visually_hidden_from_conversation: Option<bool>,
    model_slug: Option<String>,
}

/// Markers around references to sources, which the export does not contain.
const CITATION: (char, char) = ('\u{e200}', '\u{e201}');

pub fn tree(conversation: Conversation) -> Tree {
    let Conversation { title, create_time, update_time, mapping, current_node } = conversation;
    let head = Head {
        title,
        created_at: create_time.map(milliseconds),
        updated_at: update_time.map(milliseconds),
        pinned: false,
        current: current_node,
    };
    let imported = |(key, Entry { parent, message }): (String, Entry)| ImportedMessage {
        key,
        parent,
        at: message.as_ref().and_then(|message| message.create_time).map(milliseconds),
        shown: message.and_then(shown),
    };
    reply_tree(head, mapping.into_iter().map(imported).collect())
}

/// Returns the visible messages between user and model, without tool calls.
fn shown(message: Message) -> Option<Shown> {
    let Message { author, content, metadata, recipient, .. } = message;
    let reply = match author.role.as_str() {
        "user" => false,
        "assistant" => true,
        _ => return None,
    };
    let hidden = metadata.as_ref().and_then(|metadata| metadata.is_visually_hidden_from_conversation);
    let text = ["text", "multimodal_text"].contains(&content.content_type.as_str());
    if !text || hidden == Some(true) || recipient.is_some_and(|recipient| recipient != "all") {
        return None;
    }
    let text = content.parts.map_or_else(String::new, |Parts(text)| without_citations(&text));
    Some(Shown { reply, text, model: metadata.and_then(|metadata| metadata.model_slug) })
}

fn without_citations(text: &str) -> String {
    let mut parts = text.split(CITATION.0);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(CITATION.1).map_or(part, |(_, after)| after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spoken_messages_are_read() {
        let json = r#"{"mapping":{
            "q":{"message":{"author":{"role":"user"},"recipient":"all","content":{"content_type":"multimodal_text","parts":[
                {"content_type":"audio_transcription","text":"Why?","direction":"in","decoding_id":null},
                {"content_type":"real_time_user_audio_video_asset_pointer","frames_asset_pointers":[],"audio_asset_pointer":
                    {"asset_pointer":"sediment://x","metadata":{"start":1.5}}}]}},"parent":null},
            "r":{"message":{"author":{"role":"assistant"},"recipient":"all","content":{"content_type":"multimodal_text","parts":[
                {"content_type":"audio_transcription","text":"A fox.","direction":"out","decoding_id":null},
                {"content_type":"audio_asset_pointer","asset_pointer":"sediment://y"}]}},"parent":"q"}}}"#;
        let tree = tree(serde_json::from_str(json).unwrap());
        let texts: Vec<_> = tree.nodes.iter().map(|node| node.text.as_str()).collect();
        assert_eq!(texts, ["Why?", "A fox."]);
    }

    #[test]
    fn branches_stay_and_hidden_messages_are_dropped() {
        let json = r#"{"title":"Foxes","create_time":1700000000.5,"update_time":1700000100,"current_node":"r2",
            "moderation_results":[],"mapping":{
            "root":{"id":"root","message":null,"parent":null,"children":["sys"]},
            "sys":{"message":{"author":{"role":"system"},"create_time":null,"content":{"content_type":"text","parts":[""]},
                "metadata":{"is_visually_hidden_from_conversation":true},"recipient":"all"},"parent":"root","children":["q"]},
            "q":{"message":{"author":{"role":"user","name":null},"create_time":1700000001.0,
                "content":{"content_type":"multimodal_text","parts":[{"asset_pointer":"file://x"},"Why?"]},"metadata":{}},"parent":"sys"},
            "tool":{"message":{"author":{"role":"assistant"},"create_time":1700000002,"recipient":"python",
                "content":{"content_type":"code","text":"1"}},"parent":"q"},
            "r1":{"message":{"author":{"role":"assistant"},"create_time":1700000003,"content":{"content_type":"text","parts":["One."]},
                "metadata":{"model_slug":"gpt-4o"},"recipient":"all"},"parent":"q"},
            "r2":{"message":{"author":{"role":"assistant"},"create_time":1700000004,
                "content":{"content_type":"text","parts":["Two\ue200cite\ue202turn0\ue201."]},"recipient":"all"},"parent":"tool"},
            "r3":{"message":{"author":{"role":"assistant"},"create_time":1700000005,
                "content":{"content_type":"text","parts":["More."]}},"parent":"r2"}}}"#;
        let tree = tree(serde_json::from_str(json).unwrap());
        let lines: Vec<_> =
            tree.nodes.iter().map(|node| (node.text.as_str(), node.parent, node.reply)).collect();
        assert_eq!(
            lines,
            [
                ("Why?", None, false),
                ("Two.", Some(0), true),
                ("\n\nMore.", Some(1), true),
                ("One.", Some(0), true)
            ]
        );
        assert_eq!((tree.title.as_str(), tree.leaf), ("Foxes", Some(1)));
        assert_eq!((tree.created_at, tree.updated_at), (1_700_000_000_500, 1_700_000_100_000));
        assert_eq!(tree.nodes[3].target.as_deref(), Some("gpt-4o"));
        assert_eq!(tree.nodes[0].created_at, 1_700_000_001_000);
    }
}
