//! Request bodies in OpenAI's protocol.

use foretoken_engine::session::{ToolChoice, ToolUse};
use foretoken_model::sampling::Sampling;
use foretoken_model::{ChatMessage, Detail, Picture, PlacedPicture, Role, Tool, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};

/// Messages to reply to, with options.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub model: &'a str,
    /// Messages so far; if the last is the assistant's, the reply continues it.
    pub messages: &'a [ChatMessage],
    /// Tools that the reply may call. A reply that continues another one calls none.
    pub tools: Option<&'a ToolUse>,
    pub sampling: &'a Sampling,
    /// Longest reply in tokens; `None` leaves it to the server.
    pub max_tokens: Option<usize>,
    /// Texts that end the reply.
    pub stop: &'a [String],
    /// Reasoning before the reply: on, off, or `None` to leave it to the server.
    pub thinking: Option<bool>,
    /// `true` to send fields that are not OpenAI's own; `false` for a server that refused them.
    pub extras: bool,
    /// Returns the data URL of a picture.
    pub picture_url: fn(&Picture) -> String,
}

impl Question<'_> {
    /// Returns whether the reply continues the last message.
    pub(crate) fn continues(&self) -> bool {
        self.messages.last().is_some_and(|last| last.role == Role::Assistant)
    }
}

#[derive(Debug, Serialize)]
pub struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    stream: bool,
    temperature: f32,
    top_p: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(flatten)]
    tools: Option<Tools>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f32>,
    #[serde(flatten)]
    extras: Option<Extras<'a>>,
}

#[derive(Debug, Serialize)]
struct Turn<'a> {
    role: &'static str,
    /// `None` in a message that only has calls.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// Content of a message: a text, or a list of texts and pictures.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Value>),
}

/// Tools of a request.
#[derive(Debug, Serialize)]
struct Tools {
    tools: Vec<Value>,
    tool_choice: Value,
    parallel_tool_calls: bool,
}

/// Fields beyond OpenAI's own that vLLM, SGLang and llama-server accept. Other servers may refuse
/// them by name.
#[derive(Debug, Serialize)]
struct Extras<'a> {
    stream_options: StreamOptions,
    /// Number of candidates, -1 for all tokens; without it servers apply a default of their own.
    top_k: i64,
    min_p: f32,
    /// Left out to use the model's own penalty.
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_penalty: Option<f32>,
    #[serde(flatten)]
    llama_server: Option<LlamaServer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continue_final_message: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    add_generation_prompt: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
}

/// Penalties under llama-server's names.
#[derive(Debug, Serialize)]
struct LlamaServer<'a> {
    repeat_penalty: f32,
    repeat_last_n: i32,
    dry_multiplier: f32,
    dry_base: f32,
    dry_allowed_length: u32,
    dry_penalty_last_n: i32,
    dry_sequence_breakers: &'a [String],
}

#[derive(Debug, Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Arguments of the chat template: the reasoning switch as Qwen 3, SmolLM 3 and GLM name it, and as
/// DeepSeek and Granite do.
#[derive(Debug, Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
    thinking: bool,
}

impl<'a> Body<'a> {
    pub fn of(question: &Question<'a>) -> Self {
        let Question { model, messages, tools, sampling, max_tokens, stop, thinking, .. } = *question;
        let continues = question.continues();
        // Servers that do not know them would refuse them.
        let set = |penalty: f32| (penalty != 0.0).then_some(penalty);
        let extras = Extras {
            stream_options: StreamOptions { include_usage: true },
            top_k: if sampling.top_k == 0 { -1 } else { i64::from(sampling.top_k) },
            min_p: sampling.min_p,
            repetition_penalty: (!sampling.automatic_penalties).then_some(sampling.repetition_penalty),
            llama_server: (!sampling.automatic_penalties).then_some(LlamaServer {
                repeat_penalty: sampling.repetition_penalty,
                repeat_last_n: sampling.repeat_last_n,
                dry_multiplier: sampling.dry_multiplier,
                dry_base: sampling.dry_base,
                dry_allowed_length: sampling.dry_allowed_length,
                dry_penalty_last_n: sampling.dry_penalty_last_n,
                dry_sequence_breakers: &sampling.dry_sequence_breakers,
            }),
            continue_final_message: continues.then_some(true),
            add_generation_prompt: continues.then_some(false),
            chat_template_kwargs: thinking
                .map(|thinking| TemplateArguments { enable_thinking: thinking, thinking }),
        };
        Self {
            model,
            messages: messages.iter().map(|message| Turn::of(message, question.picture_url)).collect(),
            stream: true,
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            seed: sampling.seed,
            max_tokens,
            stop,
            tools: tools.filter(|_| !continues).map(Tools::of),
            presence_penalty: set(sampling.presence_penalty),
            frequency_penalty: set(sampling.frequency_penalty),
            extras: question.extras.then_some(extras),
        }
    }

    /// Returns the first extra that a server's error message names; [`THINKING`] only if no other
    /// is named.
    pub fn extra_in(message: &str) -> Option<&'static str> {
        let extras = [
            "stream_options",
            "top_k",
            "min_p",
            "repetition_penalty",
            "repeat_penalty",
            "repeat_last_n",
            "dry_multiplier",
            "dry_base",
            "dry_allowed_length",
            "dry_penalty_last_n",
            "dry_sequence_breakers",
            "continue_final_message",
            "add_generation_prompt",
            THINKING,
        ];
        extras.into_iter().find(|extra| message.contains(extra))
    }
}

impl<'a> Turn<'a> {
    fn of(message: &'a ChatMessage, picture_url: fn(&Picture) -> String) -> Self {
        let ChatMessage { role: author, content, calls, call_id, pictures, .. } = message;
        let content = match pictures.is_empty() {
            true => Content::Text(content),
            false => Content::Parts(parts(content, pictures, picture_url)),
        };
        let is_empty = matches!(content, Content::Text(""));
        Self {
            role: role(*author),
            content: Some(content).filter(|_| calls.is_empty() || !is_empty),
            tool_calls: calls.iter().map(call).collect(),
            tool_call_id: call_id.as_deref(),
        }
    }
}

/// Texts and pictures in order.
fn parts(content: &str, pictures: &[PlacedPicture], url: fn(&Picture) -> String) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut written = 0;
    let mut add_text = |parts: &mut Vec<Value>, end: usize| {
        let text = content.get(written..end).unwrap_or_default();
        if !text.is_empty() {
            parts.push(json!({ "type": "text", "text": text }));
        }
        written = end;
    };
    for PlacedPicture { at, picture, detail } in pictures {
        add_text(&mut parts, *at);
        let detail = match detail {
            Detail::Low => "low",
            Detail::Normal => "auto",
            Detail::High => "high",
        };
        parts.push(json!({ "type": "image_url", "image_url": { "url": url(picture), "detail": detail } }));
    }
    add_text(&mut parts, content.len());
    parts
}

/// JSON of a call, with its arguments as a text.
fn call(ToolCall { id, name, arguments }: &ToolCall) -> Value {
    let arguments = Value::from(arguments.clone()).to_string();
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

impl Tools {
    fn of(ToolUse { tools, choice, parallel, .. }: &ToolUse) -> Self {
        Self {
            tools: tools.iter().map(Tool::json).collect(),
            tool_choice: match choice {
                ToolChoice::Auto => json!("auto"),
                ToolChoice::Required => json!("required"),
                ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
            },
            parallel_tool_calls: *parallel,
        }
    }
}

/// Name of the extra that switches reasoning. Servers that accept the other extras refuse it for
/// models without a chat template.
pub const THINKING: &str = "chat_template_kwargs";

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn body(messages: &[ChatMessage], with_extras: bool) -> Value {
        let sampling = Sampling {
            temperature: 0.7,
            top_p: 0.9,
            min_p: 0.05,
            seed: Some(7),
            automatic_penalties: false,
            ..Sampling::default()
        };
        let question = Question {
            model: "m",
            messages,
            tools: None,
            sampling: &sampling,
            max_tokens: Some(40),
            stop: &[],
            thinking: Some(false),
            extras: with_extras,
            picture_url: |picture| format!("data:{}", picture.width()),
        };
        // Converts through text, so a 32-bit number stays as short as it was set.
        let text = serde_json::to_string(&Body::of(&question)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn message(role: Role, content: &str) -> ChatMessage {
        ChatMessage::new(role, content)
    }

    #[test]
    fn pictures_are_parts_at_their_places_in_the_text() {
        let picture = std::sync::Arc::new(Picture::new(2, 1, vec![0; 6]).unwrap());
        let mut message = ChatMessage::new(Role::User, "Before");
        message = message.with_picture(&picture, Detail::High);
        message.content.push_str(" after");
        let url =
            |detail: &str| json!({ "type": "image_url", "image_url": { "url": "data:2", "detail": detail } });
        let text = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(
            body(&[message], false)["messages"][0]["content"],
            json!([text("Before"), url("high"), text(" after")])
        );
        let alone = ChatMessage::new(Role::User, "").with_picture(&picture, Detail::Normal);
        assert_eq!(body(&[alone], false)["messages"][0]["content"], json!([url("auto")]));
    }

    #[test]
    fn options_use_the_protocols_names_and_extras_are_sent_only_if_supported() {
        let messages = [message(Role::System, "Be brief."), message(Role::User, "Hi")];
        let plain = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Hi" }
            ],
            "stream": true, "temperature": 0.7, "top_p": 0.9, "seed": 7, "max_tokens": 40
        });
        assert_eq!(body(&messages, false), plain);
        let sampling = Sampling { presence_penalty: 0.5, frequency_penalty: -1.0, ..Sampling::default() };
        let stop = ["END".to_owned()];
        let (max_tokens, thinking, extras) = (None, None, false);
        let question = Question {
            model: "m",
            messages: &messages,
            tools: None,
            sampling: &sampling,
            max_tokens,
            stop: &stop,
            thinking,
            extras,
            picture_url: |_| String::new(),
        };
        let sent = serde_json::to_value(Body::of(&question)).unwrap();
        assert_eq!(
            (&sent["stop"], &sent["presence_penalty"], &sent["frequency_penalty"]),
            (&json!(["END"]), &json!(0.5), &json!(-1.0))
        );
        let whole = body(&messages, true);
        assert_eq!((&whole["top_k"], &whole["min_p"]), (&json!(-1), &json!(0.05)));
        assert_eq!(whole["repetition_penalty"], whole["repeat_penalty"]);
        assert_eq!(whole["stream_options"], json!({ "include_usage": true }));
        assert_eq!(whole.get("continue_final_message"), None);
        let thinking = json!({ "enable_thinking": false, "thinking": false });
        assert_eq!(whole["chat_template_kwargs"], thinking);
    }

    #[test]
    fn tools_calls_and_results_have_the_protocols_form_and_a_continued_reply_has_none() {
        let tool =
            Tool { name: "add".to_owned(), description: None, parameters: json!({ "type": "object" }) };
        let call = ToolCall { id: "call00000".to_owned(), name: "add".to_owned(), arguments: Map::new() };
        let messages = [
            message(Role::User, "Hi"),
            ChatMessage { calls: vec![call], ..message(Role::Assistant, "") },
            ChatMessage { call_id: Some("call00000".to_owned()), ..message(Role::Tool, "3") },
        ];
        let sent = |messages: &[ChatMessage], choice: ToolChoice| {
            let tools = ToolUse::of(vec![tool.clone()], choice);
            let sampling = Sampling::default();
            let question = Question {
                model: "m",
                messages,
                tools: tools.as_ref(),
                sampling: &sampling,
                max_tokens: None,
                stop: &[],
                thinking: None,
                extras: false,
                picture_url: |_| String::new(),
            };
            serde_json::to_value(Body::of(&question)).unwrap()
        };
        let body = sent(&messages, ToolChoice::Auto);
        let function = json!({ "name": "add", "arguments": "{}" });
        let called = json!([{ "id": "call00000", "type": "function", "function": function }]);
        assert_eq!(
            body["messages"],
            json!([
                { "role": "user", "content": "Hi" },
                { "role": "assistant", "content": null, "tool_calls": called },
                { "role": "tool", "content": "3", "tool_call_id": "call00000" },
            ])
        );
        let function = json!({ "name": "add", "parameters": { "type": "object" } });
        assert_eq!(body["tools"], json!([{ "type": "function", "function": function }]));
        assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&json!("auto"), &json!(true)));
        let required = sent(&messages, ToolChoice::Required);
        assert_eq!(
            (&required["tool_choice"], &required["parallel_tool_calls"]),
            (&json!("required"), &json!(false))
        );
        let named = sent(&messages, ToolChoice::Named("add".to_owned()));
        assert_eq!(named["tool_choice"]["function"]["name"], "add");
        let continued = sent(&[message(Role::User, "Hi"), message(Role::Assistant, "He")], ToolChoice::Auto);
        assert_eq!(continued.get("tools"), None);
    }

    #[test]
    fn every_extra_is_recognised_by_its_name() {
        let going_on = [message(Role::User, "Hi"), message(Role::Assistant, "He")];
        let (plain, whole) = (body(&going_on, false), body(&going_on, true));
        let extras = whole.as_object().unwrap().keys().filter(|name| plain.get(name).is_none());
        let extras: Vec<_> = extras.collect();
        assert_eq!(extras.len(), 14);
        for extra in extras {
            let detail = format!("Unrecognized request argument supplied: {extra}");
            assert_eq!(Body::extra_in(&detail), Some(extra.as_str()));
        }
        assert_eq!(Body::extra_in("temperature: expected 0 to 2"), None);
        assert_eq!(Body::extra_in("chat_template_kwargs, top_k"), Some("top_k"));
    }
}
