//! Prompts: from messages to tokens.

use std::sync::Arc;

use foretoken_grammar::Grammar;
use foretoken_model::channels;
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::tokenizer::unless_stopped;
use foretoken_model::{
    ChatMessage, ChatTemplate, Conversation, Detail, ModelSource, Picture, PlacedPicture, Renderer, Role,
    Special, Tokenizer, Tool, tools,
};

use super::spellings;
use crate::constraint::Constraint;
use crate::vision::{PictureIds, sees_nothing};

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

    /// Constraint of a reply to `grammar`, from where the model's reasoning ends.
    pub fn constrained(&self, grammar: Grammar) -> Constraint {
        let thinking = match self {
            Self::Raw => None,
            Self::Chat(template) => template.thinking(),
        };
        Constraint { grammar, thinking }
    }

    /// Prompt with `text` as the first message; special tokens appear by their names.
    ///
    /// # Errors
    /// `Error::EmptyPrompt` for a text without words; errors of the template.
    pub fn text(&self, text: &str) -> Result<String> {
        self.conversation(&Conversation::of(&[self.said(text)?], None))
    }

    /// Message with `text`, the first of a conversation.
    ///
    /// # Errors
    /// `Error::EmptyPrompt` for a text without words.
    pub fn said(&self, text: &str) -> Result<ChatMessage> {
        match self {
            Self::Raw if text.is_empty() => Err(Error::EmptyPrompt),
            Self::Chat(_) if text.trim().is_empty() => Err(Error::EmptyPrompt),
            _ => Ok(ChatMessage::new(Role::User, text)),
        }
    }

    /// Prompt for the next reply of a conversation, or if it ends with a reply, for its
    /// continuation. Raw: the texts as they are.
    ///
    /// # Errors
    /// Errors of the template.
    pub fn conversation(&self, conversation: &Conversation<'_>) -> Result<String> {
        match self {
            Self::Raw => Ok(conversation.messages.iter().map(|message| message.content.as_str()).collect()),
            Self::Chat(template) => opened(template, conversation),
        }
    }

    /// Tokens of that prompt. Only the template's own parts may contain special tokens, except in
    /// raw form. A text that is too long for the context is not encoded. `stop` ends encoding
    /// early.
    ///
    /// # Errors
    /// `Error::PromptTooLong`; `Error::Cancelled`; `Error::Picture` for pictures that the model
    /// cannot see; errors of the template and the tokenizer.
    pub fn tokens(
        &self,
        encoder: &PromptEncoder,
        conversation: &Conversation<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<TokenId>> {
        let Self::Chat(template) = self else {
            let text = self.conversation(conversation)?;
            return whole_text(&encoder.tokenizer, &text, encoder.context, stop);
        };
        let (tools, messages) = prepared(template, &encoder.tokenizer, conversation);
        let conversation = &Conversation { messages: &messages, tools: &tools, ..*conversation };
        let count = conversation.pictures().count();
        if count == 0 {
            return encoder.encode(template, conversation, None, stop);
        }
        let ids = encoder.pictures.as_ref().ok_or_else(sees_nothing)?;
        let mut tokens = encoder.encode(template, conversation, None, stop)?;
        if !ids.has_all(&tokens, count) {
            // A template from before its model could see writes no placeholders.
            tokens = encoder.encode(template, conversation, Some(ids.layout.placeholder().1), stop)?;
        }
        if !ids.has_all(&tokens, count) {
            let reason = "the model's chat template leaves it out. Choose another file of this model";
            return Err(Error::Picture(reason.to_owned()));
        }
        ids.expanded(&tokens, conversation.pictures(), &encoder.tokenizer)
    }

    /// Token that the template writes after a reply, which ends replies; `None` if it writes none
    /// that is matched whole.
    pub fn turn_end(&self, tokenizer: &Tokenizer) -> Option<TokenId> {
        const REPLY: &str = "Yes, 7421.";
        let Self::Chat(template) = self else { return None };
        // In channels, the same token also stands between reasoning and answer.
        if template.has_channels() {
            return None;
        }
        let messages = [ChatMessage::new(Role::User, "Why?"), ChatMessage::new(Role::Assistant, REPLY)];
        let rendered = template.render(&messages, false).ok()?;
        let after = rendered[rendered.rfind(REPLY)? + REPLY.len()..].trim_start();
        let token = tokenizer.encode(after, Special::Parse).ok()?.first().copied()?;
        let is_marker =
            tokenizer.is_special(token) && !tokenizer.spelled(&tokenizer.piece(token), false).is_empty();
        is_marker.then_some(token)
    }

    /// Returns true if the template refuses system messages, so that their text goes into the first
    /// message of the user.
    pub fn merges_system(&self) -> bool {
        let Self::Chat(template) = self else { return false };
        let messages = [ChatMessage::new(Role::System, "Be brief."), ChatMessage::new(Role::User, "Why?")];
        template.render(&messages, true).is_err() && template.render(&messages[1..], true).is_ok()
    }
}

/// Encodes prompts for a loaded target. Clones share everything.
#[derive(Clone)]
pub struct PromptEncoder {
    pub tokenizer: Arc<Tokenizer>,
    /// Maximum length of prompt and reply together, in tokens.
    pub context: usize,
    /// Ids of pictures; `None` for a target that sees none.
    pub pictures: Option<PictureIds>,
}

impl PromptEncoder {
    /// Number of tokens of a picture in a prompt; `None` for a target that cannot see it.
    pub fn picture_tokens(&self, picture: &Arc<Picture>, detail: Detail) -> Option<usize> {
        let ids = self.pictures.as_ref()?;
        let placed = PlacedPicture { at: 0, picture: Arc::clone(picture), detail };
        let placeholder = [ids.layout.placeholder().0];
        Some(ids.expanded(&placeholder, std::iter::once(&placed), &self.tokenizer).ok()?.len())
    }

    /// Renders and encodes a conversation. Pictures become what the template writes for them, or
    /// `placeholder`.
    fn encode(
        &self,
        template: &ChatTemplate,
        conversation: &Conversation<'_>,
        placeholder: Option<&str>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<TokenId>> {
        let tokenizer = &self.tokenizer;
        let (tools, messages) = (conversation.tools, conversation.messages);
        let mark = placeholder.map(|placeholder| (spellings::unused_mark(messages), placeholder));
        let marked = mark.map(|(mark, _)| with_marks(messages, mark));
        let messages = marked.as_deref().unwrap_or(messages);
        let prompt = spellings::render(tokenizer, messages, |messages| {
            let text = opened(template, &Conversation { messages, tools, ..*conversation })?;
            Ok(match mark {
                Some((mark, placeholder)) => text.replace(mark, placeholder),
                None => text,
            })
        })?;
        if prompt.broken > 0 {
            tracing::warn!(
                "the model reads {} names of special tokens in this conversation with spaces in them, because its \
                 template rewrites messages",
                prompt.broken
            );
        }
        check_length(tokenizer, &prompt.text, self.context)?;
        let mut tokens = encoded(tokenizer, prompt.text, stop, move |tokenizer, text| {
            tokenizer.encode_around(text, &prompt.plain)
        })?;
        if let Some(reply) = messages.last().filter(|message| message.role == Role::Assistant) {
            tokens.extend(tokenizer.byte_tokens(&reply.unfinished));
        }
        Ok(tokens)
    }
}

/// Messages with `mark` in the place of each picture.
fn with_marks(messages: &[ChatMessage], mark: char) -> Vec<ChatMessage> {
    let marked = |message: &ChatMessage| {
        let mut content = message.content.clone();
        for placed in message.pictures.iter().rev() {
            content.insert(placed.at.min(content.len()), mark);
        }
        ChatMessage { content, pictures: Vec::new(), ..message.clone() }
    };
    messages.iter().map(marked).collect()
}

/// Tools and messages of a conversation as `template` expects them: reasoning, calls and results in
/// their places, and no special tokens in what is quoted.
fn prepared(
    template: &ChatTemplate,
    tokenizer: &Tokenizer,
    conversation: &Conversation<'_>,
) -> (Vec<Tool>, Vec<ChatMessage>) {
    let tags = template.thinking();
    let in_place = |message: &ChatMessage| match template.has_thinking_field() {
        true if template.tools().calls && !message.calls.is_empty() => message.clone().without_tags(tags),
        _ => message.clone().with_tags(tags),
    };
    let messages: Vec<ChatMessage> = conversation.messages.iter().map(in_place).collect();
    let conversation = Conversation { messages: &messages, ..*conversation };
    if !conversation.has_calls() {
        return (Vec::new(), messages);
    }
    let (tools, messages) = spellings::quotable(tokenizer, &conversation);
    let conversation = Conversation { messages: &messages, tools: &tools, ..conversation };
    tools::for_template(&conversation, template.tools())
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
fn opened(template: &ChatTemplate, conversation: &Conversation<'_>) -> Result<String> {
    let (before, reply) = match conversation.messages.split_last() {
        Some((reply, before)) if reply.role == Role::Assistant && reply.calls.is_empty() => {
            (before, reply.content.as_str())
        }
        _ => (conversation.messages, ""),
    };
    if !template.has_channels() {
        return Ok(rendered(template, &Conversation { messages: before, ..*conversation })? + reply);
    }
    let said = |message: &ChatMessage| match message.role {
        Role::Assistant if !message.calls.is_empty() => in_one_message(message),
        Role::Assistant => {
            ChatMessage { content: channels::said(&message.content).to_owned(), ..message.clone() }
        }
        _ => message.clone(),
    };
    let before: Vec<ChatMessage> = before.iter().map(said).collect();
    let rendered = rendered(template, &Conversation { messages: &before, ..*conversation })?;
    // Calls are messages of their own, so no header is written for them.
    let thinks = conversation.thinking != Some(false) || !conversation.tools.is_empty();
    Ok(rendered + &channels::written(reply, thinks))
}

/// Message with calls whose text is part of its reasoning: a template with channels accepts one of
/// both.
fn in_one_message(message: &ChatMessage) -> ChatMessage {
    let parts = [message.thinking.as_deref().unwrap_or_default(), &message.content];
    let all: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let thinking = Some(all.join("\n")).filter(|all| !all.is_empty());
    ChatMessage { thinking, content: String::new(), ..message.clone() }
}

/// Renders a conversation. If the template refuses its system message, that text begins the first
/// message of the user; if it refuses later ones, they are messages of the user.
fn rendered(template: &ChatTemplate, conversation: &Conversation<'_>) -> Result<String> {
    let refused = match template.render_with(conversation, true) {
        Err(error @ Error::Template { .. }) => error,
        rendered => return rendered,
    };
    let is_later = |(at, message): (usize, &ChatMessage)| at > 0 && message.role == Role::System;
    if conversation.messages.iter().enumerate().any(is_later) {
        let mut messages = conversation.messages.to_vec();
        let later = messages.iter_mut().skip(1).filter(|message| message.role == Role::System);
        later.for_each(|message| message.role = Role::User);
        return rendered(template, &Conversation { messages: &messages, ..*conversation });
    }
    let [system, user, rest @ ..] = conversation.messages else { return Err(refused) };
    if (system.role, user.role) != (Role::System, Role::User) {
        return Err(refused);
    }
    let before = format!("{}\n\n", system.content);
    let pictures = user.pictures.iter();
    let pictures =
        pictures.map(|placed| PlacedPicture { at: placed.at + before.len(), ..placed.clone() }).collect();
    let content = before + &user.content;
    let asked = ChatMessage { pictures, ..ChatMessage::new(Role::User, content) };
    let messages = [&[asked], rest].concat();
    template.render_with(&Conversation { messages: &messages, ..*conversation }, true).map_err(|_| refused)
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
    let text = text.to_owned();
    let tokens = encoded(tokenizer, text, stop, |tokenizer, text| tokenizer.encode(text, Special::Parse))?;
    // A text that begins with the token already does not get a second one.
    let first = tokenizer.bos().filter(|&bos| tokenizer.adds_bos() && tokens.first() != Some(&bos));
    Ok(first.into_iter().chain(tokens).collect())
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
    use serde_json::Map;

    use super::*;
    use foretoken_model::ToolCall;

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
        let said = |&(role, content): &(Role, &str)| ChatMessage::new(role, content);
        let messages: Vec<ChatMessage> = messages.iter().map(said).collect();
        let form = Form::Chat(Box::new(template));
        assert_eq!(form.thinks(), Some(true));
        form.conversation(&Conversation::of(&messages, thinking)).unwrap()
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

    /// The tiny tokenizer, with BOS before raw texts and a few markers.
    fn tokenizer() -> Arc<Tokenizer> {
        let mut gguf = foretoken_testkit::Gguf::tiny();
        gguf.extend_vocabulary([("<|fin|>".to_owned(), 4)]);
        gguf.set("tokenizer.ggml.add_bos_token", candle_core::quantized::gguf_file::Value::Bool(true));
        let folder = tempfile::tempdir().unwrap();
        Arc::new(ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap())
    }

    fn encoder(tokenizer: &Arc<Tokenizer>, context: usize) -> PromptEncoder {
        PromptEncoder { tokenizer: Arc::clone(tokenizer), context, pictures: None }
    }

    fn form(template: &str) -> Form {
        let renderer = Renderer::in_this_process();
        let template = ChatTemplate::new("model".into(), template.to_owned(), None, None, &renderer);
        Form::Chat(Box::new(template.unwrap()))
    }

    /// Template that refuses system messages, with an end marker that is no control token.
    const WITHOUT_SYSTEM: &str = "{% for m in messages %}{% if m.role == 'system' %}\
        {{ raise_exception('System role not supported') }}{% endif %}[{{ m.role }}]{{ m.content }}\
        {% if m.role == 'assistant' %} <|fin|>{% endif %}{% endfor %}{% if add_generation_prompt %}[]{% endif %}";

    #[test]
    fn a_bos_that_is_already_written_in_a_raw_prompt_is_not_doubled() {
        let tokenizer = tokenizer();
        let tokens = |text: &str| whole_text(&tokenizer, text, 64, &|| false).unwrap();
        assert_eq!(tokens("<s>a"), [258, 97]);
        assert_eq!(tokens("a"), [258, 97]);
        assert_eq!(tokens("<s><s>a"), [258, 258, 97]);
    }

    #[test]
    fn the_text_of_a_system_message_that_a_template_refuses_begins_the_first_question() {
        let form = form(WITHOUT_SYSTEM);
        assert!(form.merges_system());
        let (system, user) =
            (ChatMessage::new(Role::System, "Be brief."), ChatMessage::new(Role::User, "Why?"));
        let reply = ChatMessage::new(Role::Assistant, "So.");
        let messages = [system.clone(), user.clone(), reply, user.clone()];
        let rendered = form.conversation(&Conversation::of(&messages, None)).unwrap();
        assert_eq!(rendered, "[user]Be brief.\n\nWhy?[assistant]So. <|fin|>[user]Why?[]");
        // Without a question there is nothing to put it before.
        let error = form.conversation(&Conversation::of(&[system], None)).unwrap_err();
        assert!(error.to_string().contains("System role not supported"), "{error}");
        let later = [user, ChatMessage::new(Role::System, "Be kind.")];
        let rendered = form.conversation(&Conversation::of(&later, None)).unwrap();
        assert_eq!(rendered, "[user]Why?[user]Be kind.[]");
        // Other refusals keep their words.
        assert!(!self::form("{{ raise_exception('no') }}").merges_system());
        assert!(!self::form("{{ messages[0].content }}").merges_system());
    }

    #[test]
    fn reasoning_that_is_known_apart_is_in_the_templates_tags_or_left_out() {
        let tokenizer = tokenizer();
        let reply =
            ChatMessage { thinking: Some("\nHm.\n".to_owned()), ..ChatMessage::new(Role::Assistant, "So.") };
        let messages = [ChatMessage::new(Role::User, "Why?"), reply, ChatMessage::new(Role::User, "Oh.")];
        let prompt = |template: &str| {
            let conversation = Conversation::of(&messages, None);
            let tokens = form(template).tokens(&encoder(&tokenizer, 999), &conversation, &|| false).unwrap();
            let bytes: Vec<u8> =
                tokens.iter().flat_map(|&token| tokenizer.decode_bytes(token)).copied().collect();
            String::from_utf8(bytes).unwrap()
        };
        let each = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
        assert_eq!(prompt(each), "[Why?][So.][Oh.]");
        let thinks = format!("{each}{{# </think> #}}");
        assert_eq!(prompt(&thinks), "[Why?][<think>\nHm.\n</think>\n\nSo.][Oh.]");
    }

    /// Prompt of a well-known template for a reply to the result of a call.
    fn after_a_call(template: &str, content: &str, thinking: Option<&str>, more: &[ChatMessage]) -> String {
        let source = foretoken_testkit::data(&format!("templates/{template}.jinja"));
        let form = form(&std::fs::read_to_string(source).unwrap());
        let parameters = serde_json::json!({ "type": "object" });
        let tools = [Tool { name: "f".to_owned(), description: Some("F.".to_owned()), parameters }];
        let call = ToolCall { id: "call_1".to_owned(), name: "f".to_owned(), arguments: Map::new() };
        let reply = ChatMessage {
            thinking: thinking.map(str::to_owned),
            calls: vec![call],
            ..ChatMessage::new(Role::Assistant, content)
        };
        let result =
            ChatMessage { call_id: Some("call_1".to_owned()), ..ChatMessage::new(Role::Tool, "yes") };
        let messages = [&[ChatMessage::new(Role::User, "Why?"), reply, result], more].concat();
        let conversation = Conversation { messages: &messages, tools: &tools, thinking: None };
        let tokenizer = tokenizer();
        let tokens = form.tokens(&encoder(&tokenizer, 99_999), &conversation, &|| false).unwrap();
        let bytes: Vec<u8> =
            tokens.iter().flat_map(|&token| tokenizer.decode_bytes(token)).copied().collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn reasoning_before_a_call_is_given_back_until_the_answer() {
        let answered = [ChatMessage::new(Role::Assistant, "So."), ChatMessage::new(Role::User, "And?")];
        for (template, open, thought, close) in [
            (
                "google-gemma-4-31B-it",
                "<|channel>thought",
                "<|channel>thought\nHm.\n<channel|><|tool_call>call:f{}",
                "<channel|>",
            ),
            (
                "openai-gpt-oss-120b",
                "<think>",
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.f<|channel|>",
                "</think>",
            ),
            ("Qwen-Qwen3-0.6B", "<think>", "<think>\nHm.\n</think>\n\n<tool_call>", "</think>"),
            ("GLM-4.7-Flash", "<think>", "<think>Hm.</think><tool_call>f</tool_call>", "</think>"),
            ("LFM2.5-8B-A1B", "<think>", "<think>Hm.</think><|tool_call_start|>[f()]", "</think>"),
        ] {
            let apart = after_a_call(template, "", Some("Hm."), &[]);
            assert!(apart.contains(thought), "{apart}");
            // Clients that know no reasoning send it as the beginning of the text.
            assert_eq!(after_a_call(template, &format!("{open}\nHm.\n{close}\n\n"), None, &[]), apart);
            let later = after_a_call(template, "", Some("Hm."), &answered);
            assert!(!later.contains("Hm.") && later.contains("So."), "{later}");
        }
        let both = after_a_call("openai-gpt-oss-120b", "Wait.", Some("Hm."), &[]);
        assert!(both.contains("<|channel|>analysis<|message|>Hm.\nWait.<|end|>"), "{both}");
    }

    #[test]
    fn the_marker_that_a_template_writes_after_a_reply_ends_replies() {
        let tokenizer = tokenizer();
        assert_eq!(form(WITHOUT_SYSTEM).turn_end(&tokenizer), Some(261));
        for other in
            ["{{ messages[1].content }}", "{{ messages[1].content }} and so on", "{{ messages[0].content }}"]
        {
            assert_eq!(form(other).turn_end(&tokenizer), None, "{other}");
        }
    }

    #[test]
    fn a_continued_reply_goes_on_from_the_bytes_of_its_unfinished_character() {
        let tokenizer = tokenizer();
        let form = form("{{ messages[0].content }}:");
        let mut reply = ChatMessage::new(Role::Assistant, "a");
        reply.unfinished = vec![0xE2, 0x96];
        let messages = [ChatMessage::new(Role::User, "b"), reply];
        let tokens =
            form.tokens(&encoder(&tokenizer, 64), &Conversation::of(&messages, None), &|| false).unwrap();
        assert_eq!(tokens, [98, 58, 97, 0xE2, 0x96]);
    }
}
