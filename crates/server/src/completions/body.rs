//! Bodies of requests for chat completions and completions.

use foretoken_grammar::Grammar;
use foretoken_model::token::TokenId;
use foretoken_model::{ChatMessage, Role, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Kind;
use super::tools::{ToolBody, ToolCallBody, ToolChoiceBody, tool_use};
use crate::conversation::Input;
use crate::fields::{Texts, body, max_tokens, seed, stops, top_k, unsupported, whole};
use crate::order::{MAX_CHOICES, Order, Prompt, SamplingChoices};
use crate::picture_file::{DetailBody, in_data_url};
use crate::protocol::{ParsedRequest, ReplyFormat};
use crate::refusal::Refusal;

/// Default length of a completion in the protocol, in tokens.
const COMPLETION_TOKENS: usize = 16;

/// Fields that would change the reply.
const UNSUPPORTED: [&str; 7] =
    ["audio", "best_of", "echo", "function_call", "functions", "prediction", "suffix"];

/// Most alternatives of a token whose log probabilities a chat completion has, and a completion.
const MAX_TOP: [i64; 2] = [20, 5];

/// Fields of both endpoints, and those of one.
#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Texts>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(default, deserialize_with = "whole")]
    max_tokens: Option<i64>,
    #[serde(default, deserialize_with = "whole")]
    max_completion_tokens: Option<i64>,
    temperature: Option<f32>,
    #[serde(default, deserialize_with = "whole")]
    top_k: Option<i64>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repetition_penalty: Option<f32>,
    /// llama-server's name for it; clients of several servers send both.
    repeat_penalty: Option<f32>,
    #[serde(default, deserialize_with = "whole")]
    repeat_last_n: Option<i32>,
    presence_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    /// Ids of tokens, and what is added to their logits.
    logit_bias: Option<Map<String, Value>>,
    dry_multiplier: Option<f32>,
    dry_base: Option<f32>,
    #[serde(default, deserialize_with = "whole")]
    dry_allowed_length: Option<u32>,
    #[serde(default, deserialize_with = "whole")]
    dry_penalty_last_n: Option<i32>,
    dry_sequence_breakers: Option<Vec<String>>,
    stop_loops: Option<bool>,
    #[serde(default, deserialize_with = "whole")]
    seed: Option<i128>,
    #[serde(default, deserialize_with = "whole")]
    n: Option<i64>,
    logprobs: Option<LogprobsBody>,
    #[serde(default, deserialize_with = "whole")]
    top_logprobs: Option<i64>,
    stop: Option<Texts>,
    ignore_eos: Option<bool>,
    response_format: Option<ResponseFormat>,
    /// GBNF, as llama-server names it.
    grammar: Option<String>,
    tools: Option<Vec<ToolBody>>,
    tool_choice: Option<ToolChoiceBody>,
    parallel_tool_calls: Option<bool>,
    /// Template arguments, as vLLM, SGLang and llama-server accept them.
    chat_template_kwargs: Option<TemplateArguments>,
}

/// The supported template argument: the switch for reasoning, under either or both of its names.
#[derive(Deserialize)]
struct TemplateArguments {
    enable_thinking: Option<bool>,
    thinking: Option<bool>,
}

/// Form of the reply, as in OpenAI's protocol. A schema is always kept to, whether or not it is
/// called strict.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat {
    Text,
    JsonObject,
    JsonSchema { json_schema: JsonSchema },
}

#[derive(Deserialize)]
struct JsonSchema {
    schema: Value,
}

impl ResponseFormat {
    /// The reply's grammar; `None` for any text.
    fn grammar(self) -> Option<Grammar> {
        match self {
            Self::Text => None,
            Self::JsonObject => Some(Grammar::Json),
            Self::JsonSchema { json_schema } => Some(Grammar::Schema(json_schema.schema.to_string())),
        }
    }
}

/// A switch in chat completions, a number of alternatives in completions.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected true, false or a whole number")]
enum LogprobsBody {
    Switch(bool),
    Number(i64),
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<Content>,
    tool_calls: Option<Vec<ToolCallBody>>,
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of parts of type 'text' or 'image_url'")]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Deserialize)]
struct ImageUrl {
    url: String,
    detail: Option<DetailBody>,
}

/// Parses a request for a chat completion or a completion.
///
/// # Errors
/// Returns the problem in one sentence.
pub fn read(json: &[u8], kind: Kind) -> Result<ParsedRequest, Refusal> {
    body::<Body>(json, &UNSUPPORTED)?.asked(kind)
}

impl Body {
    fn asked(self, kind: Kind) -> Result<ParsedRequest, Refusal> {
        let sampling = SamplingChoices {
            temperature: self.temperature,
            top_k: self.top_k.map(top_k),
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty.or(self.repeat_penalty),
            repeat_last_n: self.repeat_last_n,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: self.logit_bias.as_ref().map(logit_bias).transpose()?,
            dry_multiplier: self.dry_multiplier,
            dry_base: self.dry_base,
            dry_allowed_length: self.dry_allowed_length,
            dry_penalty_last_n: self.dry_penalty_last_n,
            dry_sequence_breakers: self.dry_sequence_breakers,
            stop_loops: self.stop_loops,
            seed: self.seed.and_then(seed),
        };
        let max_tokens = max_tokens(self.max_completion_tokens.or(self.max_tokens), "max_tokens")?;
        let format = self.response_format.and_then(ResponseFormat::grammar);
        if format.is_some() && kind == Kind::Text {
            return Err(unsupported("response_format"));
        }
        let tools = tool_use(self.tools, self.tool_choice, self.parallel_tool_calls)?;
        if tools.is_some() && kind == Kind::Text {
            return Err(unsupported("tools"));
        }
        let rules = self.grammar.filter(|rules| !rules.is_empty()).map(Grammar::Gbnf);
        if rules.is_some() && (format.is_some() || tools.is_some()) {
            return Err(Refusal::bad_field("grammar", "no response_format and no tools beside it"));
        }
        let grammar = format.or(rules);
        let order = match kind {
            Kind::Chat => conversation(self.messages.unwrap_or_default())?.order("messages")?,
            Kind::Text => Order::new(Prompt::Text(text(self.prompt)?)),
        };
        let logprobs = logprobs(kind, self.logprobs, self.top_logprobs)?;
        let order = Order {
            choices: choices(self.n)?,
            logprobs,
            grammar,
            tools,
            sampling,
            stop: stops(self.stop, "stop")?,
            thinking: self.chat_template_kwargs.and_then(|given| given.enable_thinking.or(given.thinking)),
            ignore_end: self.ignore_eos.unwrap_or(false),
            max_tokens: match kind {
                Kind::Chat => max_tokens,
                Kind::Text => max_tokens.or(Some(COMPLETION_TOKENS)),
            },
            ..order
        };
        let usage = self.stream_options.and_then(|options| options.include_usage);
        Ok(ParsedRequest {
            model: self.model.filter(|model| !model.is_empty()),
            order,
            streams: self.stream.unwrap_or(false),
            format: ReplyFormat::Completion {
                kind,
                streams_usage: usage.unwrap_or(false),
                logprobs: logprobs.is_some(),
            },
        })
    }
}

/// Returns the biases of a request. Their range and number are the engine's to check.
fn logit_bias(given: &Map<String, Value>) -> Result<Vec<(TokenId, f32)>, Refusal> {
    let bias = |(token, bias): (&String, &Value)| Some((token.parse().ok()?, bias.as_f64()? as f32));
    let biases: Option<Vec<(TokenId, f32)>> = given.iter().map(bias).collect();
    let mut biases = biases.ok_or_else(|| Refusal::bad_field("logit_bias", "ids of tokens with numbers"))?;
    biases.sort_unstable_by_key(|&(token, _)| token);
    // "7" and "07" are the same token.
    if biases.is_sorted_by(|left, right| left.0 < right.0) {
        return Ok(biases);
    }
    Err(Refusal::bad_field("logit_bias", "each token once"))
}

/// Returns the number of replies.
fn choices(number: Option<i64>) -> Result<usize, Refusal> {
    let choices = usize::try_from(number.unwrap_or(1)).unwrap_or(0);
    if (1..=MAX_CHOICES).contains(&choices) {
        return Ok(choices);
    }
    Err(Refusal::bad_field("n", &format!("1 to {MAX_CHOICES}")))
}

/// Returns the number of alternatives of each token; `None` for no log probabilities.
fn logprobs(kind: Kind, given: Option<LogprobsBody>, top: Option<i64>) -> Result<Option<usize>, Refusal> {
    let (field, number, most) = match (kind, given) {
        (_, None | Some(LogprobsBody::Switch(false))) => {
            return match top {
                None | Some(0) => Ok(None),
                Some(_) => Err(Refusal::bad_field("logprobs", "true where top_logprobs is given")),
            };
        }
        (Kind::Chat, Some(LogprobsBody::Switch(true))) => ("top_logprobs", top.unwrap_or(0), MAX_TOP[0]),
        (Kind::Chat, Some(LogprobsBody::Number(_))) => {
            return Err(Refusal::bad_field("logprobs", "true or false"));
        }
        (Kind::Text, Some(LogprobsBody::Number(number))) => ("logprobs", number, MAX_TOP[1]),
        (Kind::Text, Some(LogprobsBody::Switch(true))) => {
            return Err(Refusal::bad_field("logprobs", &format!("0 to {}", MAX_TOP[1])));
        }
    };
    let number = usize::try_from(number).ok().filter(|_| number <= most);
    number.map(Some).ok_or_else(|| Refusal::bad_field(field, &format!("0 to {most}")))
}

fn conversation(messages: Vec<Message>) -> Result<Input, Refusal> {
    if messages.is_empty() {
        return Err(Refusal::bad_field("messages", "a list with at least one message"));
    }
    let mut input = Input::default();
    for (at, Message { role, content, tool_calls, tool_call_id }) in messages.into_iter().enumerate() {
        let role = match role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => {
                let expected = "system, user, assistant or tool";
                return Err(Refusal::bad_field(&format!("messages[{at}].role"), expected));
            }
        };
        let field = format!("messages[{at}].tool_calls");
        let calls: Vec<ToolCall> = tool_calls
            .unwrap_or_default()
            .into_iter()
            .map(|call| call.call(&field))
            .collect::<Result<_, _>>()?;
        if !calls.is_empty() && role != Role::Assistant {
            return Err(Refusal::bad_field(&field, "a message of the assistant"));
        }
        let call_id = tool_call_id.filter(|_| role == Role::Tool);
        input.messages.push(ChatMessage { calls, call_id, ..ChatMessage::new(role, "") });
        let field = format!("messages[{at}].content");
        match content {
            Some(Content::Text(text)) => input.text(&text),
            Some(Content::Parts(parts)) => add(parts, role, &field, &mut input)?,
            None if role == Role::Assistant => {}
            None => {
                let expected = "a string, or a list of parts of type 'text' or 'image_url'";
                return Err(Refusal::bad_field(&field, expected));
            }
        }
    }
    Ok(input)
}

/// Adds parts to the last message. Only the user shows pictures.
fn add(parts: Vec<Part>, role: Role, field: &str, input: &mut Input) -> Result<(), Refusal> {
    for part in parts {
        match part {
            Part::Text { text } => input.text(&text),
            Part::ImageUrl { image_url: ImageUrl { url, detail } } if role == Role::User => {
                input.picture(in_data_url(&url, field)?, detail.unwrap_or_default().into());
            }
            Part::ImageUrl { .. } => {
                return Err(Refusal::bad_field(field, "pictures in messages of the user"));
            }
        }
    }
    Ok(())
}

fn text(prompt: Option<Texts>) -> Result<String, Refusal> {
    match prompt.map(Texts::list).as_deref() {
        Some([only]) if !only.is_empty() => Ok(only.clone()),
        _ => Err(Refusal::bad_field("prompt", "one non-empty string")),
    }
}

#[cfg(test)]
mod tests {
    use foretoken_engine::session::ToolChoice;
    use foretoken_model::Detail;
    use serde_json::json;

    use super::*;
    use crate::fields::MAX_MESSAGE;
    use crate::picture_file::PictureFile;

    fn chat(more: Value) -> Result<ParsedRequest, Refusal> {
        let mut body = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(body.to_string().as_bytes(), Kind::Chat)
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
        let plain = ReplyFormat::Completion { kind: Kind::Chat, streams_usage: false, logprobs: false };
        assert_eq!((asked.model, asked.streams, asked.format), (None, false, plain));
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
    fn penalties_biases_choices_and_log_probabilities_are_parts_of_an_order() {
        let asked = chat(json!({
            "presence_penalty": 0.5, "frequency_penalty": -1, "logit_bias": { "7": -100, "3": 2.5 }, "n": 3,
            "logprobs": true, "top_logprobs": 20,
        }))
        .unwrap();
        let order = asked.order;
        let sampling = order.sampling;
        assert_eq!((sampling.presence_penalty, sampling.frequency_penalty), (Some(0.5), Some(-1.0)));
        assert_eq!(sampling.logit_bias, Some(vec![(3, 2.5), (7, -100.0)]));
        assert_eq!((order.choices, order.logprobs), (3, Some(20)));
        let logprobs = |more: Value| chat(more).unwrap().order.logprobs;
        assert_eq!(logprobs(json!({ "logprobs": true })), Some(0));
        assert_eq!(logprobs(json!({ "logprobs": false, "top_logprobs": 0 })), None);
        let text = |logprobs: Value| {
            let body = json!({ "prompt": "a", "logprobs": logprobs }).to_string();
            read(body.as_bytes(), Kind::Text).map(|asked| asked.order.logprobs)
        };
        assert_eq!([json!(0), json!(5), Value::Null].map(text), [Ok(Some(0)), Ok(Some(5)), Ok(None)]);
        assert_eq!(message(text(json!(6)).map(|_| panic!())), "logprobs: expected 0 to 5.");
        assert_eq!(message(text(json!(true)).map(|_| panic!())), "logprobs: expected 0 to 5.");
        for (more, expected) in [
            (json!({ "n": 9 }), "n: expected 1 to 8."),
            (json!({ "n": 0 }), "n: expected 1 to 8."),
            (json!({ "n": -1 }), "n: expected 1 to 8."),
            (json!({ "top_logprobs": 3 }), "logprobs: expected true where top_logprobs is given."),
            (json!({ "logprobs": 3 }), "logprobs: expected true or false."),
            (json!({ "logprobs": true, "top_logprobs": 21 }), "top_logprobs: expected 0 to 20."),
            (json!({ "logprobs": true, "top_logprobs": -1 }), "top_logprobs: expected 0 to 20."),
            (json!({ "logit_bias": { "fox": 1 } }), "logit_bias: expected ids of tokens with numbers."),
            (json!({ "logit_bias": { "-1": 1 } }), "logit_bias: expected ids of tokens with numbers."),
            (json!({ "logit_bias": { "7": "a" } }), "logit_bias: expected ids of tokens with numbers."),
            (json!({ "logit_bias": { "7": 1, "07": 2 } }), "logit_bias: expected each token once."),
        ] {
            assert_eq!(message(chat(more)), expected);
        }
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
            ("best_of", json!(2)),
            ("functions", json!([{ "name": "f" }])),
            ("suffix", json!("a")),
            ("echo", json!(true)),
        ] {
            let refusal = chat(json!({ name: value })).unwrap_err();
            assert_eq!(refusal.json()["error"]["param"], name);
        }
    }

    #[test]
    fn a_response_format_is_a_grammar_of_the_reply() {
        let grammar = |format: Value| chat(json!({ "response_format": format })).unwrap().order.grammar;
        assert_eq!(grammar(json!({ "type": "text" })), None);
        assert_eq!(grammar(json!({ "type": "json_object" })), Some(Grammar::Json));
        let schema = json!({ "type": "object", "properties": { "z": true, "a": true } });
        let given = json!({ "name": "point", "strict": true, "schema": schema });
        let expected = r#"{"type":"object","properties":{"z":true,"a":true}}"#;
        let found = grammar(json!({ "type": "json_schema", "json_schema": given }));
        assert_eq!(found, Some(Grammar::Schema(expected.to_owned())), "properties keep their order");
        for (format, begins) in [
            (json!({ "type": "xml" }), "response_format.type: unknown variant `xml`"),
            (json!({ "type": "json_schema" }), "response_format: missing field `json_schema`"),
            (json!({ "type": "json_schema", "json_schema": {} }), "response_format: missing field `schema`"),
        ] {
            let message = message(chat(json!({ "response_format": format })));
            assert!(message.starts_with(begins), "{message}");
        }
        let body = json!({ "prompt": "a", "response_format": { "type": "json_object" } }).to_string();
        let refusal = read(body.as_bytes(), Kind::Text).unwrap_err();
        assert_eq!(refusal.json()["error"]["param"], "response_format");
    }

    #[test]
    fn a_grammar_is_one_of_llama_cpp_and_stands_alone() {
        let rules = "root ::= [a-z]+";
        let grammar = |more: Value| chat(more).map(|asked| asked.order.grammar);
        assert_eq!(grammar(json!({ "grammar": rules })), Ok(Some(Grammar::Gbnf(rules.to_owned()))));
        assert_eq!(grammar(json!({ "grammar": "" })), Ok(None));
        let tool = json!({ "type": "function", "function": { "name": "look" } });
        for more in [json!({ "response_format": { "type": "json_object" } }), json!({ "tools": [tool] })] {
            let mut more = more;
            more["grammar"] = rules.into();
            assert_eq!(message(chat(more)), "grammar: expected no response_format and no tools beside it.");
        }
    }

    #[test]
    fn some_of_the_tools_are_allowed_while_the_model_sees_all() {
        let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
        let asked = |allowed: Value| {
            let choice =
                json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": allowed } });
            chat(json!({ "tools": [tool("look"), tool("hear")], "tool_choice": choice }))
        };
        let used = asked(json!([tool("hear")])).unwrap().order.tools.unwrap();
        assert_eq!((used.tools.len(), used.choice), (2, ToolChoice::Auto));
        assert_eq!(used.allowed, Some(vec!["hear".to_owned()]));
        for allowed in [json!([]), json!([tool("see")])] {
            assert_eq!(message(asked(allowed)), "tool_choice: expected the names of some of the tools.");
        }
    }

    #[test]
    fn an_invalid_field_is_named_and_long_values_are_shortened() {
        for (more, begins) in [
            (json!({ "temperature": "hot" }), "temperature: invalid type: string \"hot\""),
            (json!({ "seed": 1.5 }), "seed: invalid type"),
            (json!({ "max_tokens": -2 }), "max_tokens: expected 1 or more."),
            (json!({ "max_tokens": 1e30 }), "max_tokens: invalid"),
            (json!({ "dry_allowed_length": -1 }), "dry_allowed_length: invalid value"),
            (json!({ "max_tokens": 0 }), "max_tokens: expected 1 or more."),
            (json!({ "max_tokens": 1.5 }), "max_tokens: invalid type"),
            (json!({ "stop": 7 }), "stop: expected a string or a list of strings"),
            (json!({ "stop": vec!["a"; 129] }), "stop: expected at most 128 strings of at most 256 bytes."),
            (json!({ "stop": "x".repeat(257) }), "stop: expected at most"),
            (json!({ "messages": [] }), "messages: expected a list with at least one message."),
            (json!({ "messages": "Hello" }), "messages: invalid type"),
            (
                json!({ "messages": [{ "role": "function", "content": "" }] }),
                "messages[0].role: expected system, user",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": null }] }),
                "messages[0].content: expected a string, or a list of parts of type 'text' or 'image_url'.",
            ),
            (json!({ "messages": [{ "role": "user" }] }), "messages[0].content: expected a string"),
            (
                json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url" }] }] }),
                "messages[0].content",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": [image("http://127.0.0.1/a.png")] }] }),
                "messages[0].content: expected a picture as data:image/...;base64,...; no address is fetched.",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": [image("data:image/png;base64,?")] }] }),
                "messages[0].content: expected a picture in Base64.",
            ),
            (
                json!({ "messages": [{ "role": "system", "content": [image(FOX)] }] }),
                "messages[0].content: expected pictures in messages of the user.",
            ),
            (
                json!({ "messages": [{ "role": "user", "content": vec![image(FOX); 17] }] }),
                "messages: expected at most 16 pictures.",
            ),
            (json!({ "stream": "x".repeat(10_000) }), "stream: invalid type"),
        ] {
            let message = message(chat(more));
            assert!(message.starts_with(begins) && message.len() < 400, "{begins}: {message}");
        }
    }

    /// A data URL of the bytes "fox".
    const FOX: &str = "data:image/png;base64,Zm94";

    fn image(url: &str) -> Value {
        json!({ "type": "image_url", "image_url": { "url": url } })
    }

    #[test]
    fn pictures_stand_at_their_places_between_texts() {
        let mut hen = image("data:image/jpeg;base64,aGVu");
        hen["image_url"]["detail"] = "high".into();
        let text = |text: &str| json!({ "type": "text", "text": text });
        let messages = json!([
            { "role": "system", "content": "Look." },
            { "role": "user", "content": [image(FOX), text("A"), hen, text("B")] },
        ]);
        let order = chat(json!({ "messages": messages })).unwrap().order;
        let Prompt::Conversation(messages) = &order.prompt else { panic!() };
        assert_eq!(messages[1].content, "AB");
        let picture =
            |at, bytes: &[u8], detail| PictureFile { message: 1, at, bytes: bytes.to_vec(), detail };
        assert_eq!(order.pictures, [picture(0, b"fox", Detail::Normal), picture(1, b"hen", Detail::High)]);
    }

    #[test]
    fn values_that_other_servers_accept_mean_the_same_here() {
        let seed = |seed: Value| chat(json!({ "seed": seed })).unwrap().order.sampling.seed;
        assert_eq!([seed(json!(-1)), seed(json!(7)), seed(json!(7.0))], [None, Some(7), Some(7)]);
        let large = [json!(1u64 << 40), json!((1u64 << 40) + 1), json!(-2), json!(u64::MAX)].map(seed);
        assert!(large.iter().all(Option::is_some), "{large:?}");
        assert_ne!(large[0], large[1]);
        let length = |length: Value| chat(json!({ "max_tokens": length })).unwrap().order.max_tokens;
        assert_eq!([length(json!(6.0)), length(json!(-1))], [Some(6), None]);
        let asked = chat(json!({ "top_k": 40.0, "repeat_last_n": 64.0, "n": 1.0 })).unwrap();
        assert_eq!((asked.order.sampling.top_k, asked.order.sampling.repeat_last_n), (Some(40), Some(64)));
        let stops = |stop: Value| chat(json!({ "stop": stop })).unwrap().order.stop;
        assert_eq!(stops(json!("")), Vec::<String>::new());
        assert_eq!(stops(json!(["", "\n"])), ["\n"]);
        assert_eq!(stops(json!(vec!["a"; 20])).len(), 20);
    }

    #[test]
    fn a_message_of_the_assistant_may_have_no_content() {
        for message in [
            json!({ "role": "assistant", "content": null }),
            json!({ "role": "assistant" }),
            json!({ "role": "assistant", "content": null, "tool_calls": [], "refusal": null }),
        ] {
            let asked = chat(json!({ "messages": [{ "role": "user", "content": "Hi" }, message] })).unwrap();
            let Prompt::Conversation(messages) = asked.order.prompt else { panic!() };
            assert_eq!((messages[1].role, messages[1].content.as_str()), (Role::Assistant, ""));
        }
    }

    #[test]
    fn calls_and_results_are_part_of_a_conversation() {
        let call = |name: &str, arguments: &str| {
            let function = json!({ "name": name, "arguments": arguments });
            json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function", "function": function }] })
        };
        let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "rain" });
        let asked = chat(json!({ "messages": [call("weather", r#"{"city": "Paris"}"#), result] })).unwrap();
        let Prompt::Conversation(messages) = asked.order.prompt else { panic!() };
        let found = &messages[0].calls[0];
        assert_eq!((found.id.as_str(), found.name.as_str()), ("c1", "weather"));
        assert_eq!(found.arguments["city"], "Paris");
        assert_eq!((messages[1].role, messages[1].call_id.as_deref()), (Role::Tool, Some("c1")));
        let no_arguments = chat(json!({ "messages": [call("weather", "")] })).unwrap();
        let Prompt::Conversation(messages) = no_arguments.order.prompt else { panic!() };
        assert!(messages[0].calls[0].arguments.is_empty());
        let user = json!({ "role": "user", "content": "", "tool_calls": call("a", "{}")["tool_calls"] });
        for (refused, begins) in [
            (call("a b", "{}"), "messages[0].tool_calls: expected names"),
            (call("a", "[]"), "messages[0].tool_calls: expected arguments"),
            (call("a", "{"), "messages[0].tool_calls: expected arguments"),
            (user, "messages[0].tool_calls: expected a message of the assistant"),
            (json!({ "role": "assistant", "tool_calls": [{}] }), "messages[0].tool_calls[0]: missing field"),
        ] {
            let message = message(chat(json!({ "messages": [refused] })));
            assert!(message.starts_with(begins), "{message}");
        }
    }

    #[test]
    fn tools_are_offered_as_the_request_chooses() {
        let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
        let with = |more: Value| {
            let mut fields = json!({ "tools": [tool("a"), tool("b")] });
            fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            chat(fields).map(|asked| asked.order.tools)
        };
        let tools = with(json!({})).unwrap().unwrap();
        assert_eq!((tools.tools.len(), tools.choice, tools.parallel), (2, ToolChoice::Auto, true));
        assert_eq!(tools.tools[0].parameters, json!({ "type": "object", "properties": {} }));
        let choice =
            |choice: Value| with(json!({ "tool_choice": choice })).map(|tools| tools.map(|of| of.choice));
        assert_eq!(choice(json!("auto")), Ok(Some(ToolChoice::Auto)));
        assert_eq!(choice(json!("none")), Ok(None));
        assert_eq!(choice(json!("required")), Ok(Some(ToolChoice::Required)));
        assert_eq!(choice(tool("b")), Ok(Some(ToolChoice::Named("b".to_owned()))));
        assert!(!with(json!({ "parallel_tool_calls": false })).unwrap().unwrap().parallel);
        let many: Vec<Value> = (0..1025).map(|number| tool(&format!("t{number}"))).collect();
        for (more, begins) in [
            (json!({ "tool_choice": tool("c") }), "tool_choice: expected the name of one of the tools."),
            (json!({ "tool_choice": "maybe" }), "tool_choice: expected none, auto, required, a function"),
            (json!({ "tools": [tool("a"), tool("a")] }), "tools: expected tools of different names."),
            (json!({ "tools": [tool("a b")] }), "tools: expected names of 1 to 128 letters"),
            (json!({ "tools": many }), "tools: expected at most 1024 tools."),
            (json!({ "tools": [{ "type": "web_search" }] }), "tools[0].type: unknown variant"),
            (json!({ "tools": [], "tool_choice": "required" }), "tools: expected at least one tool."),
            (
                json!({ "tools": [{ "type": "function", "function": { "name": "a", "parameters": 7 } }] }),
                "tools: expected parameters that are a JSON schema.",
            ),
        ] {
            let message = message(with(more).map(|_| panic!("it was accepted")));
            assert!(message.starts_with(begins), "{message}");
        }
        let body = json!({ "prompt": "a", "tools": [tool("a")] }).to_string();
        let refusal = read(body.as_bytes(), Kind::Text).unwrap_err();
        assert_eq!(refusal.json()["error"]["param"], "tools");
    }

    #[test]
    fn half_an_emoji_in_a_request_is_replaced() {
        for (text, expected) in
            [(&b"\\ud83e"[..], "\u{fffd}"), (b"\xed\xa0\xbe\xed\xb6\x8a", "\u{1f98a}"), (b"\xff", "\u{fffd}")]
        {
            let body = [b"{\"prompt\":\"", text, b"\"}"].concat();
            let asked = read(&body, Kind::Text).unwrap();
            assert_eq!(asked.order.prompt, Prompt::Text(expected.to_owned()));
        }
    }

    #[test]
    fn a_body_that_is_not_a_json_object_is_refused() {
        let text = format!("\"{}\"", "a text ".repeat(1_000));
        for body in
            ["", "{", "[]", "7", "{\"messages\": [}", &"[".repeat(100_000), "\u{0}", "{\"a\":1e999}", &text]
        {
            let message = message(read(body.as_bytes(), Kind::Chat));
            assert!(message.starts_with("The request is not valid JSON: "), "{message}");
            assert!(message.ends_with('.') && message.chars().count() <= MAX_MESSAGE + 1, "{message}");
        }
    }

    #[test]
    fn a_completion_has_one_prompt_and_the_protocols_default_length() {
        let read = |body: Value| read(body.to_string().as_bytes(), Kind::Text);
        let asked = read(json!({ "prompt": ["Once"] })).unwrap();
        assert_eq!((asked.order.prompt, asked.order.max_tokens), (Prompt::Text("Once".to_owned()), Some(16)));
        assert_eq!(read(json!({ "prompt": "a", "max_tokens": 9 })).unwrap().order.max_tokens, Some(9));
        for wrong in
            [json!({}), json!({ "prompt": "" }), json!({ "prompt": ["a", "b"] }), json!({ "prompt": [] })]
        {
            assert_eq!(message(read(wrong)), "prompt: expected one non-empty string.");
        }
        assert!(message(read(json!({ "prompt": [1, 2] }))).starts_with("prompt: expected a string"));
    }
}
