//! Requests to the child process that renders templates, and its answers, in JSON.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::message::ChatMessage;
use crate::tools::Tool;

/// Reason of a failure: the template's text is longer than an answer may be.
pub(super) const LONG_TEXT: &str = "its text has more than 64 MB";

/// Reason of a failure: the template does not terminate in time.
pub(super) const TOO_LONG: &str = "it takes too long";

/// Reason of a failure: the memory limit.
pub(super) const TOO_MUCH_MEMORY: &str = "it takes too much memory";

/// Reason of a failure without a known cause, such as a panic or a crash.
pub(super) const TOO_MUCH: &str = "it needs more than this program allows";

/// A template to compile, and the texts of BOS and EOS, if the model has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) text: String,
    pub(super) bos: Option<String>,
    pub(super) eos: Option<String>,
}

/// A request: compile a template, and render a prompt with it if one is given.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ask<'a> {
    pub(super) source: Cow<'a, Source>,
    pub(super) prompt: Option<Prompt<'a>>,
}

/// Arguments of [`super::ChatTemplate::render_with`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Prompt<'a> {
    pub(super) messages: Cow<'a, [ChatMessage]>,
    pub(super) tools: Cow<'a, [Tool]>,
    pub(super) add_generation_prompt: bool,
    pub(super) thinking: Option<bool>,
    /// True if every content is a list of parts, false if those with pictures are.
    pub(super) in_parts: bool,
}

/// The rendered text, empty if none was requested, or the reason of a failure as part of a
/// sentence.
pub(super) type Answer = Result<String, String>;
