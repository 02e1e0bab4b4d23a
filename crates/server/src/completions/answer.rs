//! Replies as chat completions and completions, whole or in chunks. The usage counts drafted
//! tokens; `timings` repeat them with durations in llama-server's format, which many programs read.

use foretoken_engine::trace::{Finish, Summary};
use serde_json::{Map, Value, json};

use super::Kind;
use crate::format::{Format, Frame, now};
use crate::logprob::Logprob;
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
    /// `true` if the reply has log probabilities.
    logprobs: bool,
    /// Index of the reply in a stream, number of its log probabilities that were sent, and the
    /// length of their texts in characters.
    choice: usize,
    sent: usize,
    offset: usize,
}

impl CompletionFormat {
    pub fn new(kind: Kind, model: String, usage: bool, logprobs: bool) -> Self {
        let prefix = match kind {
            Kind::Chat => "chatcmpl",
            Kind::Text => "cmpl",
        };
        let id = format!("{prefix}-{:032x}", rand::random::<u128>());
        let (choice, sent, offset) = (0, 0, 0);
        Self { kind, id, created: now(), model, usage, logprobs, choice, sent, offset }
    }

    /// Chunk after all text.
    fn last(&mut self, reply: &Reply, finish: Finish) -> Map<String, Value> {
        let choice = match self.kind {
            Kind::Chat => json!({ "delta": {} }),
            Kind::Text => json!({ "text": "" }),
        };
        let mut piece = self.with_logprobs(reply, choice);
        piece["choices"][0]["finish_reason"] = finish_reason(finish, reply.has_called()).into();
        piece
    }

    /// Chunk with the log probabilities that were not sent yet.
    fn with_logprobs(&mut self, reply: &Reply, choice: Value) -> Map<String, Value> {
        let mut piece = self.piece(choice);
        let new = &reply.logprobs()[self.sent..];
        if self.logprobs && !new.is_empty() {
            piece["choices"][0]["logprobs"] = logprobs(self.kind, new, &mut self.offset);
            self.sent += new.len();
        }
        piece
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

    /// Chunk that begins a reply, if there is one.
    fn first(&self) -> Option<Frame> {
        (self.kind == Kind::Chat).then(|| self.delta(json!({ "role": "assistant", "content": "" })))
    }

    fn piece(&self, choice: Value) -> Map<String, Value> {
        self.answer(self.piece_object(), json!([with_ends(choice, self.choice, Value::Null)]))
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

impl CompletionFormat {
    /// Complete reply `index`.
    fn choice(&self, index: usize, reply: &Reply, finish: Finish) -> Value {
        let choice = match self.kind {
            Kind::Chat => json!({ "message": message(reply.text(), reply) }),
            Kind::Text => json!({ "text": reply.text() }),
        };
        let mut choice = with_ends(choice, index, finish_reason(finish, reply.has_called()).into());
        if self.logprobs {
            choice["logprobs"] = logprobs(self.kind, reply.logprobs(), &mut 0);
        }
        choice
    }
}

impl Format for CompletionFormat {
    fn model(&self) -> &str {
        &self.model
    }

    fn whole(&mut self, replies: &[(Reply, Finish)], summary: &Summary) -> Value {
        let choices: Vec<Value> =
            replies.iter().enumerate().map(|(at, (reply, finish))| self.choice(at, reply, *finish)).collect();
        let object = match self.kind {
            Kind::Chat => "chat.completion",
            Kind::Text => "text_completion",
        };
        let mut answer = self.answer(object, choices.into());
        answer.insert("usage".to_owned(), usage(summary));
        answer.insert("timings".to_owned(), timings(summary));
        answer.into()
    }

    fn begin(&mut self, _prompt_tokens: usize) -> Vec<Frame> {
        self.first().into_iter().collect()
    }

    fn part(&mut self, reply: &Reply, added: Added, event: &Event) -> Vec<Frame> {
        let index = reply.calls().count().saturating_sub(1);
        let frame = match (event, &reply.parts()[added.index]) {
            (Event::Text(text), _) => {
                let choice = match self.kind {
                    Kind::Chat => json!({ "delta": { "content": text } }),
                    Kind::Text => json!({ "text": text }),
                };
                let piece = self.with_logprobs(reply, choice);
                self.frame(piece)
            }
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

    fn next(&mut self, reply: &Reply, finish: Finish) -> Vec<Frame> {
        let last = self.last(reply, finish);
        let last = self.frame(last);
        (self.choice, self.sent, self.offset) = (self.choice + 1, 0, 0);
        [last].into_iter().chain(self.first()).collect()
    }

    /// The last chunk contains the timings unless one with the usage follows.
    fn end(&mut self, reply: &Reply, summary: &Summary) -> Vec<Frame> {
        let mut last = self.last(reply, summary.finish);
        if !self.usage {
            last.insert("timings".to_owned(), timings(summary));
        }
        let usage = self.usage.then(|| self.usage(summary));
        [self.frame(last)].into_iter().chain(usage).chain([Frame::data(DONE)]).collect()
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
fn with_ends(mut choice: Value, index: usize, finish: Value) -> Value {
    choice["index"] = index.into();
    choice["logprobs"] = Value::Null;
    choice["finish_reason"] = finish;
    choice
}

/// Log probabilities in the endpoint's form. `offset` is the length of the texts before them in
/// characters, which goes on.
fn logprobs(kind: Kind, found: &[Logprob], offset: &mut usize) -> Value {
    if kind == Kind::Chat {
        return json!({ "content": found.iter().map(Logprob::json).collect::<Vec<Value>>(), "refusal": null });
    }
    let texts: Vec<String> = found.iter().map(Logprob::text).collect();
    let mut place = |text: &String| std::mem::replace(offset, *offset + text.chars().count());
    let offsets: Vec<usize> = texts.iter().map(&mut place).collect();
    let top = |found: &Logprob| {
        found.top.iter().map(|one| (one.text(), one.logprob.into())).collect::<Map<String, Value>>()
    };
    json!({
        "tokens": texts,
        "token_logprobs": found.iter().map(|one| one.logprob).collect::<Vec<f32>>(),
        "top_logprobs": found.iter().map(top).collect::<Vec<_>>(),
        "text_offset": offsets,
    })
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
