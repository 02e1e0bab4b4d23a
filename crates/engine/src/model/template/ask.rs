//! What a program and the process that renders for it say to each other: a line of JSON each.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::message::ChatMessage;

/// The argument with which a program is started as a renderer.
pub(super) const ARGUMENT: &str = "--render-chat-templates";

/// Bytes of the longest answer. A conversation of a million tokens has four to five million.
pub(super) const LONGEST: u64 = 64 << 20;

/// Why a template failed that does not come to an end.
pub(super) const TOO_LONG: &str = "it takes too long";

/// Why one failed of which no more is known than that it could not be carried out.
pub(super) const TOO_MUCH: &str = "it needs more than this program allows";

/// What is compiled: a template, and the texts of the tokens that begin and end a text, where the model has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) bos: Option<String>,
    pub(super) eos: Option<String>,
}

/// What is asked of a renderer: to compile a template, and to render a prompt with it where there is one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ask<'a> {
    pub(super) source: Cow<'a, Source>,
    pub(super) prompt: Option<Prompt<'a>>,
}

/// See [`super::ChatTemplate::render_with`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prompt<'a> {
    pub(super) messages: Cow<'a, [ChatMessage]>,
    pub(super) add_generation_prompt: bool,
    pub(super) thinking: Option<bool>,
}

/// The rendered text, empty where none was asked for, or why there is none: a part of a sentence.
pub(super) type Answer = Result<String, String>;
