//! Prompts: from messages to tokens.

use std::sync::Arc;

use foretoken_model::channels;
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::tokenizer::unless_stopped;
use foretoken_model::{ChatMessage, ChatTemplate, ModelSource, Renderer, Role, Special, Tokenizer};

use super::spellings;

/// Bytes of text per token: about the average of English.
const BYTES_PER_TOKEN: usize = 4;

/// Bytes of a text from which encoding can be stopped; shorter ones take milliseconds.
const LONG_TEXT: usize = 1 << 16;

/// Returns the estimated tokens of a text of `bytes` bytes that is not encoded.
pub fn estimated_tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Form of a prompt.
pub enum Form {
    /// The text as it is, with special tokens, after the token that begins a text if the tokenizer
    /// adds one.
    Raw,
    /// A conversation, rendered by the model's own template.
    Chat(Box<ChatTemplate>),
}

impl Form {
    /// Form with the model's own template, which `renderer` compiles and renders.
    ///
    /// # Errors
    /// `Error::NoTemplate`, `Error::Template` or `Error::HeadAlone` for a model that cannot chat.
    pub fn chat(source: &ModelSource, renderer: &Arc<Renderer>) -> Result<Self> {
        source.check_target()?;
        Ok(Self::Chat(Box::new(source.template(renderer)?)))
    }

    /// Default of the model's reasoning; `None` without a switch for it.
    pub fn thinks(&self) -> Option<bool> {
        match self {
            Self::Raw => None,
            Self::Chat(template) => template.thinks(),
        }
    }

    /// Prompt with `text` as the first message; special tokens appear by their names.
    ///
    /// # Errors
    /// `Error::EmptyPrompt` for a text without words; errors of the template.
    pub fn text(&self, text: &str) -> Result<String> {
        self.conversation(&[self.said(text)?], None)
    }

    /// Message with `text`, the first of a conversation.
    ///
    /// # Errors
    /// `Error::EmptyPrompt` for a text without words.
    pub fn said(&self, text: &str) -> Result<ChatMessage> {
        match self {
            Self::Raw if text.is_empty() => Err(Error::EmptyPrompt),
            Self::Chat(_) if text.trim().is_empty() => Err(Error::EmptyPrompt),
            _ => Ok(ChatMessage { role: Role::User, content: text.to_owned() }),
        }
    }

    /// Prompt for the next reply of a conversation, or if it ends with a reply, for its
    /// continuation. Raw: the texts as they are. `thinking` turns reasoning on or off if the
    /// template has a switch: see [`Self::thinks`].
    ///
    /// # Errors
    /// Errors of the template.
    pub fn conversation(&self, messages: &[ChatMessage], thinking: Option<bool>) -> Result<String> {
        match self {
            Self::Raw => Ok(messages.iter().map(|message| message.content.as_str()).collect()),
            Self::Chat(template) => opened(template, messages, thinking),
        }
    }

    /// Tokens of that prompt. Only the template's own parts may contain special tokens, except in
    /// raw form. A text that is too long for a context of `context` tokens is not encoded. `stop`
    /// ends encoding early.
    ///
    /// # Errors
    /// `Error::PromptTooLong`; `Error::Cancelled`; errors of the template and the tokenizer.
    pub fn tokens(
        &self,
        tokenizer: &Arc<Tokenizer>,
        messages: &[ChatMessage],
        thinking: Option<bool>,
        context: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<TokenId>> {
        let Self::Chat(template) = self else {
            return whole_text(tokenizer, &self.conversation(messages, thinking)?, context, stop);
        };
        let prompt = spellings::render(tokenizer, messages, |messages| opened(template, messages, thinking))?;
        if prompt.broken > 0 {
            tracing::warn!(
                "the model reads {} names of special tokens in this conversation with spaces in them, because its \
                 template rewrites messages",
                prompt.broken
            );
        }
        check_length(tokenizer, &prompt.text, context)?;
        encoded(tokenizer, prompt.text, stop, move |tokenizer, text| {
            tokenizer.encode_around(text, &prompt.plain)
        })
    }
}

/// Encodes a text with `encode`; a long one on a thread of its own while `stop` is checked.
fn encoded(
    tokenizer: &Arc<Tokenizer>,
    text: String,
    stop: &dyn Fn() -> bool,
    encode: impl FnOnce(&Tokenizer, &str) -> Result<Vec<TokenId>> + Send + 'static,
) -> Result<Vec<TokenId>> {
    if text.len() < LONG_TEXT {
        return encode(tokenizer, &text);
    }
    let tokenizer = Arc::clone(tokenizer);
    unless_stopped(stop, move || encode(&tokenizer, &text))
}

/// Renders a conversation with the assistant's turn open, after the partial reply at its end, if
/// any.
fn opened(template: &ChatTemplate, messages: &[ChatMessage], thinking: Option<bool>) -> Result<String> {
    let (before, reply) = match messages.split_last() {
        Some((reply, before)) if reply.role == Role::Assistant => (before, reply.content.as_str()),
        _ => (messages, ""),
    };
    if !template.has_channels() {
        return Ok(template.render_with(before, true, thinking)? + reply);
    }
    let said = |message: &ChatMessage| match message.role {
        Role::Assistant => {
            ChatMessage { content: channels::said(&message.content).to_owned(), ..message.clone() }
        }
        _ => message.clone(),
    };
    let before: Vec<ChatMessage> = before.iter().map(said).collect();
    Ok(template.render_with(&before, true, thinking)? + &channels::written(reply, thinking != Some(false)))
}

/// Tokens of a whole text, with the first token that the tokenizer adds and with special tokens. A
/// text that is too long for a context of `context` tokens is not encoded. `stop` ends encoding
/// early.
///
/// # Errors
/// `Error::PromptTooLong`; `Error::Cancelled`; errors of the tokenizer.
pub fn whole_text(
    tokenizer: &Arc<Tokenizer>,
    text: &str,
    context: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<TokenId>> {
    check_length(tokenizer, text, context)?;
    let mut tokens: Vec<TokenId> = tokenizer.bos().filter(|_| tokenizer.adds_bos()).into_iter().collect();
    let text = text.to_owned();
    tokens.extend(encoded(tokenizer, text, stop, |tokenizer, text| tokenizer.encode(text, Special::Parse))?);
    Ok(tokens)
}

/// Rejects a text that has more than `context` tokens whatever it says. Encoding takes hundreds of
/// bytes of memory for each byte, so an untrusted template must not choose the length.
///
/// # Errors
/// `Error::PromptTooLong`, with a rough number of tokens.
fn check_length(tokenizer: &Tokenizer, text: &str, context: usize) -> Result<()> {
    if tokenizer.at_least(text.len()) <= context {
        return Ok(());
    }
    let found = estimated_tokens(text.len()).max(context + 1);
    Err(Error::PromptTooLong { found, limit: context })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Template like that of gpt-oss, which refuses reasoning inside of a reply's content.
    const CHANNELS: &str = "{% for message in messages %}{% if message.role == 'assistant' %}\
        {% if '<|channel|>analysis<|message|>' in message.content or '<think>' in message.content %}\
        {{ raise_exception('thoughts in the content') }}{% endif %}\
        <|start|>assistant<|channel|>final<|message|>{{ message.content }}<|end|>{% else %}\
        <|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{% endif %}{% endfor %}\
        {% if add_generation_prompt %}<|start|>assistant{% endif %}";

    fn prompt(messages: &[(Role, &str)], thinking: Option<bool>) -> String {
        let renderer = Renderer::in_this_process();
        let template = ChatTemplate::new("model".into(), CHANNELS.to_owned(), None, None, &renderer).unwrap();
        assert_eq!(template.thinking().map(|tags| tags.open), Some("<think>"));
        let said = |&(role, content): &(Role, &str)| ChatMessage { role, content: content.to_owned() };
        let messages: Vec<ChatMessage> = messages.iter().map(said).collect();
        let form = Form::Chat(Box::new(template));
        assert_eq!(form.thinks(), Some(true));
        form.conversation(&messages, thinking).unwrap()
    }

    #[test]
    fn thoughts_in_a_channel_are_not_sent_back_and_a_reply_goes_on_in_its_channel() {
        let (asked, thought) = ((Role::User, "Why?"), "<think>\nHm.\n</think>\n\nSo.");
        let question = "<|start|>user<|message|>Why?<|end|>";
        assert_eq!(
            prompt(&[asked, (Role::Assistant, thought), asked], None),
            format!(
                "{question}<|start|>assistant<|channel|>final<|message|>So.<|end|>{question}<|start|>assistant"
            )
        );
        assert_eq!(
            prompt(&[asked, (Role::Assistant, thought)], None),
            format!(
                "{question}<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>\
                 <|start|>assistant<|channel|>final<|message|>So."
            )
        );
        let said_at_once = format!("{question}<|start|>assistant<|channel|>final<|message|>");
        assert_eq!(prompt(&[asked], Some(false)), said_at_once);
    }
}
