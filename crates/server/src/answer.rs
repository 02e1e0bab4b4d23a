//! Replies as the protocol's JSON, whole or in chunks. The usage counts drafted tokens; `timings`
//! repeat them with durations in llama-server's format, which many programs read.

use std::time::{SystemTime, UNIX_EPOCH};

use foretoken_engine::trace::{Finish, Summary};
use serde_json::{Map, Value, json};

use crate::body::Endpoint;
use crate::writer::Event;

/// Calls of a reply so far.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

/// Call in a reply.
#[derive(Debug)]
pub struct Call {
    id: String,
    name: String,
    /// JSON of the arguments so far.
    arguments: String,
    is_complete: bool,
}

impl Calls {
    /// Goes on with an event.
    pub fn extend(&mut self, event: &Event) {
        match (event, self.0.last_mut()) {
            (Event::Call(name), _) => self.0.push(Call::new(name)),
            (Event::Arguments(json), Some(last)) => last.arguments.push_str(json),
            (Event::CallEnded, Some(last)) => last.is_complete = true,
            _ => {}
        }
    }

    /// The last call, with its index in the reply.
    pub fn last(&self) -> Option<(usize, &Call)> {
        self.0.iter().enumerate().next_back()
    }

    /// Returns whether there are calls and none was cut.
    pub fn are_complete(&self) -> bool {
        self.0.last().is_some_and(|call| call.is_complete)
    }
}

impl Call {
    fn new(name: &str) -> Self {
        let id = format!("call_{:024x}", rand::random::<u128>() >> 32);
        Self { id, name: name.to_owned(), arguments: String::new(), is_complete: false }
    }

    fn json(&self) -> Value {
        let Self { id, name, arguments, .. } = self;
        json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
    }
}

/// Fields common to all chunks of a reply.
pub struct Head {
    endpoint: Endpoint,
    id: String,
    /// Seconds since 1970.
    created: u64,
    model: String,
}

impl Head {
    pub fn new(endpoint: Endpoint, model: String) -> Self {
        let prefix = match endpoint {
            Endpoint::Chat => "chatcmpl",
            Endpoint::Completion => "cmpl",
        };
        let id = format!("{prefix}-{:032x}", rand::random::<u128>());
        Self { endpoint, id, created: now(), model }
    }

    /// Name of the model that replies.
    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn whole(&self, text: &str, calls: &Calls, summary: &Summary) -> Value {
        let finish = finish_reason(summary.finish, calls.are_complete());
        let choice = match self.endpoint {
            Endpoint::Chat => {
                let mut message = json!({ "role": "assistant", "content": text, "refusal": null });
                if !calls.0.is_empty() {
                    message["tool_calls"] = calls.0.iter().map(Call::json).collect();
                    if text.is_empty() {
                        message["content"] = Value::Null;
                    }
                }
                json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish })
            }
            Endpoint::Completion => {
                json!({ "index": 0, "text": text, "logprobs": null, "finish_reason": finish })
            }
        };
        let object = match self.endpoint {
            Endpoint::Chat => "chat.completion",
            Endpoint::Completion => "text_completion",
        };
        let mut answer = self.answer(object, json!([choice]));
        answer.insert("usage".to_owned(), usage(summary));
        answer.insert("timings".to_owned(), timings(summary));
        answer.into()
    }

    /// Returns the chunk before all text, if the endpoint has one.
    pub fn begin(&self) -> Option<Map<String, Value>> {
        let delta = json!({ "role": "assistant", "content": "" });
        (self.endpoint == Endpoint::Chat).then(|| self.piece(json!({ "delta": delta })))
    }

    pub fn text(&self, text: &str) -> Map<String, Value> {
        self.piece(match self.endpoint {
            Endpoint::Chat => json!({ "delta": { "content": text } }),
            Endpoint::Completion => json!({ "text": text }),
        })
    }

    /// Returns the chunk that begins the call `index` of a reply.
    pub fn call(&self, index: usize, call: &Call) -> Map<String, Value> {
        let mut call = call.json();
        call["index"] = index.into();
        self.piece(json!({ "delta": { "tool_calls": [call] } }))
    }

    /// Returns a chunk that goes on with the arguments of the call `index`.
    pub fn arguments(&self, index: usize, json: &str) -> Map<String, Value> {
        let call = json!({ "index": index, "function": { "arguments": json } });
        self.piece(json!({ "delta": { "tool_calls": [call] } }))
    }

    /// Returns the chunk after all text. It contains the timings unless a chunk with the usage
    /// follows.
    pub fn end(&self, summary: &Summary, has_called: bool, usage_follows: bool) -> Map<String, Value> {
        let mut piece = self.piece(match self.endpoint {
            Endpoint::Chat => json!({ "delta": {} }),
            Endpoint::Completion => json!({ "text": "" }),
        });
        piece["choices"][0]["finish_reason"] = finish_reason(summary.finish, has_called).into();
        if !usage_follows {
            piece.insert("timings".to_owned(), timings(summary));
        }
        piece
    }

    pub fn usage(&self, summary: &Summary) -> Map<String, Value> {
        let mut piece = self.answer(self.piece_object(), json!([]));
        piece.insert("usage".to_owned(), usage(summary));
        piece.insert("timings".to_owned(), timings(summary));
        piece
    }

    fn piece(&self, mut choice: Value) -> Map<String, Value> {
        choice["index"] = 0.into();
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = Value::Null;
        self.answer(self.piece_object(), json!([choice]))
    }

    fn piece_object(&self) -> &'static str {
        match self.endpoint {
            Endpoint::Chat => "chat.completion.chunk",
            Endpoint::Completion => "text_completion",
        }
    }

    fn answer(&self, object: &str, choices: Value) -> Map<String, Value> {
        let fields = [
            ("id", self.id.as_str().into()),
            ("object", object.into()),
            ("created", self.created.into()),
            ("model", self.model.as_str().into()),
            ("choices", choices),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
    }
}

/// Returns a model's entry in the list of models.
pub fn model(name: &str) -> Value {
    json!({ "id": name, "object": "model", "created": now(), "owned_by": "foretoken" })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn finish_reason(finish: Finish, has_called: bool) -> &'static str {
    match finish {
        Finish::Stop if has_called => "tool_calls",
        Finish::Stop | Finish::Cancelled => "stop",
        // The protocol has no finish reason for loops; "length" says that the reply is incomplete.
        Finish::Length | Finish::ContextFull | Finish::Repeating => "length",
    }
}

fn usage(summary: &Summary) -> Value {
    json!({
        "prompt_tokens": summary.prompt_tokens,
        "completion_tokens": summary.tokens,
        "total_tokens": summary.prompt_tokens + summary.tokens,
        "prompt_tokens_details": { "cached_tokens": summary.reused_tokens },
        "drafted": summary.drafted,
        "judged": summary.judged,
        "accepted": summary.accepted,
        "speedup": summary.speedup.map(|speedup| speedup.factor),
        "saved_ms": summary.speedup.map(|speedup| speedup.saved_ms),
    })
}

/// Timings in llama-server's format. The prompt's time ends with the first round.
fn timings(summary: &Summary) -> Value {
    json!({
        "cache_n": summary.reused_tokens,
        "prompt_n": summary.prompt_tokens - summary.reused_tokens,
        "prompt_ms": summary.ttft_ms,
        "predicted_n": summary.tokens,
        "predicted_ms": summary.elapsed_ms - summary.ttft_ms,
        "predicted_per_second": summary.tokens_per_second,
        "draft_n": summary.drafted,
        "draft_n_accepted": summary.accepted,
    })
}
