//! Calls of a reply, found while it is written.

use serde_json::Value;

use super::{ArgumentForm, CallForm, TAG_CLOSE, TAG_NAMED, TAG_OPEN, Tool};
use crate::template::{Thinking, ThinkingParser, ThinkingPiece, kept};

/// Part of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text outside of calls.
    Text(String),
    /// A call of this tool begins.
    Call(String),
    /// JSON that goes on with the arguments of the call that began last.
    Arguments(String),
    /// The call that began last is complete.
    End,
}

/// Finds calls in the text of a reply, in pieces of any length. What might begin a call, and white
/// space before it, is held back until that is known. Text that is no call is returned unchanged.
#[derive(Debug, Clone)]
pub struct CallParser {
    form: CallForm,
    /// Tools whose schemas say which arguments between tags are texts.
    tools: Vec<Tool>,
    /// Finds the reasoning, in which nothing is a call.
    thinking: ThinkingParser,
    state: State,
    /// Text that is held back.
    held: String,
}

#[derive(Debug, Clone)]
enum State {
    /// Text in which a call may begin; `false` once only the beginning of a reply could.
    Text(bool),
    /// Up to the end of the name of a tool.
    Name,
    Arguments(Json),
    /// Arguments between tags of this tool; `true` once there was one.
    Tags(String, bool),
    /// After the arguments.
    Close,
}

/// Position within a JSON object.
#[derive(Debug, Clone, Default)]
struct Json {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Json {
    /// Returns the length of `text` up to the end of the object; `None` if it goes on.
    fn end(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

impl CallParser {
    /// Creates a parser. `thinking` has the tags of a model that reasons, `reasons` is `true` if
    /// the reply begins within its reasoning.
    pub fn new(form: CallForm, thinking: Option<Thinking>, reasons: bool) -> Self {
        let thinking = ThinkingParser::new(thinking, reasons);
        Self { form, tools: Vec::new(), thinking, state: State::Text(true), held: String::new() }
    }

    /// Reads arguments between tags by the schemas of `tools`.
    #[must_use]
    pub fn of_tools(mut self, tools: &[Tool]) -> Self {
        if self.form.arguments == ArgumentForm::Tags {
            self.tools = tools.to_vec();
        }
        self
    }

    /// Goes on with `text`; returns the parts that are certain.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut pieces = Pieces::default();
        for piece in self.thinking.push(text) {
            self.add(piece, &mut pieces);
        }
        pieces.0
    }

    fn add(&mut self, piece: ThinkingPiece, pieces: &mut Pieces) {
        match piece {
            ThinkingPiece::Tag(text) | ThinkingPiece::Thinking(text) => pieces.text(&text),
            ThinkingPiece::Text(text) => {
                self.held.push_str(&text);
                while self.step(pieces) {}
            }
        }
    }

    /// Returns what is held back at the end of the reply. A call that is cut stays without an end.
    pub fn finish(&mut self) -> Vec<Piece> {
        let mut pieces = Pieces::default();
        if let Some(piece) = self.thinking.finish() {
            self.add(piece, &mut pieces);
        }
        let held = std::mem::take(&mut self.held);
        if matches!(self.state, State::Text(_)) {
            pieces.text(&held);
        }
        pieces.0
    }

    /// Processes a part of the held text; returns `false` once the rest has to wait.
    fn step(&mut self, pieces: &mut Pieces) -> bool {
        match &mut self.state {
            State::Text(may_begin) => {
                let may_begin = *may_begin;
                self.text(may_begin, pieces)
            }
            State::Name => {
                let Some((name, rest)) = self.held.split_once(self.form.before_arguments) else {
                    return false;
                };
                let name = name.strip_prefix(self.form.before_name).unwrap_or(name);
                pieces.0.push(Piece::Call(name.to_owned()));
                self.state = match self.form.arguments {
                    ArgumentForm::Json => State::Arguments(Json::default()),
                    ArgumentForm::Tags => State::Tags(name.to_owned(), false),
                };
                self.held = rest.to_owned();
                true
            }
            State::Arguments(json) => {
                let end = json.end(&self.held);
                let text = self.take(end.unwrap_or(self.held.len()));
                pieces.arguments(&text);
                if end.is_some() {
                    self.state = State::Close;
                }
                end.is_some()
            }
            State::Tags(tool, has_any) => {
                let begin = if *has_any { ", " } else { "{" };
                if self.held.starts_with(self.form.close) {
                    pieces.arguments(if *has_any { "}" } else { "{}" });
                    self.state = State::Close;
                    return true;
                }
                let Some((name, value, rest)) = tagged(&self.held) else { return false };
                let json = json_of(value, self.tools.iter().find(|known| known.name == *tool), name);
                pieces.arguments(&format!("{begin}{}: {json}", Value::from(name)));
                *has_any = true;
                self.held = rest.to_owned();
                true
            }
            State::Close => {
                let Some(rest) = self.held.strip_prefix(self.form.close) else { return false };
                pieces.0.push(Piece::End);
                self.held = rest.to_owned();
                self.state = State::Text(self.form.between.is_some());
                true
            }
        }
    }

    /// Processes text up to a call.
    fn text(&mut self, may_begin: bool, pieces: &mut Pieces) -> bool {
        let open = self.form.open;
        let found = match (may_begin, self.form.only_first) {
            (false, _) => None,
            (true, false) => self.held.find(open),
            (true, true) => Some(self.held.len() - self.held.trim_start().len())
                .filter(|&at| self.held[at..].starts_with(open)),
        };
        if let Some(at) = found {
            let before = self.take(at);
            pieces.text(before.trim_end());
            self.held.drain(..open.len());
            self.state = State::Name;
            return true;
        }
        let end = match (may_begin, self.form.only_first) {
            (false, _) => self.held.len(),
            (true, false) => self.held[..self.held.len() - kept(&self.held, open)].trim_end().len(),
            (true, true) => {
                let start = self.held.trim_start();
                if open.starts_with(start) { 0 } else { self.held.len() }
            }
        };
        if end > 0 && self.form.only_first {
            self.state = State::Text(false);
        }
        pieces.text(&self.take(end));
        false
    }

    /// Takes the first `end` bytes of the held text.
    fn take(&mut self, end: usize) -> String {
        let rest = self.held.split_off(end);
        std::mem::replace(&mut self.held, rest)
    }
}

/// Splits `text` into the name and value of an argument between tags and the rest; `None` if it is
/// not complete.
fn tagged(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.strip_prefix(TAG_OPEN)?.split_once(TAG_NAMED)?;
    let (value, rest) = rest.split_once(TAG_CLOSE)?;
    Some((name, value, rest))
}

/// JSON of the value of argument `name` of a tool.
fn json_of(value: &str, tool: Option<&Tool>, name: &str) -> String {
    let is_text = tool.is_some_and(|tool| tool.takes_text(name));
    match serde_json::from_str::<Value>(value) {
        Ok(_) if !is_text => value.to_owned(),
        _ => Value::from(value).to_string(),
    }
}

/// Pieces in order; neighbours of one kind are one piece.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    fn arguments(&mut self, json: &str) {
        match self.0.last_mut() {
            _ if json.is_empty() => {}
            Some(Piece::Arguments(last)) => last.push_str(json),
            _ => self.0.push(Piece::Arguments(json.to_owned())),
        }
    }
}
