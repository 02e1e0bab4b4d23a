//! Parts of a reply so far, in the order in which they were written.

use std::ops::Range;

use crate::logprob::Logprob;
use crate::writer::Event;

/// See the module.
#[derive(Debug, Default)]
pub struct Reply {
    parts: Vec<Part>,
    /// Stop string that ended the reply.
    stop: Option<String>,
    thinking_tokens: usize,
    /// Log probabilities of the tokens so far, if they were asked for.
    logprobs: Vec<Logprob>,
    /// Range of these that belongs to each part, which is empty where the part is no text, and the
    /// number of those that were assigned.
    spans: Vec<Range<usize>>,
    assigned: usize,
}

#[derive(Debug)]
pub enum Part {
    /// Reasoning, where it is separated from the text.
    Thinking(String),
    Text(String),
    Call(Call),
}

/// Call of a tool.
#[derive(Debug)]
pub struct Call {
    /// Random part of its id, for a prefix of each protocol.
    pub number: String,
    pub name: String,
    /// JSON of the arguments so far.
    pub arguments: String,
    pub is_complete: bool,
}

/// Position that an event adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// Index of the part.
    pub index: usize,
    /// `true` if the part is new.
    pub begins: bool,
}

impl Reply {
    /// Goes on with an event; returns where it belongs, if it belongs to a part.
    pub fn extend(&mut self, event: &Event) -> Option<Added> {
        let before = self.parts.len();
        match (event, self.parts.last_mut()) {
            (Event::Thinking(more), Some(Part::Thinking(text)))
            | (Event::Text(more), Some(Part::Text(text))) => text.push_str(more),
            (Event::Thinking(text), _) => self.parts.push(Part::Thinking(text.clone())),
            (Event::Text(text), _) => self.parts.push(Part::Text(text.clone())),
            (Event::Call(name), _) => self.parts.push(Part::Call(Call::new(name))),
            (Event::Arguments(json), Some(Part::Call(call))) => call.arguments.push_str(json),
            (Event::CallEnded, Some(Part::Call(call))) => call.is_complete = true,
            (Event::Stop(stop), _) => {
                self.stop = Some(stop.clone());
                return None;
            }
            (Event::ThinkingTokens(tokens), _) => {
                self.thinking_tokens = *tokens;
                return None;
            }
            (Event::Logprobs(more), _) => {
                self.logprobs.extend(more.iter().cloned());
                return None;
            }
            _ => return None,
        }
        let begins = self.parts.len() > before;
        self.assign(begins);
        Some(Added { index: self.parts.len() - 1, begins })
    }

    /// Assigns new log probabilities to the last part, if it is text.
    fn assign(&mut self, begins: bool) {
        let from = std::mem::replace(&mut self.assigned, self.logprobs.len());
        if begins {
            self.spans.push(from..from);
        }
        if let (Some(span), Some(Part::Text(_))) = (self.spans.last_mut(), self.parts.last()) {
            span.end = self.assigned;
        }
    }

    /// Range of [`Self::logprobs`] that belongs to a part.
    pub fn span(&self, index: usize) -> Range<usize> {
        self.spans.get(index).cloned().unwrap_or_default()
    }

    /// Log probabilities of the tokens so far, if they were asked for.
    pub fn logprobs(&self) -> &[Logprob] {
        &self.logprobs
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Stop string that ended the reply, if one did.
    pub fn stop(&self) -> Option<&str> {
        self.stop.as_deref()
    }

    /// Number of tokens of the reasoning, where it is separated from the text.
    pub fn thinking_tokens(&self) -> usize {
        self.thinking_tokens
    }

    /// Texts of all parts that are text.
    pub fn text(&self) -> String {
        let text = |part: &Part| if let Part::Text(text) = part { Some(text.clone()) } else { None };
        self.parts.iter().filter_map(text).collect()
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None })
    }

    /// Returns whether there are calls and none was cut.
    pub fn has_called(&self) -> bool {
        self.calls().last().is_some_and(|call| call.is_complete)
    }
}

impl Call {
    fn new(name: &str) -> Self {
        let number = format!("{:024x}", rand::random::<u128>() >> 32);
        Self { number, name: name.to_owned(), arguments: String::new(), is_complete: false }
    }
}
