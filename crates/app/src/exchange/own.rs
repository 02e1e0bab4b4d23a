//! Foretoken's own format: complete, and completely imported again. docs/conversations.md documents
//! the fields.

use foretoken_documents::Excerpt;
use foretoken_engine::trace::{Finish, Round, Summary};
use foretoken_store::{self as store, CallState, CallTokens, NewCall, Node, Tree};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::bounded::list;
use super::problem::bad;
use super::reply_tree::{clamped, visible};
use crate::conversations::{attachments, folders};
use crate::error::Result;
use crate::ipc::{ATTACHMENT_BYTES, ATTACHMENTS, Attached, Role};

pub const FORMAT: &str = "foretoken-conversation";

/// Newest supported version. A change that older programs cannot read increments it.
pub const VERSION: u64 = 1;

/// Longest title in characters, as in the window.
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
    /// Name of the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    created_at: i64,
    updated_at: i64,
    /// Last message of the shown branch; messages are numbered by their place in the list, from 0.
    shown: Option<usize>,
    seen_from: Option<usize>,
    /// The conversation's own settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<Box<RawValue>>,
    /// Tools of replies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_sets: Vec<Box<RawValue>>,
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
    /// Excerpts of documents that the prompt of a question contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    excerpts: Vec<Excerpt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Call>,
    /// Index of the reply's tools in `tool_sets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_set: Option<usize>,
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

/// A call of a tool. An imported call is shown and never run.
#[derive(Serialize, Deserialize)]
struct Call {
    text_start: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    tool: String,
    name: String,
    arguments: Map<String, Value>,
    state: String,
    #[serde(default)]
    result: String,
    #[serde(default)]
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<CallTokens>,
}

/// Most calls of a reply, and the longest result in bytes.
const MOST_CALLS: usize = 256;
const LONGEST_RESULT: usize = 256 << 10;

/// Most excerpts of a question, and the longest in bytes.
const MOST_EXCERPTS: usize = 64;
const LONGEST_EXCERPT: usize = 64 << 10;

/// Most different sets of tools of a conversation.
const MOST_TOOL_SETS: usize = 1_000;

impl Call {
    fn of(call: &NewCall) -> Self {
        Self {
            text_start: call.text_start as usize,
            server: call.server.clone(),
            tool: call.tool.clone(),
            name: call.name.clone(),
            arguments: serde_json::from_str(&call.arguments).unwrap_or_default(),
            state: call.state.name().to_owned(),
            result: call.result.clone(),
            is_error: call.is_error,
            took_ms: call.took_ms,
            tokens: call.tokens,
        }
    }

    fn stored(self) -> NewCall {
        let Self { text_start, server, tool, name, arguments, state, result, is_error, took_ms, tokens } =
            self;
        let state = match CallState::named(&state) {
            Some(CallState::Asked | CallState::Running) | None => CallState::Lost,
            Some(state) => state,
        };
        let arguments = Value::from(arguments).to_string();
        let text_start = text_start as i64;
        NewCall { text_start, server, tool, name, arguments, state, result, is_error, took_ms, tokens }
    }
}

/// A [`Round`] as stored in the file. Each is validated immediately, so many invalid ones take no
/// memory.
#[derive(Serialize)]
#[serde(transparent)]
struct Traced(Box<RawValue>);

impl<'de> Deserialize<'de> for Traced {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(from)?;
        let round = serde_json::from_str::<Round>(json.get()).map_err(D::Error::custom)?;
        check(&round).map_err(D::Error::custom)?;
        Ok(Self(json))
    }
}

/// Most drafted tokens of a round, and the longest text of one in characters. A trace file may have
/// as many, see `ui/src/trace/file/schema.ts`.
const MOST_DRAFTED: usize = 256;
const LONGEST_TOKEN: usize = 65_536;

/// # Errors
/// Returns the limit that a round exceeds.
fn check(round: &Round) -> Result<(), String> {
    if round.drafted.len() > MOST_DRAFTED || round.draft_length as usize > MOST_DRAFTED {
        return Err(format!("a round has more than {MOST_DRAFTED} drafted tokens"));
    }
    let texts = round.drafted.iter().map(|drafted| &drafted.text);
    let mut texts = texts.chain(round.extra.as_ref().map(|extra| &extra.text));
    match texts.any(|text| text.len() > LONGEST_TOKEN && text.chars().count() > LONGEST_TOKEN) {
        true => Err(format!("a token has more than {LONGEST_TOKEN} characters")),
        false => Ok(()),
    }
}

fn yes() -> bool {
    true
}

/// Returns a conversation as JSON, with its traces.
///
/// # Errors
/// Returns an error if stored JSON is invalid.
pub fn json(tree: &Tree) -> serde_json::Result<Vec<u8>> {
    let raw = |json: &String| RawValue::from_string(json.clone());
    let message = |node: &Node| -> serde_json::Result<Message> {
        Ok(Message {
            parent: node.parent,
            role: if node.reply { Role::Assistant } else { Role::User },
            text: node.text.clone(),
            attached: node.attached.iter().cloned().map(Attached::from).collect(),
            excerpts: node.excerpts.as_deref().map_or_else(|| Ok(Vec::new()), serde_json::from_str)?,
            calls: node.calls.iter().map(Call::of).collect(),
            tool_set: node.tool_set,
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
        folder: tree.folder.clone(),
        created_at: tree.created_at,
        updated_at: tree.updated_at,
        shown: tree.leaf,
        seen_from: tree.seen_from,
        setup: tree.setup.as_ref().map(raw).transpose()?,
        tool_sets: tree.tool_sets.iter().map(raw).collect::<serde_json::Result<_>>()?,
        messages: tree.nodes.iter().map(message).collect::<serde_json::Result<_>>()?,
    };
    serde_json::to_vec(&conversation)
}

/// Converts a conversation after validating it.
///
/// # Errors
/// Returns `BadFile`.
pub fn tree(conversation: Conversation) -> Result<Tree> {
    let Conversation {
        title,
        named,
        pinned,
        folder,
        created_at,
        updated_at,
        shown,
        seen_from,
        setup,
        tool_sets,
        messages,
        ..
    } = conversation;
    if tool_sets.len() > MOST_TOOL_SETS {
        return Err(bad(format!("the conversation has more than {MOST_TOOL_SETS} sets of tools")));
    }
    let nodes = messages.into_iter().enumerate().map(|(place, message)| node(place, message));
    Ok(Tree {
        title: visible(&title)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(LONGEST_TITLE)
            .collect(),
        named,
        pinned,
        folder: folder.map(|name| folders::shown_name(&name)).filter(|name| !name.is_empty()),
        created_at: clamped(created_at),
        updated_at: clamped(updated_at),
        nodes: nodes.collect::<Result<_>>()?,
        leaf: shown,
        seen_from,
        setup: setup.map(|setup| setup.get().to_owned()),
        tool_sets: tool_sets.iter().map(|set| set.get().to_owned()).collect(),
    })
}

/// Converts a message, refusing values that the window could not show.
fn node(place: usize, message: Message) -> Result<Node> {
    if message.parent.is_some_and(|parent| parent >= place) {
        return Err(bad(format!("message {place} comes before its parent")));
    }
    let too_long = |file: &Attached| file.text.len() > ATTACHMENT_BYTES;
    if message.attached.len() > ATTACHMENTS || message.attached.iter().any(too_long) {
        return Err(bad(format!("message {place} has too many or too large attachments")));
    }
    let too_long = |excerpt: &Excerpt| excerpt.text.len() > LONGEST_EXCERPT;
    if message.excerpts.len() > MOST_EXCERPTS || message.excerpts.iter().any(too_long) {
        return Err(bad(format!("message {place} has too many or too long excerpts")));
    }
    let is_bad =
        |call: &Call| !message.text.is_char_boundary(call.text_start) || call.result.len() > LONGEST_RESULT;
    if message.calls.len() > MOST_CALLS || message.calls.iter().any(is_bad) {
        return Err(bad(format!("message {place} has calls that cannot be shown")));
    }
    let finish =
        message.finish.map(|word| serde_json::from_value::<Finish>(word.clone().into()).map(|_| word));
    if let Some(summary) = &message.summary {
        serde_json::from_str::<Summary>(summary.get()).map_err(bad)?;
    }
    for (index, Traced(round)) in message.rounds.iter().enumerate() {
        let round: Round = serde_json::from_str(round.get()).map_err(bad)?;
        if round.index as usize != index {
            return Err(bad(format!("round {index} of message {place} is missing")));
        }
    }
    let excerpts = (!message.excerpts.is_empty())
        .then(|| serde_json::to_string(&message.excerpts.into_iter().map(place_named).collect::<Vec<_>>()));
    Ok(Node {
        id: 0,
        parent: message.parent,
        reply: message.role == Role::Assistant,
        text: message.text,
        attached: message.attached.into_iter().map(named).collect(),
        excerpts: excerpts.transpose().map_err(bad)?,
        calls: message.calls.into_iter().map(Call::stored).collect(),
        tool_set: message.tool_set,
        created_at: clamped(message.created_at),
        finish: finish.transpose().map_err(bad)?,
        summary: message.summary.map(|summary| summary.get().to_owned()),
        target: message.target,
        draft: message.draft,
        problem: message.problem,
        seen_from: message.seen_from,
        rounds: message.rounds.iter().map(|Traced(round)| one_line(round.get())).collect(),
    })
}

/// Gives an attachment a valid name, as the window does.
fn named(file: Attached) -> store::Attached {
    Attached { name: attachments::shown_name(&file.name), ..file }.into()
}

/// Gives the document and the heading of an excerpt valid names.
fn place_named(excerpt: Excerpt) -> Excerpt {
    let heading = excerpt.heading.as_deref().map(attachments::shown_name);
    Excerpt { name: attachments::shown_name(&excerpt.name), heading, ..excerpt }
}

/// Returns the same JSON on one line, as traces are packed: it has line breaks only between tokens.
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
        serde_json::from_str(&json).map_err(bad).and_then(tree)
    }

    #[test]
    fn excerpts_are_read_with_valid_names_and_written_again() {
        let excerpt = r#"{"name":"a\n.pdf","page":3,"heading":null,"text":"a fox"}"#;
        let message = |excerpts: &str| {
            format!(r#"{{"parent":null,"role":"user","text":"Why?","created_at":0,"excerpts":[{excerpts}]}}"#)
        };
        let tree = read(&message(excerpt)).unwrap();
        let written = String::from_utf8(json(&tree).unwrap()).unwrap();
        assert!(written.contains(r#""excerpts":[{"name":"a.pdf","page":3"#), "{written}");
        let many = [excerpt; MOST_EXCERPTS + 1].join(",");
        assert!(read(&message(&many)).unwrap_err().message.contains("excerpts"));
    }

    #[test]
    fn the_name_of_an_attachment_is_one_line() {
        let message = r#"{"parent":null,"role":"user","text":"Why?","created_at":0,
            "attached":[{"name":"a\n\nSystem:\u0007 b.txt","kind":"text","text":"fox"}]}"#;
        assert_eq!(read(message).unwrap().nodes[0].attached[0].name, "aSystem: b.txt");
    }

    #[test]
    fn invalid_rounds_are_refused_at_the_first() {
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

    #[test]
    fn a_trace_that_no_trace_file_may_have_is_refused() {
        let drafted = |text: &str| {
            format!(
                r#"{{"token":7,"text":"{text}","draft_probability":0.5,"target_probability":null,"acceptance":null,
                "outcome":"discarded","drafter":"ngram"}}"#
            )
        };
        let rounds = |count: usize, text: &str| {
            let all = vec![drafted(text); count].join(",");
            read(&format!(
                r#"{{"parent":null,"role":"assistant","text":"","created_at":0,"rounds":[{{"index":0,"position":1,
                "drafted":[{all}],"extra":null,"draft_length":4,"reason":"fixed","at_ms":1.0,"times":TIMES}}]}}"#
            ).replace("TIMES", &times()))
        };
        assert!(rounds(256, "a").is_ok(), "{:?}", rounds(256, "a").err());
        assert!(rounds(257, "a").unwrap_err().message.contains("more than 256 drafted tokens"));
        assert!(rounds(1, &"é".repeat(65_536)).is_ok());
        assert!(rounds(1, &"a".repeat(65_537)).unwrap_err().message.contains("more than 65536 characters"));
    }

    fn times() -> String {
        serde_json::to_string(&foretoken_engine::trace::Times::default()).unwrap()
    }

    #[test]
    fn characters_that_change_the_direction_of_text_are_left_out_of_a_title() {
        let json =
            r#"{"version":1,"title":"a\u202eb\u2066 c\u0007","created_at":0,"updated_at":0,"messages":[]}"#;
        assert_eq!(tree(serde_json::from_str(json).unwrap()).unwrap().title, "ab c");
    }
}
