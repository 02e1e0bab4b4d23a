//! Replies as chat completions and completions, whole or in chunks. The usage counts drafted
//! tokens; `timings` repeat them with durations in llama-server's format, which many programs read.

use foretoken_engine::trace::{Finish, Summary};
use serde_json::{Map, Value, json};

use super::Kind;
use crate::format::{Format, Frame, now};
use crate::refusal::Refusal;
use crate::reply::{Added, Call, Part, Reply};
use crate::writer::Event;

/// Last event of a stream.
const DONE: &str = "[DONE]";

/// Fields common to all chunks of a reply.
pub struct CompletionFormat {
    kind: Kind,
    id: String,
    /// Seconds since 1970.
    created: u64,
    model: String,
    /// `true` if a stream ends with its usage.
    usage: bool,
}

impl CompletionFormat {
    pub fn new(kind: Kind, model: String, usage: bool) -> Self {
        let prefix = match kind {
            Kind::Chat => "chatcmpl",
            Kind::Text => "cmpl",
        };
        let id = format!("{prefix}-{:032x}", rand::random::<u128>());
        Self { kind, id, created: now(), model, usage }
    }

    /// Chunk after all text. It contains the timings unless a chunk with the usage follows.
    fn last(&self, summary: &Summary, has_called: bool) -> Frame {
        let mut piece = self.piece(match self.kind {
            Kind::Chat => json!({ "delta": {} }),
            Kind::Text => json!({ "text": "" }),
        });
        piece["choices"][0]["finish_reason"] = finish_reason(summary.finish, has_called).into();
        if !self.usage {
            piece.insert("timings".to_owned(), timings(summary));
        }
        self.frame(piece)
    }

    fn usage(&self, summary: &Summary) -> Frame {
        let mut piece = self.answer(self.piece_object(), json!([]));
        piece.insert("usage".to_owned(), usage(summary));
        piece.insert("timings".to_owned(), timings(summary));
        Frame::data(Value::from(piece))
    }

    /// Event of a chunk; if the usage comes at the end, earlier chunks have a null usage.
    fn frame(&self, mut piece: Map<String, Value>) -> Frame {
        if self.usage {
            piece.insert("usage".to_owned(), Value::Null);
        }
        Frame::data(Value::from(piece))
    }

    fn delta(&self, delta: Value) -> Frame {
        self.frame(self.piece(json!({ "delta": delta })))
    }

    fn piece(&self, choice: Value) -> Map<String, Value> {
        self.answer(self.piece_object(), json!([with_ends(choice, Value::Null)]))
    }

    fn piece_object(&self) -> &'static str {
        match self.kind {
            Kind::Chat => "chat.completion.chunk",
            Kind::Text => "text_completion",
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

impl Format for CompletionFormat {
    fn model(&self) -> &str {
        &self.model
    }

    fn whole(&mut self, reply: &Reply, summary: &Summary) -> Value {
        let (text, finish) = (reply.text(), finish_reason(summary.finish, reply.has_called()));
        let (object, choice) = match self.kind {
            Kind::Chat => ("chat.completion", json!({ "message": message(text, reply) })),
            Kind::Text => ("text_completion", json!({ "text": text })),
        };
        let mut answer = self.answer(object, json!([with_ends(choice, finish.into())]));
        answer.insert("usage".to_owned(), usage(summary));
        answer.insert("timings".to_owned(), timings(summary));
        answer.into()
    }

    fn begin(&mut self, _prompt_tokens: usize) -> Vec<Frame> {
        let is_chat = self.kind == Kind::Chat;
        is_chat.then(|| self.delta(json!({ "role": "assistant", "content": "" }))).into_iter().collect()
    }

    fn part(&mut self, reply: &Reply, added: Added, event: &Event) -> Vec<Frame> {
        let index = reply.calls().count().saturating_sub(1);
        let frame = match (event, &reply.parts()[added.index]) {
            (Event::Text(text), _) if self.kind == Kind::Text => {
                self.frame(self.piece(json!({ "text": text })))
            }
            (Event::Text(text), _) => self.delta(json!({ "content": text })),
            (Event::Call(_), Part::Call(call)) => {
                let mut json = call_json(call);
                json["index"] = index.into();
                self.delta(json!({ "tool_calls": [json] }))
            }
            (Event::Arguments(json), _) => {
                let call = json!({ "index": index, "function": { "arguments": json } });
                self.delta(json!({ "tool_calls": [call] }))
            }
            _ => return Vec::new(),
        };
        vec![frame]
    }

    fn end(&mut self, reply: &Reply, summary: &Summary) -> Vec<Frame> {
        let last = self.last(summary, reply.has_called());
        let usage = self.usage.then(|| self.usage(summary));
        [last].into_iter().chain(usage).chain([Frame::data(DONE)]).collect()
    }

    fn failed(&mut self, refusal: &Refusal) -> Frame {
        Frame::data(refusal.json())
    }
}

fn message(text: String, reply: &Reply) -> Value {
    let calls: Vec<Value> = reply.calls().map(call_json).collect();
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn call_json(Call { number, name, arguments, .. }: &Call) -> Value {
    let function = json!({ "name": name, "arguments": arguments });
    json!({ "id": format!("call_{number}"), "type": "function", "function": function })
}

/// Adds the fields at the ends of a choice.
fn with_ends(mut choice: Value, finish: Value) -> Value {
    choice["index"] = 0.into();
    choice["logprobs"] = Value::Null;
    choice["finish_reason"] = finish;
    choice
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
