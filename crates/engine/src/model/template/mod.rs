//! A model's own chat template, with which a conversation becomes a prompt. Knows nothing of tokens. A template is
//! a program from a stranger: it is compiled and rendered in a process of its own, in which memory, stack and time
//! are bounded.
//!
//! - [`Renderer`]: who compiles and renders; `child`: the process, as this one sees it
//! - [`serve_if_asked`], [`Bounded`]: what a program does and has that is started as the process
//! - `ask`: what the two say to each other; `jinja`: compiling and rendering itself

mod ask;
mod child;
mod jinja;
mod memory;
mod message;
mod renderer;
mod serve;
#[cfg(test)]
mod tests;
mod thinking;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ask::{Ask, Prompt, Source};
pub use memory::Bounded;
pub use message::{ChatMessage, Role};
pub use renderer::Renderer;
pub use serve::serve_if_asked;
pub(super) use thinking::IN_A_CHANNEL;
pub use thinking::Thinking;

use crate::error::{Error, Result};

/// Bytes of the longest source that is compiled; those of well-known models have up to 20,000.
pub const MAX_SOURCE: usize = 1 << 18;

/// A template that is valid, and who renders it.
pub struct ChatTemplate {
    path: PathBuf,
    source: Source,
    renderer: Arc<Renderer>,
}

impl ChatTemplate {
    /// Has `renderer` compile `source`. `bos` and `eos` are the texts of those tokens, where the model has them;
    /// `path` is for messages.
    ///
    /// # Errors
    /// `Error::Template` when the source is not valid Jinja, or more than is compiled.
    pub fn new(
        path: PathBuf,
        source: String,
        bos: Option<&str>,
        eos: Option<&str>,
        renderer: &Arc<Renderer>,
    ) -> Result<Self> {
        check_length(&path, &source)?;
        let source = Source { text: source, bos: bos.map(str::to_owned), eos: eos.map(str::to_owned) };
        let template = Self { path, source, renderer: Arc::clone(renderer) };
        template.ask(None)?;
        Ok(template)
    }

    /// The tags between which the model thinks before it answers; `None` for one that does not.
    pub fn thinking(&self) -> Option<Thinking> {
        Thinking::of(&self.source.text)
    }

    /// Whether the model thinks when nothing is said about it; `None` where the template has no switch for it. Renders
    /// a question with the switch on, off and untouched.
    pub fn thinks(&self) -> Option<bool> {
        // Who shall not think there begins with the other channel.
        if self.has_channels() {
            return Some(true);
        }
        if !thinking::SWITCHES.iter().any(|name| self.source.text.contains(name)) {
            return None;
        }
        let question = [ChatMessage { role: Role::User, content: "Why?".to_owned() }];
        let rendered = |thinking| self.render_with(&question, true, thinking).ok();
        let off = rendered(Some(false))?;
        let differs = rendered(Some(true))? != off;
        differs.then(|| rendered(None).is_some_and(|untouched| untouched != off))
    }

    /// Whether what a model thinks and what it says are messages of their own.
    pub(crate) fn has_channels(&self) -> bool {
        self.source.text.contains(IN_A_CHANNEL)
    }

    /// The text the model is to continue. `add_generation_prompt` opens the assistant's next turn.
    ///
    /// # Errors
    /// `Error::Template` with the template's own words when it refuses, or with what went wrong.
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String> {
        self.render_with(messages, add_generation_prompt, None)
    }

    /// The same, with the switch for `thinking` on or off, where the template has one; see [`Self::thinks`].
    ///
    /// # Errors
    /// As [`Self::render`].
    pub fn render_with(
        &self,
        messages: &[ChatMessage],
        add_generation_prompt: bool,
        thinking: Option<bool>,
    ) -> Result<String> {
        self.ask(Some(Prompt { messages: messages.into(), add_generation_prompt, thinking }))
    }

    fn ask(&self, prompt: Option<Prompt<'_>>) -> Result<String> {
        let ask = Ask { source: Cow::Borrowed(&self.source), prompt };
        let failed = |reason| Error::Template { path: self.path.clone(), reason };
        self.renderer.answer(&ask).map_err(failed)
    }
}

/// Whether a template is short enough to be compiled.
///
/// # Errors
/// `Error::Template` when it is not.
pub(super) fn check_length(path: &Path, source: &str) -> Result<()> {
    if source.len() <= MAX_SOURCE {
        return Ok(());
    }
    let reason = format!("it has {} bytes, and at most {MAX_SOURCE} are compiled", source.len());
    Err(Error::Template { path: path.to_owned(), reason })
}
