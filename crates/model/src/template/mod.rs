//! Chat templates, which turn a conversation into a prompt. Knows nothing of tokens. A template is
//! a program from an untrusted file: it is compiled and rendered in a child process with bounded
//! memory, stack and time.
//!
//! - [`Renderer`]: compiles and renders, in a [child process](crate::child) that offers [`TASK`]
//! - `ask`: messages between the two; `jinja`: compilation and rendering

mod ask;
mod jinja;
mod message;
mod python;
mod renderer;
#[cfg(test)]
mod tests;
mod thinking;
mod thinking_parser;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ask::{Ask, Prompt, Source};
pub(crate) use jinja::python_json;
pub use message::{ChatMessage, Conversation, PlacedPicture, Role};
pub use renderer::{Renderer, TASK};
pub(super) use thinking::IN_A_CHANNEL;
pub use thinking::Thinking;
pub(crate) use thinking_parser::kept;
pub use thinking_parser::{ThinkingParser, ThinkingPiece};

use crate::error::{Error, Result};
use crate::tools::TemplateTools;

/// Longest source that is compiled, in bytes; well-known models have up to 20,000.
pub const MAX_SOURCE: usize = 1 << 18;

/// A valid chat template, with its renderer.
pub struct ChatTemplate {
    path: PathBuf,
    source: Source,
    renderer: Arc<Renderer>,
    /// Tools as the template writes them, once it was tried.
    tools: OnceLock<TemplateTools>,
    /// Every content has to be a list of parts, once that was tried.
    in_parts: OnceLock<bool>,
}

impl ChatTemplate {
    /// Compiles `source` with `renderer`. `bos` and `eos` are the texts of those tokens, if the
    /// model has them; `path` is for error messages.
    ///
    /// # Errors
    /// `Error::Template` if the source is not valid Jinja or too long.
    pub fn new(
        path: PathBuf,
        source: String,
        bos: Option<&str>,
        eos: Option<&str>,
        renderer: &Arc<Renderer>,
    ) -> Result<Self> {
        check_length(&path, &source)?;
        let source = Source { text: source, bos: bos.map(str::to_owned), eos: eos.map(str::to_owned) };
        let (tools, in_parts) = (OnceLock::new(), OnceLock::new());
        let template = Self { path, source, renderer: Arc::clone(renderer), tools, in_parts };
        template.ask(None)?;
        Ok(template)
    }

    /// Returns the tags around the model's reasoning; `None` if it does not reason.
    pub fn thinking(&self) -> Option<Thinking> {
        Thinking::of(&self.source.text)
    }

    /// Returns whether the model reasons by default; `None` if the template has no switch for it.
    /// Renders a question with the switch on, off and unset.
    pub fn thinks(&self) -> Option<bool> {
        // With channels, a reply without reasoning begins in the other channel.
        if self.has_channels() {
            return Some(true);
        }
        if !thinking::SWITCHES.iter().any(|name| self.source.text.contains(name)) {
            return None;
        }
        let question = [ChatMessage::new(Role::User, "Why?")];
        let rendered = |thinking| self.render_with(&Conversation::of(&question, thinking), true).ok();
        let off = rendered(Some(false))?;
        let differs = rendered(Some(true))? != off;
        differs.then(|| rendered(None).is_some_and(|untouched| untouched != off))
    }

    /// Returns whether reasoning and answer are separate messages in channels.
    pub fn has_channels(&self) -> bool {
        self.source.text.contains(IN_A_CHANNEL)
    }

    /// Returns whether the template reads the reasoning before calls in a field of its own.
    pub fn has_thinking_field(&self) -> bool {
        thinking::FIELDS.iter().any(|(_, read)| self.source.text.contains(read))
    }

    /// Returns the form of the model's calls, and what the template writes of tools by itself. The
    /// rest of a conversation with tools has to be [text](crate::tools::for_template).
    pub fn tools(&self) -> &TemplateTools {
        self.tools.get_or_init(|| {
            TemplateTools::of(&self.source.text, |conversation| self.render_with(conversation, true))
        })
    }

    /// Renders the prompt for `messages`. `add_generation_prompt` opens the assistant's next turn.
    ///
    /// # Errors
    /// `Error::Template` with the template's own message if it rejects the conversation, or with
    /// the cause of a failure.
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String> {
        self.render_with(&Conversation::of(messages, None), add_generation_prompt)
    }

    /// Renders the prompt for a conversation.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_with(
        &self,
        conversation: &Conversation<'_>,
        add_generation_prompt: bool,
    ) -> Result<String> {
        self.render_in(conversation, add_generation_prompt, self.is_in_parts())
    }

    fn render_in(
        &self,
        conversation: &Conversation<'_>,
        add_generation_prompt: bool,
        in_parts: bool,
    ) -> Result<String> {
        let &Conversation { messages, tools, thinking } = conversation;
        let (messages, tools) = (messages.into(), tools.into());
        self.ask(Some(Prompt { messages, tools, add_generation_prompt, thinking, in_parts }))
    }

    /// Returns true if the template reads lists of parts alone and drops texts, as those of SmolVLM
    /// do.
    fn is_in_parts(&self) -> bool {
        let tried = || {
            const QUESTION: &str = "Is it 7421 metres?";
            let question = [ChatMessage::new(Role::User, QUESTION)];
            let conversation = Conversation::of(&question, None);
            let reads = |in_parts| {
                self.render_in(&conversation, true, in_parts).is_ok_and(|text| text.contains(QUESTION))
            };
            self.source.text.contains("'type'") && !reads(false) && reads(true)
        };
        *self.in_parts.get_or_init(tried)
    }

    fn ask(&self, prompt: Option<Prompt<'_>>) -> Result<String> {
        let ask = Ask { source: Cow::Borrowed(&self.source), prompt };
        let failed = |reason| Error::Template { path: self.path.clone(), reason };
        self.renderer.answer(&ask).map_err(failed)
    }
}

/// Checks that a template is short enough to be compiled.
///
/// # Errors
/// `Error::Template` if it is not.
pub(super) fn check_length(path: &Path, source: &str) -> Result<()> {
    if source.len() <= MAX_SOURCE {
        return Ok(());
    }
    let reason = format!("it has {} bytes, and at most {MAX_SOURCE} are compiled", source.len());
    Err(Error::Template { path: path.to_owned(), reason })
}
