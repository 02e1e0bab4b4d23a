//! A reply while it comes, and its numbers.

use std::time::Instant;

use foretoken_engine::trace::Finish;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::Events;
use crate::piece::Piece;
use crate::usage::{Drafts, Usage};

/// Bytes of a reply at most: longer than any model writes, and not enough to take all memory.
const MAX_TEXT: usize = 16 << 20;

/// What is heard of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The server is at work. Comes before any text.
    Started,
    /// The server refused the fields that are not OpenAI's own, and took the question without them.
    WithoutExtras,
    /// What the model thinks before it replies, where the server tells it apart.
    Thinking(&'a str),
    Text(&'a str),
}

/// A reply that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub finish: Finish,
    /// As the server says, where that can be true.
    pub usage: Option<Usage>,
    pub drafts: Option<Drafts>,
    /// From the question to the first text, as measured here; `None` where no text came.
    pub ttft_ms: Option<f64>,
    /// From the question to the end, as measured here.
    pub elapsed_ms: f64,
}

/// Takes what comes of a reply.
pub struct Listener<'a> {
    on: &'a mut dyn FnMut(Heard<'_>),
    events: Events,
    asked: Instant,
    first: Option<Instant>,
    last: Instant,
    started: bool,
    /// Bytes of text and of thinking.
    bytes: usize,
    finish: Option<Finish>,
    done: bool,
    usage: Value,
    timings: Value,
    metrics: Value,
}

impl<'a> Listener<'a> {
    pub fn new(on: &'a mut dyn FnMut(Heard<'_>)) -> Self {
        let now = Instant::now();
        Self {
            on,
            events: Events::default(),
            asked: now,
            first: None,
            last: now,
            started: false,
            bytes: 0,
            finish: None,
            done: false,
            usage: Value::Null,
            timings: Value::Null,
            metrics: Value::Null,
        }
    }

    /// The server is at work; said once.
    pub fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            (self.on)(Heard::Started);
        }
    }

    /// Whether text has come.
    pub fn has_text(&self) -> bool {
        self.first.is_some()
    }

    /// Whether the reply ended; its numbers may still come.
    pub fn has_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The question was taken without its extras.
    pub fn leave_out_extras(&mut self) {
        (self.on)(Heard::WithoutExtras);
    }

    /// Whether the server said that nothing more comes.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// # Errors
    /// What the server says of itself, and what cannot be understood.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.with_events(|events, on| events.take(bytes, on))
    }

    /// After the last byte.
    ///
    /// # Errors
    /// `Error::Cut` unless the reply had ended.
    pub fn end(&mut self) -> Result<Finish> {
        if !self.done {
            self.with_events(Events::finish)?;
        }
        // Some end with the last word of the protocol alone, others without it.
        self.finish.or(self.done.then_some(Finish::Stop)).ok_or(Error::Cut)
    }

    fn with_events(
        &mut self,
        work: impl FnOnce(&mut Events, &mut dyn FnMut(&str) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let outcome = work(&mut events, &mut |data| self.hear(data));
        self.events = events;
        outcome
    }

    fn hear(&mut self, data: &str) -> Result<()> {
        if self.done || data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let piece = Piece::read(data)?;
        self.bytes += piece.thinking.len() + piece.text.len();
        if self.bytes > MAX_TEXT {
            return Err(Error::TooLarge("a reply without end"));
        }
        let said = [Heard::Thinking(&piece.thinking), Heard::Text(&piece.text)];
        for heard in said.into_iter().filter(|heard| !matches!(heard, Heard::Thinking("") | Heard::Text("")))
        {
            self.last = Instant::now();
            self.first.get_or_insert(self.last);
            (self.on)(heard);
        }
        self.finish = piece.finish.or(self.finish);
        let kept = [&mut self.usage, &mut self.timings, &mut self.metrics];
        for (kept, new) in kept.into_iter().zip([piece.usage, piece.timings, piece.metrics]) {
            if new.is_object() {
                *kept = new;
            }
        }
        Ok(())
    }

    /// The reply with its numbers.
    pub fn reply(&self, finish: Finish) -> Reply {
        let usage = Usage::read(&self.usage, self.bytes);
        let since = |instant: Instant| instant.duration_since(self.asked).as_secs_f64() * 1e3;
        Reply {
            finish,
            usage,
            drafts: Drafts::read(&self.usage, &self.timings, &self.metrics, usage.map(|usage| usage.reply)),
            ttft_ms: self.first.map(since),
            elapsed_ms: since(self.last),
        }
    }
}
