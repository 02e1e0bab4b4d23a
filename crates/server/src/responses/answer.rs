//! Replies as responses, whole or as events.

use std::ops::Range;

use foretoken_engine::trace::{Finish, Summary};
use serde_json::{Map, Value, json};

use super::tools::{KnownTool, KnownTools, custom_input};
use crate::format::{Format, Frame, now};
use crate::logprob::Logprob;
use crate::refusal::Refusal;
use crate::reply::{Added, Call, Part, Reply};
use crate::writer::Event;

/// Parts of a request that its response repeats.
#[derive(Debug, PartialEq)]
pub struct Echo {
    pub fields: Map<String, Value>,
    pub tools: KnownTools,
}

impl Echo {
    /// Fields of a request that its response repeats, with their defaults.
    pub fn of(fields: &Map<String, Value>) -> Map<String, Value> {
        let repeated = [
            ("instructions", Value::Null),
            ("max_output_tokens", Value::Null),
            ("metadata", json!({})),
            ("parallel_tool_calls", json!(true)),
            ("reasoning", Value::Null),
            ("temperature", Value::Null),
            ("text", json!({ "format": { "type": "text" } })),
            ("tool_choice", json!("auto")),
            ("tools", json!([])),
            ("top_logprobs", json!(0)),
            ("top_p", Value::Null),
        ];
        let given = |name: &str| fields.get(name).filter(|value| !value.is_null()).cloned();
        repeated
            .map(|(name, default)| (name.to_owned(), given(name).unwrap_or(default)))
            .into_iter()
            .collect()
    }
}

/// Fields of a response, and the number of its next event; see [`Format`].
pub struct ResponseFormat {
    /// Random part of all ids.
    number: String,
    created: u64,
    model: String,
    echo: Echo,
    next: u64,
    /// Number of log probabilities that were sent.
    sent: usize,
}

/// State of an item or a response.
#[derive(Clone, Copy)]
enum Status {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
        }
    }

    fn of(finish: Finish) -> Self {
        match finish {
            Finish::Stop | Finish::Cancelled => Self::Completed,
            Finish::Length | Finish::ContextFull | Finish::Repeating => Self::Incomplete,
        }
    }
}

impl ResponseFormat {
    pub fn new(model: String, echo: Echo) -> Self {
        let number = format!("{:032x}", rand::random::<u128>());
        Self { number, created: now(), model, echo, next: 0, sent: 0 }
    }

    /// Event with its number.
    fn event(&mut self, name: &'static str, mut json: Value) -> Frame {
        json["sequence_number"] = self.next.into();
        self.next += 1;
        Frame::named(name, json)
    }

    fn response(&self, status: Status, output: Vec<Value>, usage: Value) -> Value {
        let mut response = self.echo.fields.clone();
        let incomplete = json!({ "reason": "max_output_tokens" });
        let fields = [
            ("id", format!("resp_{}", self.number).into()),
            ("object", "response".into()),
            ("created_at", self.created.into()),
            ("status", status.name().into()),
            ("error", Value::Null),
            ("incomplete_details", if let Status::Incomplete = status { incomplete } else { Value::Null }),
            ("model", self.model.as_str().into()),
            ("output", output.into()),
            ("previous_response_id", Value::Null),
            ("store", false.into()),
            ("usage", usage),
        ];
        response.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        response.into()
    }

    fn item_id(&self, part: &Part, index: usize) -> String {
        let prefix = match part {
            Part::Thinking(_) => "rs",
            Part::Text(_) => "msg",
            Part::Call(call) if self.known(call).is_some_and(|tool| tool.is_custom) => "ctc",
            Part::Call(_) => "fc",
        };
        format!("{prefix}_{}_{index}", self.number)
    }

    fn known(&self, call: &Call) -> Option<&KnownTool> {
        self.echo.tools.get(&call.name)
    }

    /// Item of a part; one in progress has no content yet.
    fn item(&self, reply: &Reply, index: usize, status: Status) -> Value {
        let part = &reply.parts()[index];
        let is_open = matches!(status, Status::InProgress);
        let content = |text: &str| {
            if is_open {
                json!([])
            } else {
                json!([content(part, text, &logprobs(reply, reply.span(index)))])
            }
        };
        let mut item = match part {
            Part::Thinking(text) => {
                json!({ "type": "reasoning", "summary": [], "content": content(text) })
            }
            Part::Text(text) => {
                json!({ "type": "message", "role": "assistant", "content": content(text) })
            }
            Part::Call(call) => self.call(call, is_open),
        };
        item["id"] = self.item_id(part, index).into();
        item["status"] = match part {
            Part::Call(call) if !call.is_complete && !is_open => Status::Incomplete,
            _ => status,
        }
        .name()
        .into();
        item
    }

    fn call(&self, call: &Call, is_open: bool) -> Value {
        let known = self.known(call);
        let arguments = if is_open { "" } else { &call.arguments };
        let mut item = match known {
            Some(tool) if tool.is_custom => {
                json!({ "type": "custom_tool_call", "input": custom_input(arguments) })
            }
            _ => json!({ "type": "function_call", "arguments": arguments }),
        };
        item["call_id"] = format!("call_{}", call.number).into();
        item["name"] = known.map_or(&call.name, |tool| &tool.name).as_str().into();
        if let Some(namespace) = known.and_then(|tool| tool.namespace.as_deref()) {
            item["namespace"] = namespace.into();
        }
        item
    }

    /// Items of a complete reply.
    fn items(&self, reply: &Reply, summary: &Summary) -> Vec<Value> {
        let last = reply.parts().len().saturating_sub(1);
        let item = |index| {
            let status = if index == last { Status::of(summary.finish) } else { Status::Completed };
            self.item(reply, index, status)
        };
        (0..reply.parts().len()).map(item).collect()
    }

    /// Events that begin a part.
    fn open(&mut self, reply: &Reply, index: usize) -> Vec<Frame> {
        let part = &reply.parts()[index];
        let item = self.item(reply, index, Status::InProgress);
        let added = json!({ "output_index": index, "item": item });
        let mut frames = vec![self.event("response.output_item.added", added)];
        if !matches!(part, Part::Call(_)) {
            let added = self.of_content(part, index, json!({ "part": content(part, "", &json!([])) }));
            frames.push(self.event("response.content_part.added", added));
        }
        frames
    }

    /// Events that end a part.
    fn close(&mut self, reply: &Reply, index: usize, status: Status) -> Vec<Frame> {
        let part = &reply.parts()[index];
        let mut frames = Vec::new();
        match part {
            Part::Thinking(text) | Part::Text(text) => {
                let logprobs = logprobs(reply, reply.span(index));
                let done = with_logprobs(part, json!({ "text": text }), &logprobs);
                let done = self.of_content(part, index, done);
                let is_text = matches!(part, Part::Text(_));
                let name = if is_text { "response.output_text.done" } else { "response.reasoning_text.done" };
                frames.push(self.event(name, done));
                let done = self.of_content(part, index, json!({ "part": content(part, text, &logprobs) }));
                frames.push(self.event("response.content_part.done", done));
            }
            Part::Call(call) if self.known(call).is_some_and(|tool| tool.is_custom) => {
                let input = custom_input(&call.arguments);
                let delta = self.of_item(part, index, json!({ "delta": input }));
                frames.push(self.event("response.custom_tool_call_input.delta", delta));
                let done = self.of_item(part, index, json!({ "input": input }));
                frames.push(self.event("response.custom_tool_call_input.done", done));
            }
            Part::Call(call) => {
                let name = self.known(call).map_or(&call.name, |tool| &tool.name);
                let done = json!({ "arguments": call.arguments, "name": name });
                let done = self.of_item(part, index, done);
                frames.push(self.event("response.function_call_arguments.done", done));
            }
        }
        let item = self.item(reply, index, status);
        frames.push(self.event("response.output_item.done", json!({ "output_index": index, "item": item })));
        frames
    }

    fn of_item(&self, part: &Part, index: usize, mut json: Value) -> Value {
        json["item_id"] = self.item_id(part, index).into();
        json["output_index"] = index.into();
        json
    }

    fn of_content(&self, part: &Part, index: usize, json: Value) -> Value {
        let mut json = self.of_item(part, index, json);
        json["content_index"] = 0.into();
        json
    }
}

impl Format for ResponseFormat {
    fn model(&self) -> &str {
        &self.model
    }

    fn whole(&mut self, replies: &[(Reply, Finish)], summary: &Summary) -> Value {
        let Some((reply, _)) = replies.first() else { return Value::Null };
        self.response(Status::of(summary.finish), self.items(reply, summary), usage(reply, summary))
    }

    fn begin(&mut self, _prompt_tokens: usize) -> Vec<Frame> {
        let response = self.response(Status::InProgress, Vec::new(), Value::Null);
        ["response.created", "response.in_progress"]
            .map(|name| self.event(name, json!({ "response": response })))
            .into()
    }

    fn part(&mut self, reply: &Reply, Added { index, begins }: Added, event: &Event) -> Vec<Frame> {
        let part = &reply.parts()[index];
        let mut frames = Vec::new();
        if begins {
            if let Some(before) = index.checked_sub(1) {
                frames.extend(self.close(reply, before, Status::Completed));
            }
            frames.extend(self.open(reply, index));
        }
        let is_custom =
            matches!(part, Part::Call(call) if self.known(call).is_some_and(|tool| tool.is_custom));
        let delta = match event {
            Event::Thinking(delta) => {
                let delta = self.of_content(part, index, json!({ "delta": delta }));
                self.event("response.reasoning_text.delta", delta)
            }
            Event::Text(delta) => {
                let span = reply.span(index);
                let new = logprobs(reply, self.sent.clamp(span.start, span.end)..span.end);
                self.sent = span.end;
                let delta = with_logprobs(part, json!({ "delta": delta }), &new);
                let delta = self.of_content(part, index, delta);
                self.event("response.output_text.delta", delta)
            }
            Event::Arguments(delta) if !is_custom => {
                let delta = self.of_item(part, index, json!({ "delta": delta }));
                self.event("response.function_call_arguments.delta", delta)
            }
            // The input of a custom tool is read from its complete arguments.
            _ => return frames,
        };
        frames.push(delta);
        frames
    }

    fn end(&mut self, reply: &Reply, summary: &Summary) -> Vec<Frame> {
        let status = Status::of(summary.finish);
        let mut frames = Vec::new();
        if let Some(last) = reply.parts().len().checked_sub(1) {
            frames.extend(self.close(reply, last, status));
        }
        let response = self.response(status, self.items(reply, summary), usage(reply, summary));
        let name = match status {
            Status::Incomplete => "response.incomplete",
            _ => "response.completed",
        };
        frames.push(self.event(name, json!({ "response": response })));
        frames
    }

    fn failed(&mut self, refusal: &Refusal) -> Frame {
        let mut response = self.response(Status::Failed, Vec::new(), Value::Null);
        response["error"] = json!({ "code": "server_error", "message": refusal.message() });
        self.event("response.failed", json!({ "response": response }))
    }
}

/// Log probabilities in this range of those of a reply.
fn logprobs(reply: &Reply, range: Range<usize>) -> Value {
    reply.logprobs()[range].iter().map(Logprob::json).collect()
}

/// Content of a part that is text.
fn content(part: &Part, text: &str, logprobs: &Value) -> Value {
    match part {
        Part::Thinking(_) => json!({ "type": "reasoning_text", "text": text }),
        _ => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": logprobs }),
    }
}

/// Adds the field that events of text have beyond those of reasoning.
fn with_logprobs(part: &Part, mut json: Value, logprobs: &Value) -> Value {
    if let Part::Text(_) = part {
        json["logprobs"] = logprobs.clone();
    }
    json
}

fn usage(reply: &Reply, summary: &Summary) -> Value {
    json!({
        "input_tokens": summary.prompt_tokens,
        "input_tokens_details": { "cached_tokens": summary.reused_tokens, "cache_write_tokens": 0 },
        "output_tokens": summary.tokens,
        "output_tokens_details": { "reasoning_tokens": reply.thinking_tokens() },
        "total_tokens": summary.prompt_tokens + summary.tokens,
    })
}
