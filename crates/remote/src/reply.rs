//! A reply while it is received, and its result.

use std::time::Instant;

use foretoken_engine::trace::Finish;
use serde_json::Value;

use crate::calls::{CallPart, Calls};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::piece::Piece;
use crate::reply_event::ReplyEvent;
use crate::usage::{Drafts, Usage};

/// Most bytes of a reply: longer than any model writes, and little enough memory.
const MAX_TEXT: usize = 16 << 20;

/// A finished reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub finish: Finish,
    /// Token counts of the server, if plausible.
    pub usage: Option<Usage>,
    pub drafts: Option<Drafts>,
    /// Time from the request to the first text; `None` without text.
    pub ttft_ms: Option<f64>,
    /// Time from the request to the end.
    pub elapsed_ms: f64,
}

/// Meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// No more text is expected.
    Complete,
    /// The server sends finish reasons before the end: text followed one, or the reply has only
    /// reasoning so far.
    Uncertain,
}

/// Receiver of a reply's bytes, which calls `on` with its events.
pub struct Listener<'a> {
    on: &'a mut dyn FnMut(ReplyEvent<'_>),
    events: Events,
    asked: Instant,
    first: Option<Instant>,
    last: Instant,
    started: bool,
    /// Bytes of text, reasoning and calls.
    bytes: usize,
    /// `true` once text other than reasoning, or a call, was received.
    answered: bool,
    calls: Calls,
    finish: Option<Finish>,
    /// Time of the finish reason, or of text after it.
    finished: Option<Instant>,
    /// `true` once text followed a finish reason.
    resumed: bool,
    done: bool,
    usage: Value,
    timings: Value,
    metrics: Value,
}

impl<'a> Listener<'a> {
    pub fn new(on: &'a mut dyn FnMut(ReplyEvent<'_>)) -> Self {
        let now = Instant::now();
        Self {
            on,
            events: Events::default(),
            asked: now,
            first: None,
            last: now,
            started: false,
            bytes: 0,
            answered: false,
            calls: Calls::default(),
            finish: None,
            finished: None,
            resumed: false,
            done: false,
            usage: Value::Null,
            timings: Value::Null,
            metrics: Value::Null,
        }
    }

    /// Reports once that the server is working.
    pub fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            (self.on)(ReplyEvent::Started);
        }
    }

    /// Returns whether text or a call was received.
    pub fn has_text(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the time since which a finished reply has had no more text; its usage may still
    /// follow. `None` without a finish reason.
    pub fn finished_at(&self) -> Option<(Instant, Ending)> {
        let only_reasoned = self.first.is_some() && !self.answered && self.finish == Some(Finish::Stop);
        let ending = if self.resumed || only_reasoned { Ending::Uncertain } else { Ending::Complete };
        self.finished.map(|at| (at, ending))
    }

    /// Reports that the request was accepted without its extras.
    pub fn leave_out_extras(&mut self) {
        (self.on)(ReplyEvent::WithoutExtras);
    }

    /// Returns whether the server ended the stream.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// # Errors
    /// Returns the server's errors, and those of chunks that cannot be parsed.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.with_events(|events, on| events.take(bytes, on))
    }

    /// Handles the end of the stream.
    ///
    /// # Errors
    /// Returns `Error::Cut` if the reply is incomplete.
    pub fn end(&mut self) -> Result<Finish> {
        if !self.done {
            self.with_events(Events::finish)?;
        }
        // Some servers end with `[DONE]` only, others without it.
        let finish = self.finish.or(self.done.then_some(Finish::Stop)).ok_or(Error::Cut)?;
        match self.calls.end(self.on) {
            // The last call was cut.
            Err(Error::Arguments { .. }) if finish == Finish::Length => Ok(finish),
            ended => ended.map(|()| finish),
        }
    }

    fn with_events(
        &mut self,
        work: impl FnOnce(&mut Events, &mut dyn FnMut(&str) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let outcome = work(&mut events, &mut |data| self.receive(data));
        self.events = events;
        outcome
    }

    fn receive(&mut self, data: &str) -> Result<()> {
        if self.done || data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let piece = Piece::read(data)?;
        let calls = piece.calls.iter().map(CallPart::bytes).sum::<usize>();
        self.bytes += piece.thinking.len() + piece.text.len() + calls;
        let has_text = !(piece.thinking.is_empty() && piece.text.is_empty() && piece.calls.is_empty());
        self.answered |= !(piece.text.is_empty() && piece.calls.is_empty());
        self.resumed |= has_text && self.finish.is_some();
        if piece.finish.is_some() || has_text && self.finish.is_some() {
            self.finished = Some(Instant::now());
        }
        if self.bytes > MAX_TEXT {
            return Err(Error::TooLarge("an endless reply"));
        }
        if has_text {
            self.last = Instant::now();
            self.first.get_or_insert(self.last);
        }
        let events = [ReplyEvent::Thinking(&piece.thinking), ReplyEvent::Text(&piece.text)];
        for event in events
            .into_iter()
            .filter(|event| !matches!(event, ReplyEvent::Thinking("") | ReplyEvent::Text("")))
        {
            (self.on)(event);
        }
        for part in piece.calls {
            self.calls.take(part, self.on)?;
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

    /// Returns the reply with its statistics.
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
