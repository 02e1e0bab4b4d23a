//! Tokens of an order's prompt, also read while the session writes a reply.

use std::path::PathBuf;
use std::sync::Arc;

use foretoken_engine::session::{Form, PromptEncoder, Session, whole_text};
use foretoken_model::error::{Error, Result as EngineResult};
use foretoken_model::token::TokenId;
use foretoken_model::{Conversation, Tokenizer};

use crate::order::{Order, Prompt};
use crate::refusal::Refusal;

/// Form and encoder of a session's target. Clones share both.
#[derive(Clone)]
pub struct PromptReader {
    path: PathBuf,
    form: Arc<Form>,
    encoder: PromptEncoder,
    /// Default of the model's reasoning; see [`Order::thinking`].
    thinking: Option<bool>,
}

impl PromptReader {
    pub fn of(session: &Session, thinking: Option<bool>) -> Self {
        Self::new(session.path().to_owned(), Arc::clone(session.form()), session.encoder(), thinking)
    }

    /// Reader for the model at `path`, which need not be loaded.
    pub fn new(path: PathBuf, form: Arc<Form>, encoder: PromptEncoder, thinking: Option<bool>) -> Self {
        Self { path, form, encoder, thinking }
    }

    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.encoder.tokenizer
    }

    pub fn encoder(&self) -> &PromptEncoder {
        &self.encoder
    }

    /// Returns the number of tokens of an order's prompt.
    ///
    /// # Errors
    /// Those of a reply to it, but a prompt may be longer than the context.
    pub fn count(&self, order: &Order) -> Result<usize, Refusal> {
        match self.tokens(order, &|| false) {
            Ok(tokens) => Ok(tokens.len()),
            // Estimated, since such a text is not encoded.
            Err(Error::PromptTooLong { found, .. }) => Ok(found),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the tokens of an order's prompt, unless `stop` returns `true` meanwhile.
    ///
    /// # Errors
    /// Those of the template and the tokenizer.
    pub(crate) fn tokens(&self, order: &Order, stop: &dyn Fn() -> bool) -> EngineResult<Vec<TokenId>> {
        let Self { path, form, encoder, thinking } = self;
        let thinking = order.thinking.or(*thinking);
        let tools = order.tools.as_ref().map_or(&[][..], |asked| &asked.tools);
        match (&order.prompt, form.as_ref()) {
            (Prompt::Conversation(_), Form::Raw) => Err(Error::NoTemplate { path: path.clone() }),
            (Prompt::Conversation(messages), Form::Chat(_)) => {
                form.tokens(encoder, &Conversation { messages, tools, thinking }, stop)
            }
            (Prompt::Text(text), _) => whole_text(&encoder.tokenizer, text, encoder.context, stop),
        }
    }
}
