//! Conversation files of LM Studio: a list of messages, each in one or several versions. A message
//! follows the chosen version of the previous one.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::bounded::{MAX_ELEMENTS, list};
use super::lenient::or_none;
use super::parts::Parts;
use super::problem::bad;
use super::reply_tree::{Head, ImportedMessage, ReadTree, Shown, tree as reply_tree};
use crate::conversations::folders::shown_name;
use crate::error::Result;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    #[serde(default, deserialize_with = "or_none")]
    name: Option<String>,
    #[serde(default, deserialize_with = "or_none")]
    pinned: Option<bool>,
    /// Milliseconds since 1970.
    #[serde(default, deserialize_with = "or_none")]
    created_at: Option<f64>,
    #[serde(default, deserialize_with = "or_none")]
    user_last_messaged_at: Option<f64>,
    /// Each is a [`Message`].
    #[serde(deserialize_with = "list")]
    messages: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    /// Each is a [`Version`].
    #[serde(deserialize_with = "list")]
    versions: Vec<Box<RawValue>>,
    #[serde(default, deserialize_with = "or_none")]
    currently_selected: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    role: String,
    #[serde(default)]
    content: Parts,
    /// Steps of a reply.
    #[serde(default, deserialize_with = "list")]
    steps: Vec<Step>,
    #[serde(default, deserialize_with = "or_none")]
    sender_info: Option<Sender>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sender {
    #[serde(default, deserialize_with = "or_none")]
    sender_name: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    content: Parts,
    #[serde(default, deserialize_with = "or_none")]
    style: Option<Style>,
}

#[derive(Deserialize)]
struct Style {
    #[serde(default, rename = "type", deserialize_with = "or_none")]
    kind: Option<String>,
}

/// Ending of LM Studio's files, and the folder that contains them and their folders.
const ENDING: &str = ".conversation.json";
const ROOT: &str = "conversations";

/// Returns the name of the folder in which LM Studio keeps the conversation at `path`: its files
/// are in folders on the disk. `None` for a file that is in no folder or elsewhere.
pub fn folder(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_suffix(ENDING)?;
    let parts: Vec<_> = path.parent()?.iter().map(|part| part.to_string_lossy()).collect();
    let root = parts.iter().rposition(|part| part == ROOT)?;
    let name = shown_name(&parts[root + 1..].join(" / "));
    (!name.is_empty()).then_some(name)
}

/// Parses messages and versions one by one, so many small ones take little memory.
///
/// # Errors
/// Returns `BadFile`.
pub fn tree(conversation: Conversation) -> Result<ReadTree> {
    let Conversation { name, pinned, created_at, user_last_messaged_at, messages } = conversation;
    let mut imported = Vec::new();
    let mut before: Option<String> = None;
    for (number, message) in messages.iter().enumerate() {
        let key = |version: usize| format!("{number}.{version}");
        let Some(Message { versions, currently_selected }) = parse(message) else {
            // Replies to a message that is left out follow the one before it.
            let odd = ImportedMessage { key: key(0), odd: true, ..ImportedMessage::default() };
            imported.push(odd);
            continue;
        };
        if imported.len() + versions.len() > MAX_ELEMENTS {
            return Err(bad(format!("it has more than {MAX_ELEMENTS} messages")));
        }
        let chosen = currently_selected.unwrap_or(0).min(versions.len().saturating_sub(1));
        let parent = before.clone();
        if !versions.is_empty() {
            before = Some(key(chosen));
        }
        for (version, wrote) in versions.iter().enumerate() {
            let read = parse::<Version>(wrote);
            let odd = read.is_none();
            let shown = read.and_then(shown);
            imported.push(ImportedMessage {
                key: key(version),
                parent: parent.clone(),
                at: None,
                shown,
                odd,
            });
        }
    }
    let head = Head {
        title: name,
        created_at: created_at.map(|at| at as i64),
        updated_at: user_last_messaged_at.map(|at| at as i64),
        pinned: pinned == Some(true),
        current: before,
    };
    Ok(reply_tree(head, imported))
}

/// Parses a value; `None` for one of another form.
fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue) -> Option<T> {
    serde_json::from_str(json.get()).ok()
}

fn shown(Version { role, content, steps, sender_info }: Version) -> Option<Shown> {
    let reply = match role.as_str() {
        "user" => false,
        "assistant" => true,
        _ => return None,
    };
    let mut texts = vec![content.0];
    let steps = steps.into_iter().map(|Step { content: Parts(text), style }| {
        match style.and_then(|style| style.kind) {
            Some(kind) if kind == "thinking" => format!("<think>\n{}\n</think>", text.trim()),
            _ => text,
        }
    });
    texts.extend(steps);
    texts.retain(|text| !text.is_empty());
    Some(Shown { reply, text: texts.join("\n\n"), model: sender_info.and_then(|sender| sender.sender_name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_branches_and_the_chosen_one_continues() {
        let json = r#"{"name":"Foxes","pinned":false,"createdAt":1700000000000,"tokenCount":9,"systemPrompt":"Be brief.","messages":[
            {"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"Why?"},{"type":"file","fileIdentifier":"x"}]}],"currentlySelected":0},
            {"versions":[
                {"type":"multiStep","role":"assistant","senderInfo":{"senderName":"qwen"},"steps":[
                    {"type":"contentBlock","style":{"type":"thinking","ended":true},"content":[{"type":"text","text":"Hm."}]},
                    {"type":"contentBlock","content":[{"type":"text","text":"One."}]},{"type":"debugInfoBlock","debugInfo":"x"}]},
                {"type":"multiStep","role":"assistant","steps":[{"type":"contentBlock","content":[{"type":"text","text":"Two."}]}]}],"currentlySelected":0},
            {"versions":[{"type":"singleStep","role":"user","content":[{"type":"text","text":"And?"}]}],"currentlySelected":7}]}"#;
        let tree = tree(serde_json::from_str(json).unwrap()).unwrap().tree;
        let lines: Vec<_> = tree.nodes.iter().map(|node| (node.text.as_str(), node.parent)).collect();
        assert_eq!(
            lines,
            [
                ("Why?", None),
                ("<think>\nHm.\n</think>\n\nOne.", Some(0)),
                ("And?", Some(1)),
                ("Two.", Some(0))
            ]
        );
        assert_eq!((tree.leaf, tree.created_at), (Some(2), 1_700_000_000_000));
        assert_eq!(tree.nodes[1].target.as_deref(), Some("qwen"));
    }

    #[test]
    fn a_folder_of_lm_studio_is_known_by_the_place_of_the_file() {
        let of = |path: &str| folder(Path::new(path));
        assert_eq!(of("/home/a/.lmstudio/conversations/Work/1.conversation.json").unwrap(), "Work");
        assert_eq!(of("/a/conversations/Work/2026/1.conversation.json").unwrap(), "Work / 2026");
        for other in [
            "/home/a/.lmstudio/conversations/1.conversation.json",
            "/home/a/conversations/Work/1.json",
            "/home/a/Downloads/1.conversation.json",
            "1.conversation.json",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn too_many_messages_are_refused_at_every_level() {
        let version = r#"{"role":"user"}"#;
        let message = |versions: usize| format!("{{\"versions\":[{}]}}", vec![version; versions].join(","));
        let read = |messages: usize, versions: usize| {
            let json = format!("{{\"messages\":[{}]}}", vec![message(versions); messages].join(","));
            serde_json::from_str(&json).map_err(bad).and_then(tree)
        };
        for (messages, versions) in [(MAX_ELEMENTS + 1, 0), (2, MAX_ELEMENTS / 2 + 1)] {
            let error = read(messages, versions).unwrap_err();
            assert!(error.message.contains("more than 100000"), "{messages} of {versions}");
        }
        assert_eq!(read(1, MAX_ELEMENTS + 1).unwrap().left_out, 1);
    }
}
