//! Conversations in ChatGPT's data export: a `mapping` of all messages, including hidden ones.

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
    #[serde(default, deserialize_with = "or_none")]
    create_time: Option<f64>,
    #[serde(default, deserialize_with = "or_none")]
    update_time: Option<f64>,
    #[serde(deserialize_with = "map")]
    mapping: BTreeMap<String, Lenient<Entry>>,
    #[serde(default, deserialize_with = "or_none")]
    current_node: Option<String>,
    /// Model of replies that name none.
    #[serde(default, deserialize_with = "or_none")]
    default_model_slug: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default, deserialize_with = "or_none")]
    parent: Option<String>,
    message: Option<Lenient<Message>>,
}

#[derive(Deserialize)]
struct Message {
    author: Author,
    #[serde(default, deserialize_with = "or_none")]
    create_time: Option<f64>,
    /// Missing in some hidden messages.
    content: Option<Lenient<Content>>,
    #[serde(default, deserialize_with = "or_none")]
    metadata: Option<Metadata>,
    /// Addressee: "all", or a tool.
    #[serde(default, deserialize_with = "or_none")]
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
    #[serde(default, deserialize_with = "or_none")]
    is_visually_hidden_from_conversation: Option<bool>,
    #[serde(default, deserialize_with = "or_none")]
    model_slug: Option<String>,
}

/// Markers around references to sources, which the export does not contain.
const CITATION: (char, char) = ('\u{e200}', '\u{e201}');

pub fn tree(conversation: Conversation) -> ReadTree {
    let Conversation { title, create_time, update_time, mapping, current_node, default_model_slug } =
        conversation;
    let head = Head {
        title,
        created_at: create_time.map(milliseconds),
        updated_at: update_time.map(milliseconds),
        pinned: false,
        current: current_node,
    };
    let imported = |(key, entry): (String, Lenient<Entry>)| {
        let Lenient::Read(Entry { parent, message }) = entry else {
            return ImportedMessage { key, odd: true, ..ImportedMessage::default() };
        };
        let (message, odd) = match message {
            Some(Lenient::Read(message)) => (Some(message), false),
            Some(Lenient::Odd) => (None, true),
            None => (None, false),
        };
        let at = message.as_ref().and_then(|message| message.create_time).map(milliseconds);
        let content = message.map_or(Contents::Hidden, |message| contents(message, &default_model_slug));
        let odd = odd || matches!(content, Contents::Odd);
        let shown = if let Contents::Shown(shown) = content { Some(shown) } else { None };
        ImportedMessage { key, parent, at, shown, odd }
    };
    reply_tree(head, mapping.into_iter().map(imported).collect())
}

enum Contents {
    Shown(Shown),
    /// Not a message between user and model, or hidden in ChatGPT.
    Hidden,
    /// Could not be read.
    Odd,
}

/// Returns the visible messages between user and model, without tool calls.
fn contents(message: Message, model: &Option<String>) -> Contents {
    let Message { author, content, metadata, recipient, .. } = message;
    let reply = match author.role.as_str() {
        "user" => false,
        "assistant" => true,
        _ => return Contents::Hidden,
    };
    let hidden = metadata.as_ref().and_then(|metadata| metadata.is_visually_hidden_from_conversation);
    if hidden == Some(true) || recipient.is_some_and(|recipient| recipient != "all") {
        return Contents::Hidden;
    }
    let Some(Lenient::Read(Content { content_type, parts })) = content else { return Contents::Odd };
    if !["text", "multimodal_text"].contains(&content_type.as_str()) {
        return Contents::Hidden;
    }
    let text = parts.map_or_else(String::new, |Parts(text)| without_citations(&text));
    let model = metadata.and_then(|metadata| metadata.model_slug).or_else(|| model.clone());
    Contents::Shown(Shown { reply, text, model })
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
        let tree = tree(serde_json::from_str(json).unwrap()).tree;
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
        let tree = tree(serde_json::from_str(json).unwrap()).tree;
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

    #[test]
    fn a_reply_without_a_model_has_that_of_its_conversation() {
        let json = r#"{"default_model_slug":"gpt-4o","mapping":{
            "q":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Why?"]}}},
            "a":{"parent":"q","message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["One."]}}},
            "b":{"parent":"q","message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["Two."]},
                "metadata":{"model_slug":"o3"}}}}}"#;
        let tree = tree(serde_json::from_str(json).unwrap()).tree;
        let models: Vec<_> = tree.nodes.iter().map(|node| node.target.as_deref()).collect();
        assert_eq!(models, [None, Some("gpt-4o"), Some("o3")]);
    }
}
