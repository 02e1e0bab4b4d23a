//! Calls of a reply, found while it is written.

use std::borrow::Cow;
use std::sync::Arc;

use super::arguments::Reader;
use super::form::{CallForm, ID_PART, Place};
use super::mark::{marked, marked_last, unmarked};
use super::{LONGEST_NAME, Tool};
use crate::template::{Thinking, ThinkingParser, ThinkingPiece, kept};
use crate::token::TokenId;
use crate::tokenizer::Tokenizer;

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
#[derive(Clone)]
pub struct CallParser {
    form: CallForm<String>,
    /// Text that begins the calls.
    trigger: String,
    /// Knows the tokens that are markers; `None` where letters are.
    tokenizer: Option<Arc<Tokenizer>>,
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
    Arguments(Reader),
    /// After the arguments.
    Close,
    /// After a call of a list.
    Next,
}

impl CallParser {
    /// Creates a parser of texts. `thinking` has the tags of a model that reasons, `reasons` is
    /// `true` if the reply begins within its reasoning.
    pub fn new(form: CallForm, thinking: Option<Thinking>, reasons: bool) -> Self {
        Self {
            form: form.map(str::to_owned),
            trigger: form.trigger(),
            tokenizer: None,
            tools: Vec::new(),
            thinking: ThinkingParser::new(thinking, reasons),
            state: State::Text(true),
            held: String::new(),
        }
    }

    /// Takes markers that are tokens of this vocabulary for markers only where they are tokens: see
    /// [`Self::marked`].
    #[must_use]
    pub fn of_tokens(mut self, tokenizer: &Arc<Tokenizer>) -> Self {
        let is_token = |mark: &str| tokenizer.special_id(mark).is_some();
        self.trigger = marked(&self.trigger, is_token);
        self.form = self.form.map(|text| marked(&text, is_token));
        self.tokenizer = Some(Arc::clone(tokenizer));
        self
    }

    /// Reads arguments between tags by the schemas of `tools`.
    #[must_use]
    pub fn of_tools(mut self, tools: &[Tool]) -> Self {
        self.tools = tools.to_vec();
        self
    }

    /// Parses the text after the reasoning alone.
    #[must_use]
    pub fn after_thinking(mut self) -> Self {
        self.thinking = ThinkingParser::new(None, false);
        self
    }

    /// Returns the text of a token as [`Self::push`] takes it.
    pub fn marked<'a>(&self, token: TokenId, text: &'a str) -> Cow<'a, str> {
        match &self.tokenizer {
            Some(tokenizer) if tokenizer.is_special(token) => marked_last(text),
            _ => unmarked(text),
        }
    }

    /// Goes on with tokens and their texts; returns the parts that are certain.
    pub fn push_tokens<'a>(&mut self, tokens: impl Iterator<Item = (TokenId, &'a str)>) -> Vec<Piece> {
        let texts: String = tokens.map(|(token, text)| self.marked(token, text)).collect();
        self.push(&texts)
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
                let Some((name, length)) = self.name() else { return false };
                let tool = self.tools.iter().find(|known| known.name == name);
                self.state = State::Arguments(Reader::new(&self.form.arguments, tool));
                pieces.0.push(Piece::Call(name));
                self.held.drain(..length);
                true
            }
            State::Arguments(reader) => {
                let (json, ended) = reader.read(&mut self.held);
                pieces.arguments(&json);
                if ended {
                    self.state = State::Close;
                }
                ended
            }
            State::Close => {
                let Some(length) = begins_with(&self.held, &self.form.close) else { return false };
                pieces.0.push(Piece::End);
                self.held.drain(..length);
                self.state = match self.form.end.as_str() {
                    "" => State::Text(self.form.between.is_some()),
                    _ => State::Next,
                };
                true
            }
            State::Next => self.next(),
        }
    }

    /// Name of the called tool, and the length of the held text up to the arguments; `None` if they
    /// have not begun.
    fn name(&self) -> Option<(String, usize)> {
        let start = begins_with(&self.held, &self.form.before_name)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let length = self.held.bytes().skip(start).position(|byte| !is_name(byte))?;
        if !(1..=LONGEST_NAME).contains(&length) {
            return None;
        }
        let name = &self.held[start..start + length];
        let before_arguments = begins_with(&self.held[start + length..], &self.form.before_arguments)?;
        Some((name.to_owned(), start + length + before_arguments))
    }

    /// Processes what follows a call of a list.
    fn next(&mut self) -> bool {
        let next = [self.form.between.as_deref().unwrap_or_default(), &self.form.open].concat();
        if self.held.starts_with(&self.form.end) {
            self.held.drain(..self.form.end.len());
            self.state = State::Text(false);
        } else if !self.held.is_empty() && self.held.starts_with(&next) {
            self.held.drain(..next.len());
            self.state = State::Name;
        } else {
            return false;
        }
        true
    }

    /// Processes text up to a call.
    fn text(&mut self, may_begin: bool, pieces: &mut Pieces) -> bool {
        let open = self.trigger.as_str();
        let only_first = self.form.place == Place::First;
        let found = match (may_begin, only_first) {
            (false, _) => None,
            (true, false) => self.held.find(open),
            (true, true) => Some(self.held.len() - self.held.trim_start().len())
                .filter(|&at| self.held[at..].starts_with(open)),
        };
        if let Some(at) = found {
            let length = open.len();
            let before = self.take(at);
            pieces.text(before.trim_end());
            self.held.drain(..length);
            self.state = State::Name;
            return true;
        }
        let end = match (may_begin, only_first) {
            (false, _) => self.held.len(),
            (true, false) => self.held[..self.held.len() - kept(&self.held, open)].trim_end().len(),
            (true, true) => {
                let start = self.held.trim_start();
                if open.starts_with(start) { 0 } else { self.held.len() }
            }
        };
        if end > 0 && only_first {
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

/// Length of `pattern` at the beginning of `text`, where an [`ID_PART`] is any letter or digit.
fn begins_with(text: &str, pattern: &str) -> Option<usize> {
    let is_same =
        |(byte, part): (u8, u8)| byte == part || part == ID_PART as u8 && byte.is_ascii_alphanumeric();
    let begins = text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(is_same);
    begins.then_some(pattern.len())
}

/// Pieces in order; neighbours of one kind are one piece.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn text(&mut self, text: &str) {
        let text = unmarked(text);
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(&text),
            _ => self.0.push(Piece::Text(text.into_owned())),
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
