//! Replies as messages, whole or as events.

use foretoken_engine::trace::{Finish, Summary};
use serde_json::{Map, Value, json};

use crate::format::{Format, Frame};
use crate::refusal::Refusal;
use crate::reply::{Added, Call, Part, Reply};
use crate::writer::Event;

/// Fields of a message; see [`Format`].
pub struct MessageFormat {
    id: String,
    model: String,
}

impl MessageFormat {
    pub fn new(model: String) -> Self {
        Self { id: format!("msg_{:032x}", rand::random::<u128>()), model }
    }

    /// Message with this content, whose end is still open.
    fn message(&self, content: Vec<Value>, usage: Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        })
    }

    /// Events before block `index`: the end of the one before it, and its own beginning.
    fn block(part: &Part, index: usize) -> Vec<Frame> {
        let block = match part {
            Part::Thinking(_) => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            Part::Text(_) => json!({ "type": "text", "text": "" }),
            Part::Call(call) => use_of_tool(call, json!({})),
        };
        let start = Frame::named("content_block_start", json!({ "index": index, "content_block": block }));
        index.checked_sub(1).map(stop).into_iter().chain([start]).collect()
    }
}

impl Format for MessageFormat {
    fn model(&self) -> &str {
        &self.model
    }

    fn whole(&mut self, replies: &[(Reply, Finish)], summary: &Summary) -> Value {
        let Some((reply, _)) = replies.first() else { return Value::Null };
        let content = reply.parts().iter().map(content).collect();
        let mut message = self.message(content, usage(summary));
        message["stop_reason"] = stop_reason(reply, summary).into();
        message["stop_sequence"] = reply.stop().into();
        message
    }

    fn begin(&mut self, prompt_tokens: usize) -> Vec<Frame> {
        let usage = json!({ "input_tokens": prompt_tokens, "output_tokens": 0 });
        vec![Frame::named("message_start", json!({ "message": self.message(Vec::new(), usage) }))]
    }

    fn part(&mut self, reply: &Reply, Added { index, begins }: Added, event: &Event) -> Vec<Frame> {
        let begin = begins.then(|| Self::block(&reply.parts()[index], index));
        let delta = match event {
            Event::Thinking(text) => json!({ "type": "thinking_delta", "thinking": text }),
            Event::Text(text) => json!({ "type": "text_delta", "text": text }),
            Event::Arguments(json) => json!({ "type": "input_json_delta", "partial_json": json }),
            _ => return begin.unwrap_or_default(),
        };
        let delta = Frame::named("content_block_delta", json!({ "index": index, "delta": delta }));
        begin.into_iter().flatten().chain([delta]).collect()
    }

    fn end(&mut self, reply: &Reply, summary: &Summary) -> Vec<Frame> {
        let last = reply.parts().len().checked_sub(1).map(stop);
        let delta = json!({ "stop_reason": stop_reason(reply, summary), "stop_sequence": reply.stop() });
        let delta = Frame::named("message_delta", json!({ "delta": delta, "usage": usage(summary) }));
        last.into_iter().chain([delta, Frame::named("message_stop", json!({}))]).collect()
    }

    fn failed(&mut self, refusal: &Refusal) -> Frame {
        Frame::named("error", refusal.message_json())
    }

    fn ping(&self) -> Option<Frame> {
        Some(Frame::named("ping", json!({})))
    }
}

fn stop(index: usize) -> Frame {
    Frame::named("content_block_stop", json!({ "index": index }))
}

fn content(part: &Part) -> Value {
    match part {
        Part::Thinking(thinking) => json!({ "type": "thinking", "thinking": thinking, "signature": "" }),
        Part::Text(text) => json!({ "type": "text", "text": text }),
        // A call that was cut has no arguments that could be read.
        Part::Call(call) => {
            let input: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
            use_of_tool(call, input.into())
        }
    }
}

fn use_of_tool(Call { number, name, .. }: &Call, input: Value) -> Value {
    json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input })
}

fn stop_reason(reply: &Reply, summary: &Summary) -> &'static str {
    match summary.finish {
        Finish::Stop if reply.stop().is_some() => "stop_sequence",
        Finish::Stop if reply.has_called() => "tool_use",
        Finish::Stop | Finish::Cancelled => "end_turn",
        Finish::ContextFull => "model_context_window_exceeded",
        // The protocol has no reason for loops; this one says that the reply is incomplete.
        Finish::Length | Finish::Repeating => "max_tokens",
    }
}

/// Tokens of the prompt that were computed, those from the cache, and those of the reply.
fn usage(summary: &Summary) -> Value {
    json!({
        "input_tokens": summary.prompt_tokens - summary.reused_tokens,
        "cache_read_input_tokens": summary.reused_tokens,
        "output_tokens": summary.tokens,
    })
}
