//! Interface of reply writers: a conversation goes in, text comes out as it is written. Local
//! models also report rounds; others, such as remote servers, report only text.

use std::fmt;

use foretoken_engine::session::ToolUse;
use foretoken_engine::trace::{Finish, Round, Summary};
use foretoken_model::{ChatMessage, Tool};
use foretoken_store::CallTokens;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{PromptSize, Settings};

/// A conversation to reply to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    pub messages: Vec<ChatMessage>,
    /// Tools that the reply may call.
    pub tools: Option<ToolUse>,
}

impl Chat {
    pub(crate) fn offered(&self) -> &[Tool] {
        self.tools.as_ref().map_or(&[][..], |asked| &asked.tools)
    }
}

/// A writer of replies.
pub trait Replier: Send {
    /// Replies to `chat` and sends events to `on`. `cancel` ends the reply early without an
    /// error.
    ///
    /// # Errors
    /// An error before [`Event::Started`] refused the conversation; after a later one, the text so
    /// far is kept.
    fn reply(
        &mut self,
        chat: &Chat,
        settings: &Settings,
        cancel: &Cancel,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Ending>;

    /// Measures the prompt of a conversation without replying.
    ///
    /// # Errors
    /// Returns an error if it cannot be formatted as a prompt.
    fn measure(&mut self, chat: &Chat, settings: &Settings) -> Result<PromptSize>;
}

impl PromptSize {
    /// Returns whether the prompt fits.
    pub fn fits(self) -> bool {
        self.tokens < self.context
    }

    /// Returns whether a quarter of the context is left for the reply.
    pub fn leaves_room(self) -> bool {
        self.tokens <= self.context - self.context.div_ceil(4)
    }
}

impl fmt::Display for PromptSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, context } = self;
        write!(
            f,
            "its prompt has {tokens} tokens, and the model's context window holds {context}, including one for the reply"
        )
    }
}

/// Events of a reply.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The conversation was accepted by the models with these labels. Comes first.
    Started { target: &'a str, draft: Option<&'a str> },
    /// Share of the embeddings of new pictures that is computed.
    Pictures { share: f32 },
    /// Prompt tokens processed so far.
    Prompt { done: usize, total: usize },
    /// The round of the next text, if there are rounds.
    Round(&'a Round),
    /// Text added to the reply; after a round all its text, which may be empty.
    Text { delta: &'a str },
    /// A call of the tool with this name begins; so much text, in bytes, is before all calls.
    CallBegan { name: &'a str, start: usize },
    /// JSON added to the arguments of the call that began last.
    CallArguments { json: &'a str },
    /// The call that began last is complete.
    CallEnded { tokens: Option<CallTokens> },
}

/// End of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub finish: Finish,
    /// Statistics, if known.
    pub summary: Option<Summary>,
}
