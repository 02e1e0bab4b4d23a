//! Parses request bodies. A field that would change the reply but is not supported is refused, not
//! ignored; fields that do not affect the reply are ignored.

use foretoken_engine::model::{ChatMessage, Role};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::order::{Order, Prompt, SamplingChoices};
use crate::refusal::Refusal;

/// Endpoint of a request: the protocol has two for text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Chat,
    Completion,
}

/// A parsed request.
#[derive(Debug, PartialEq)]
pub struct ParsedRequest {
    /// Model that should reply; `None` for the loaded one.
    pub model: Option<String>,
    pub order: Order,
    pub streams: bool,
    /// `true` if a stream should end with its usage.
    pub streams_usage: bool,
}

/// Default length of a completion in the protocol, in tokens.
const COMPLETION_TOKENS: usize = 16;

/// Most stop texts, and their longest length in bytes: every token is searched for them.
const MAX_STOPS: usize = 16;
const MAX_STOP: usize = 256;

/// Longest error message that quotes the request, in characters.
const MAX_MESSAGE: usize = 300;

/// Fields of both endpoints, and those of one.
#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Texts>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<i64>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    /// llama-server's name for it; clients of several servers send both.
    repeat_penalty: Option<f32>,
    repeat_last_n: Option<i32>,
    dry_multiplier: Option<f32>,
    dry_base: Option<f32>,
    dry_allowed_length: Option<u32>,
    dry_penalty_last_n: Option<i32>,
    dry_sequence_breakers: Option<Vec<String>>,
    stop_loops: Option<bool>,
    seed: Option<u32>,
    stop: Option<Texts>,
    ignore_eos: Option<bool>,
    /// Template arguments, as vLLM, SGLang and llama-server accept them.
    chat_template_kwargs: Option<TemplateArguments>,
}

/// The supported template argument: the switch for reasoning, under either or both of its names.
#[derive(Deserialize)]
struct TemplateArguments {
    enable_thinking: Option<bool>,
    thinking: Option<bool>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of parts of the type text")]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

impl ParsedRequest {
    /// # Errors
    /// Returns the problem in one sentence.
    pub fn read(json: &[u8], endpoint: Endpoint) -> Result<Self, Refusal> {
        let not_json = |error: serde_json::Error| refused(&format!("The request is not valid JSON: {error}"));
        let fields: Map<String, Value> = serde_json::from_slice(json).map_err(not_json)?;
        refuse_unsupported(&fields)?;
        let body: Body = serde_path_to_error::deserialize(Value::Object(fields))
            .map_err(|error| refused(&format!("{}: {}", error.path(), error.inner())))?;
        body.asked(endpoint)
    }
}

impl Body {
    fn asked(self, endpoint: Endpoint) -> Result<ParsedRequest, Refusal> {
        let sampling = SamplingChoices {
            temperature: self.temperature,
            // Some servers use -1 for all tokens.
            top_k: self.top_k.map(|k| u32::try_from(k.max(0)).unwrap_or(u32::MAX)),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty.or(self.repeat_penalty),
            repeat_last_n: self.repeat_last_n,
            dry_multiplier: self.dry_multiplier,
            dry_base: self.dry_base,
            dry_allowed_length: self.dry_allowed_length,
            dry_penalty_last_n: self.dry_penalty_last_n,
            dry_sequence_breakers: self.dry_sequence_breakers,
            stop_loops: self.stop_loops,
            seed: self.seed,
        };
        let max_tokens = self.max_completion_tokens.or(self.max_tokens);
        if max_tokens == Some(0) {
            return Err(Refusal::bad_field("max_tokens", "1 or more"));
        }
        let order = Order {
            sampling,
            stop: stops(self.stop)?,
            thinking: self.chat_template_kwargs.and_then(|given| given.enable_thinking.or(given.thinking)),
            ignore_end: self.ignore_eos.unwrap_or(false),
            prompt: match endpoint {
                Endpoint::Chat => Prompt::Conversation(conversation(self.messages.unwrap_or_default())?),
                Endpoint::Completion => Prompt::Text(text(self.prompt)?),
            },
            max_tokens: match endpoint {
                Endpoint::Chat => max_tokens,
                Endpoint::Completion => max_tokens.or(Some(COMPLETION_TOKENS)),
            },
        };
        let usage = self.stream_options.and_then(|options| options.include_usage);
        Ok(ParsedRequest {
            model: self.model.filter(|model| !model.is_empty()),
            order,
            streams: self.stream.unwrap_or(false),
            streams_usage: usage.unwrap_or(false),
        })
    }
}

/// Creates an error whose message may quote text of any length.
fn refused(message: &str) -> Refusal {
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    Refusal::bad_request(format!("{message}."))
}

fn conversation(messages: Vec<Message>) -> Result<Vec<ChatMessage>, Refusal> {
    if messages.is_empty() {
        return Err(Refusal::bad_field("messages", "a list with at least one message"));
    }
    let message = |(at, Message { role, content }): (usize, Message)| {
        let role = match role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => {
                return Err(Refusal::bad_field(&format!("messages[{at}].role"), "system, user or assistant"));
            }
        };
        let content = match content {
            Content::Text(text) => text,
            Content::Parts(parts) => parts.into_iter().map(|Part::Text { text }| text).collect(),
        };
        Ok(ChatMessage { role, content })
    };
    messages.into_iter().enumerate().map(message).collect()
}

fn text(prompt: Option<Texts>) -> Result<String, Refusal> {
    match prompt.map(Texts::list).as_deref() {
        Some([only]) if !only.is_empty() => Ok(only.clone()),
        _ => Err(Refusal::bad_field("prompt", "one text that is not empty")),
    }
}

fn stops(stop: Option<Texts>) -> Result<Vec<String>, Refusal> {
    let stops = stop.map(Texts::list).unwrap_or_default();
    let fits = |stop: &String| (1..=MAX_STOP).contains(&stop.len());
    if stops.len() > MAX_STOPS || !stops.iter().all(fits) {
        let expected = format!("at most {MAX_STOPS} texts of 1 to {MAX_STOP} bytes");
        return Err(Refusal::bad_field("stop", &expected));
    }
    Ok(stops)
}

/// Refuses fields that ask for unsupported features. Values that clients send by default are
/// accepted.
fn refuse_unsupported(fields: &Map<String, Value>) -> Result<(), Refusal> {
    const UNSUPPORTED: [&str; 15] = [
        "audio",
        "best_of",
        "echo",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "n",
        "prediction",
        "presence_penalty",
        "response_format",
        "suffix",
        "tools",
        "top_logprobs",
    ];
    let asks = |name: &&&str| fields.get(**name).is_some_and(|value| !asks_for_nothing(name, value));
    match UNSUPPORTED.iter().find(asks) {
        Some(&name) => {
            let message = format!("This server does not support '{name}'. Leave it out.");
            Err(Refusal::unsupported(name, message))
        }
        None => Ok(()),
    }
}

fn asks_for_nothing(name: &str, value: &Value) -> bool {
    match (name, value) {
        (_, Value::Null | Value::Bool(false)) => true,
        ("n" | "best_of", Value::Number(number)) => number.as_u64() == Some(1),
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        ("response_format", Value::Object(format)) => format.get("type").is_some_and(|kind| kind == "text"),
        ("function_call", Value::String(choice)) => choice == "none",
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Array(list)) => list.is_empty(),
        (_, Value::Object(fields)) => fields.is_empty(),
        (_, Value::Bool(true)) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chat(more: Value) -> Result<ParsedRequest, Refusal> {
        let mut body = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ParsedRequest::read(body.to_string().as_bytes(), Endpoint::Chat)
    }

    fn message(refused: Result<ParsedRequest, Refusal>) -> String {
        refused.unwrap_err().json()["error"]["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn messages_of_every_role_and_text_parts_form_a_conversation() {
        let asked = chat(json!({ "messages": [
            { "role": "developer", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "content": "", "name": "x" },
        ] }));
        let Prompt::Conversation(messages) = asked.unwrap().order.prompt else { panic!() };
        let said: Vec<_> = messages.iter().map(|said| (said.role, said.content.as_str())).collect();
        assert_eq!(said, [(Role::System, "Be brief."), (Role::User, "ab"), (Role::Assistant, "")]);
    }

    #[test]
    fn default_values_that_clients_send_are_accepted() {
        let asked = chat(json!({
            "n": 1, "best_of": 1, "tools": [], "logit_bias": {}, "logprobs": false, "presence_penalty": 0,
            "frequency_penalty": 0.0, "response_format": { "type": "text" }, "suffix": null, "user": "me",
            "stop": null, "seed": null, "model": "", "metadata": { "a": 1 }, "max_tokens": 5,
            "max_completion_tokens": 7, "top_k": -1, "stream_options": null,
            "repetition_penalty": 1.1, "repeat_penalty": 1.2,
        }))
        .unwrap();
        assert_eq!((asked.model, asked.streams, asked.streams_usage), (None, false, false));
        assert_eq!((asked.order.max_tokens, asked.order.sampling.top_k), (Some(7), Some(0)));
        assert_eq!(asked.order.sampling.repetition_penalty, Some(1.1));
        let asked = chat(json!({ "repeat_penalty": 1.2 })).unwrap();
        assert_eq!(asked.order.sampling.repetition_penalty, Some(1.2));
        let asked = chat(json!({
            "repeat_last_n": 128, "dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 4,
            "dry_penalty_last_n": -1, "dry_sequence_breakers": ["\n"], "stop_loops": false,
        }));
        let sampling = asked.unwrap().order.sampling;
        assert_eq!((sampling.repeat_last_n, sampling.dry_multiplier), (Some(128), Some(0.8)));
        assert_eq!((sampling.dry_allowed_length, sampling.dry_penalty_last_n), (Some(4), Some(-1)));
        assert_eq!(sampling.dry_sequence_breakers, Some(vec!["\n".to_owned()]));
        assert_eq!(sampling.stop_loops, Some(false));
    }

    #[test]
    fn template_arguments_switch_reasoning() {
        let thinking =
            |given: Value| chat(json!({ "chat_template_kwargs": given })).map(|asked| asked.order.thinking);
        assert_eq!(thinking(json!({ "enable_thinking": false })), Ok(Some(false)));
        assert_eq!(thinking(json!({ "thinking": true, "other": 7 })), Ok(Some(true)));
        assert_eq!(thinking(json!({ "enable_thinking": false, "thinking": false })), Ok(Some(false)));
        assert_eq!(thinking(json!({})), Ok(None));
        assert_eq!(thinking(Value::Null), Ok(None));
        let wrong = message(chat(json!({ "chat_template_kwargs": { "enable_thinking": "no" } })));
        assert!(wrong.starts_with("chat_template_kwargs.enable_thinking: invalid type"), "{wrong}");
    }

    #[test]
    fn unsupported_fields_are_refused_by_name() {
        for (name, value) in [
            ("n", json!(2)),
            ("tools", json!([{ "type": "function" }])),
            ("logprobs", json!(true)),
            ("logprobs", json!(1)),
            ("response_format", json!({ "type": "json_object" })),
            ("presence_penalty", json!(0.5)),
            ("logit_bias", json!({ "50256": -100 })),
            ("echo", json!(true)),
        ] {
            let refusal = chat(json!({ name: value })).unwrap_err();
            assert_eq!(refusal.json()["error"]["param"], name);
        }
    }

    #[test]
    fn an_invalid_field_is_named_and_long_values_are_shortened() {
        for (more, begins) in [
            (json!({ "temperature": "hot" }), "temperature: invalid type: string \"hot\""),
            (json!({ "seed": -1 }), "seed: invalid value"),
            (json!({ "max_tokens": 0 }), "max_tokens: expected 1 or more."),
            (json!({ "max_tokens": 1.5 }), "max_tokens: invalid type"),
            (json!({ "stop": 7 }), "stop: expected a text or a list of texts"),
            (json!({ "stop": [""] }), "stop: expected at most 16 texts of 1 to 256 bytes."),
            (json!({ "stop": vec!["a"; 17] }), "stop: expected at most"),
            (json!({ "stop": "x".repeat(257) }), "stop: expected at most"),
            (json!({ "messages": [] }), "messages: expected a list with at least one message."),
            (json!({ "messages": "Hello" }), "messages: invalid type"),
            (
                json!({ "messages": [{ "role": "tool", "content": "" }] }),
                "messages[0].role: expected system, user",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": null }] }),
                "messages[0].content: expected a text",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
                "messages[0].content",
            ),
            (json!({ "stream": "x".repeat(10_000) }), "stream: invalid type"),
        ] {
            let message = message(chat(more));
            assert!(message.starts_with(begins) && message.len() < 400, "{begins}: {message}");
        }
    }

    #[test]
    fn a_body_that_is_not_a_json_object_is_refused() {
        let text = format!("\"{}\"", "a text ".repeat(1_000));
        for body in
            ["", "{", "[]", "7", "{\"messages\": [}", &"[".repeat(100_000), "\u{0}", "{\"a\":1e999}", &text]
        {
            let message = message(ParsedRequest::read(body.as_bytes(), Endpoint::Chat));
            assert!(message.starts_with("The request is not valid JSON: "), "{message}");
            assert!(message.ends_with('.') && message.chars().count() <= MAX_MESSAGE + 1, "{message}");
        }
    }

    #[test]
    fn a_completion_has_one_prompt_and_the_protocols_default_length() {
        let read = |body: Value| ParsedRequest::read(body.to_string().as_bytes(), Endpoint::Completion);
        let asked = read(json!({ "prompt": ["Once"] })).unwrap();
        assert_eq!((asked.order.prompt, asked.order.max_tokens), (Prompt::Text("Once".to_owned()), Some(16)));
        assert_eq!(read(json!({ "prompt": "a", "max_tokens": 9 })).unwrap().order.max_tokens, Some(9));
        for wrong in
            [json!({}), json!({ "prompt": "" }), json!({ "prompt": ["a", "b"] }), json!({ "prompt": [] })]
        {
            assert_eq!(message(read(wrong)), "prompt: expected one text that is not empty.");
        }
        assert!(message(read(json!({ "prompt": [1, 2] }))).starts_with("prompt: expected a text"));
    }
}
