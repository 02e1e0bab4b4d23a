//! From a person's words to the tokens a model is asked to continue.

use foretoken_engine::Error as EngineError;
use foretoken_engine::model::{ChatMessage, ChatTemplate, ModelSource, Role, Special, Tokenizer};
use foretoken_engine::trace::TokenId;

use crate::error::Result;

/// The form a prompt takes.
pub enum Form {
    /// The text as it is, special tokens read as such, after the token that begins a text where the
    /// tokenizer asks for one.
    Raw,
    /// The first message of a conversation, put into words by the model's own template.
    Chat(Box<ChatTemplate>),
}

impl Form {
    /// # Errors
    /// `Error::NoTemplate` or `Error::Template` when a conversation is wanted of a model that has none.
    pub fn of(source: &ModelSource, raw: bool) -> Result<Self> {
        Ok(if raw { Self::Raw } else { Self::Chat(Box::new(source.template()?)) })
    }

    /// # Errors
    /// `Error::EmptyPrompt` for a text without words; what the template and the tokenizer report.
    pub fn tokens(&self, tokenizer: &Tokenizer, text: &str) -> Result<Vec<TokenId>> {
        let text = self.text(text)?;
        match self {
            Self::Raw => with_beginning(tokenizer, &text),
            Self::Chat(_) => Ok(tokenizer.encode(&text, Special::Parse)?),
        }
    }

    /// The text that the tokens are made of, special tokens in it by their names.
    ///
    /// # Errors
    /// `Error::EmptyPrompt` for a text without words; what the template reports.
    pub fn text(&self, text: &str) -> Result<String> {
        match self {
            Self::Raw if text.is_empty() => Err(EngineError::EmptyPrompt.into()),
            Self::Chat(_) if text.trim().is_empty() => Err(EngineError::EmptyPrompt.into()),
            Self::Raw => Ok(text.to_owned()),
            Self::Chat(template) => {
                let message = ChatMessage { role: Role::User, content: text.to_owned() };
                Ok(template.render(&[message], true)?)
            }
        }
    }
}

/// The tokens of a whole text: begun as the tokenizer asks for, special tokens read as such.
pub fn with_beginning(tokenizer: &Tokenizer, text: &str) -> Result<Vec<TokenId>> {
    let mut tokens: Vec<TokenId> = tokenizer.bos().filter(|_| tokenizer.adds_bos()).into_iter().collect();
    tokens.extend(tokenizer.encode(text, Special::Parse)?);
    Ok(tokens)
}

/// The tokens of a conversation up to where the next reply begins.
pub fn conversation(
    template: &ChatTemplate,
    tokenizer: &Tokenizer,
    messages: &[ChatMessage],
) -> Result<Vec<TokenId>> {
    let text = template.render(messages, true)?;
    Ok(tokenizer.encode(&text, Special::Parse)?)
}
