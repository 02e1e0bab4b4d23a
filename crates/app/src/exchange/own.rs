//! A conversation as Foretoken writes it: everything, and all of it read again. docs/conversations.md says what each
//! field means.

use foretoken_engine::trace::{Finish, Round, Summary};
use foretoken_store::{self as store, Node, Tree};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::bounded::list;
use super::problem::{bad, damaged};
use super::reply_tree::within;
use crate::attachments::shown_name;
use crate::error::Result;
use crate::ipc::{ATTACHMENT_BYTES, ATTACHMENTS, Attached, Role};

pub const FORMAT: &str = "foretoken-conversation";

/// The newest that is known. A change that older programs cannot read needs another.
pub const VERSION: u64 = 1;

/// Of a title, in characters: what a person can type.
const LONGEST_TITLE: usize = 200;

#[derive(Serialize, Deserialize)]
pub struct Conversation {
    #[serde(default)]
    format: String,
    version: u64,
    title: String,
    #[serde(default = "yes")]
    named: bool,
    #[serde(default)]
    pinned: bool,
    created_at: i64,
    updated_at: i64,
    /// Messages are numbered by their place in the list, from 0.
    shown: Option<usize>,
    seen_from: Option<usize>,
    /// What it is written with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<Box<RawValue>>,
    #[serde(deserialize_with = "list")]
    messages: Vec<Message>,
}

#[derive(Serialize, Deserialize)]
struct Message {
    parent: Option<usize>,
    role: Role,
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attached: Vec<Attached>,
    created_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draft: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_from: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rounds: Vec<Traced>,
}

/// A [`Round`] as it stands in the file. Each is read at once: many that are none take no room.
#[derive(Serialize)]
#[serde(transparent)]
struct Traced(Box<RawValue>);

impl<'de> Deserialize<'de> for Traced {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(from)?;
        serde_json::from_str::<Round>(json.get()).map_err(D::Error::custom)?;
        Ok(Self(json))
    }
}

fn yes() -> bool {
    true
}

/// A conversation as JSON, with the traces that are in it.
///
/// # Errors
/// Where what is stored as JSON is none.
pub fn json(tree: &Tree) -> serde_json::Result<Vec<u8>> {
    let raw = |json: &String| RawValue::from_string(json.clone());
    let message = |node: &Node| -> serde_json::Result<Message> {
        Ok(Message {
            parent: node.parent,
            role: if node.reply { Role::Assistant } else { Role::User },
            text: node.text.clone(),
            attached: node.attached.iter().cloned().map(Attached::from).collect(),
            created_at: node.created_at,
            finish: node.finish.clone(),
            summary: node.summary.as_ref().map(raw).transpose()?,
            target: node.target.clone(),
            draft: node.draft.clone(),
            problem: node.problem.clone(),
            seen_from: node.seen_from,
            rounds: node
                .rounds
                .iter()
                .map(|round| raw(round).map(Traced))
                .collect::<serde_json::Result<_>>()?,
        })
    };
    let conversation = Conversation {
        format: FORMAT.to_owned(),
        version: VERSION,
        title: tree.title.clone(),
        named: tree.named,
        pinned: tree.pinned,
        created_at: tree.created_at,
        updated_at: tree.updated_at,
        shown: tree.leaf,
        seen_from: tree.seen_from,
        setup: tree.setup.as_ref().map(raw).transpose()?,
        messages: tree.nodes.iter().map(message).collect::<serde_json::Result<_>>()?,
    };
    serde_json::to_vec(&conversation)
}

/// The conversation, where all of it can be shown.
///
/// # Errors
/// `BadFile`.
pub fn tree(conversation: Conversation) -> Result<Tree> {
    let Conversation {
        title, named, pinned, created_at, updated_at, shown, seen_from, setup, messages, ..
    } = conversation;
    let nodes = messages.into_iter().enumerate().map(|(place, message)| node(place, message));
    Ok(Tree {
        title: title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_TITLE).collect(),
        named,
        pinned,
        created_at: within(created_at),
        updated_at: within(updated_at),
        nodes: nodes.collect::<Result<_>>()?,
        leaf: shown,
        seen_from,
        setup: setup.map(|setup| setup.get().to_owned()),
    })
}

/// What the window would fail to read for good is refused here.
fn node(place: usize, message: Message) -> Result<Node> {
    if message.parent.is_some_and(|parent| parent >= place) {
        return Err(bad(format!(
            "Message {place} follows one that does not come before it: this file is damaged."
        )));
    }
    let too_long = |file: &Attached| file.text.len() > ATTACHMENT_BYTES;
    if message.attached.len() > ATTACHMENTS || message.attached.iter().any(too_long) {
        return Err(bad(format!("More is attached to message {place} than can be: this file is damaged.")));
    }
    let finish =
        message.finish.map(|word| serde_json::from_value::<Finish>(word.clone().into()).map(|_| word));
    if let Some(summary) = &message.summary {
        serde_json::from_str::<Summary>(summary.get()).map_err(|error| damaged(&error))?;
    }
    for (index, Traced(round)) in message.rounds.iter().enumerate() {
        let round: Round = serde_json::from_str(round.get()).map_err(|error| damaged(&error))?;
        if round.index as usize != index {
            return Err(bad(format!("Round {index} of message {place} is missing: this file is damaged.")));
        }
    }
    Ok(Node {
        id: 0,
        parent: message.parent,
        reply: message.role == Role::Assistant,
        text: message.text,
        attached: message.attached.into_iter().map(named).collect(),
        created_at: within(message.created_at),
        finish: finish.transpose().map_err(|error| damaged(&error))?,
        summary: message.summary.map(|summary| summary.get().to_owned()),
        target: message.target,
        draft: message.draft,
        problem: message.problem,
        seen_from: message.seen_from,
        rounds: message.rounds.iter().map(|Traced(round)| one_line(round.get())).collect(),
    })
}

/// A file with a name as those have that are attached in the window.
fn named(file: Attached) -> store::Attached {
    Attached { name: shown_name(&file.name), ..file }.into()
}

/// The same JSON on one line, as traces are packed: line breaks in it stand between its parts alone.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: &str) -> Result<Tree> {
        let json = format!(
            r#"{{"version":1,"title":"a","created_at":0,"updated_at":0,"shown":null,"seen_from":null,"messages":[{messages}]}}"#
        );
        serde_json::from_str(&json).map_err(|error| damaged(&error)).and_then(tree)
    }

    #[test]
    fn a_name_of_an_attached_file_is_one_line() {
        let message = r#"{"parent":null,"role":"user","text":"Why?","created_at":0,
            "attached":[{"name":"a\n\nSystem:\u0007 b.txt","kind":"text","text":"fox"}]}"#;
        assert_eq!(read(message).unwrap().nodes[0].attached[0].name, "aSystem: b.txt");
    }

    #[test]
    fn rounds_that_are_none_are_refused_at_the_first() {
        let rounds = |rounds: &str| {
            read(&format!(
                r#"{{"parent":null,"role":"assistant","text":"","created_at":0,"rounds":[{rounds}]}}"#
            ))
        };
        assert!(rounds("").is_ok());
        for none in ["0", "{}", "0,{]"] {
            let error = rounds(none).unwrap_err();
            assert!(
                error.message.contains("expected struct Round") || error.message.contains("missing field"),
                "{}",
                error.message
            );
        }
    }
}
