//! Format of a reply in a protocol, whole or as events of a stream.

use std::time::{SystemTime, UNIX_EPOCH};

use foretoken_engine::trace::{Finish, Summary};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::reply::{Added, Reply};
use crate::writer::Event;

/// See the module. One value formats one reply.
pub trait Format: Send {
    /// Name of the model that replies.
    fn model(&self) -> &str;

    /// Returns the complete replies, at least one, with the reasons of their ends.
    fn whole(&mut self, replies: &[(Reply, Finish)], summary: &Summary) -> Value;

    /// Returns the events before all parts, for a prompt of `prompt_tokens` tokens.
    fn begin(&mut self, prompt_tokens: usize) -> Vec<Frame>;

    /// Returns the events for one that was `added` to `reply`.
    fn part(&mut self, reply: &Reply, added: Added, event: &Event) -> Vec<Frame>;

    /// Returns the events between a complete reply and the next one of the order.
    fn next(&mut self, _reply: &Reply, _finish: Finish) -> Vec<Frame> {
        Vec::new()
    }

    /// Returns the events after all parts.
    fn end(&mut self, reply: &Reply, summary: &Summary) -> Vec<Frame>;

    /// Returns the event for a failure after the beginning.
    fn failed(&mut self, refusal: &Refusal) -> Frame;

    /// Event while nothing is written; `None` for a comment.
    fn ping(&self) -> Option<Frame> {
        None
    }
}

/// Event of a stream.
#[derive(Debug, PartialEq)]
pub struct Frame {
    /// Name of the event, in protocols whose events have one.
    pub name: Option<&'static str>,
    pub data: String,
}

impl Frame {
    /// Event without a name.
    pub fn data(data: impl ToString) -> Self {
        Self { name: None, data: data.to_string() }
    }

    /// Event whose JSON repeats its name as `type`.
    pub fn named(name: &'static str, mut json: Value) -> Self {
        json["type"] = name.into();
        Self { name: Some(name), data: json.to_string() }
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
