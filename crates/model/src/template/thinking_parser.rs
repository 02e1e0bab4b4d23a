//! Reasoning of a reply, found while it is written.

use super::Thinking;

/// Part of a reply by where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkingPiece {
    /// Tag before or after the reasoning, with white space before it.
    Tag(String),
    Thinking(String),
    /// Text after the reasoning.
    Text(String),
}

/// Separates the reasoning at the beginning of a reply from the rest, in pieces of any length. What
/// might be a tag is held back until that is known. The pieces join to the reply's text.
#[derive(Debug, Clone)]
pub struct ThinkingParser {
    state: State,
    /// Text that is held back.
    held: String,
}

#[derive(Debug, Clone)]
enum State {
    /// The reply's first text decides whether it reasons.
    Start(Thinking),
    /// Reasoning up to this text.
    Reasoning(&'static str),
    Text,
}

impl ThinkingParser {
    /// Creates a parser. `thinking` has the tags of a model that reasons, `reasons` is `true` if
    /// the reply begins within its reasoning.
    pub fn new(thinking: Option<Thinking>, reasons: bool) -> Self {
        let state = match thinking {
            Some(tags) if reasons => State::Reasoning(tags.close),
            Some(tags) => State::Start(tags),
            None => State::Text,
        };
        Self { state, held: String::new() }
    }

    /// Goes on with `text`; returns the parts that are certain.
    pub fn push(&mut self, text: &str) -> Vec<ThinkingPiece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        while let Some(piece) = self.next() {
            pieces.push(piece);
        }
        pieces
    }

    /// Returns whether the reasoning has begun and goes on.
    pub fn is_thinking(&self) -> bool {
        matches!(self.state, State::Reasoning(_))
    }

    /// Returns what is held back at the end of the reply.
    pub fn finish(&mut self) -> Option<ThinkingPiece> {
        let held = std::mem::take(&mut self.held);
        let piece = match self.state {
            State::Reasoning(_) => ThinkingPiece::Thinking(held),
            State::Start(_) | State::Text => ThinkingPiece::Text(held),
        };
        (!piece.text().is_empty()).then_some(piece)
    }

    /// Returns the next part of the held text; `None` once the rest has to wait.
    fn next(&mut self) -> Option<ThinkingPiece> {
        match self.state {
            State::Start(tags) => {
                let start = self.held.trim_start();
                if tags.open.starts_with(start) && start.len() < tags.open.len() {
                    return None;
                }
                if !start.starts_with(tags.open) {
                    self.state = State::Text;
                    return self.next();
                }
                let end = self.held.len() - start.len() + tags.open.len();
                self.state = State::Reasoning(tags.close);
                Some(ThinkingPiece::Tag(self.take(end)))
            }
            State::Reasoning(close) => {
                let end = match self.held.find(close) {
                    Some(0) => {
                        self.state = State::Text;
                        return Some(ThinkingPiece::Tag(self.take(close.len())));
                    }
                    Some(at) => at,
                    None => self.held.len() - kept(&self.held, close),
                };
                (end > 0).then(|| ThinkingPiece::Thinking(self.take(end)))
            }
            State::Text => (!self.held.is_empty()).then(|| ThinkingPiece::Text(self.take(self.held.len()))),
        }
    }

    /// Takes the first `end` bytes of the held text.
    fn take(&mut self, end: usize) -> String {
        let rest = self.held.split_off(end);
        std::mem::replace(&mut self.held, rest)
    }
}

impl ThinkingPiece {
    pub fn text(&self) -> &str {
        match self {
            Self::Tag(text) | Self::Thinking(text) | Self::Text(text) => text,
        }
    }
}

/// Length of the end of `text` that may begin `mark`.
pub(crate) fn kept(text: &str, mark: &str) -> usize {
    let longest = mark.len().min(text.len() + 1) - 1;
    (1..=longest).rev().find(|&length| text.as_bytes().ends_with(&mark.as_bytes()[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Pieces of `text` in chunks of `length` bytes, neighbours of one kind joined.
    fn parsed(text: &str, reasons: bool, length: usize) -> Vec<ThinkingPiece> {
        let mut parser = ThinkingParser::new(Some(Thinking::KNOWN[0]), reasons);
        let chunks = text.as_bytes().chunks(length).map(|chunk| std::str::from_utf8(chunk).unwrap());
        let mut pieces: Vec<ThinkingPiece> = Vec::new();
        for piece in chunks.flat_map(|chunk| parser.push(chunk)).collect::<Vec<_>>() {
            add(&mut pieces, piece);
        }
        parser.finish().into_iter().for_each(|piece| add(&mut pieces, piece));
        pieces
    }

    fn add(pieces: &mut Vec<ThinkingPiece>, piece: ThinkingPiece) {
        match (pieces.last_mut(), piece) {
            (Some(ThinkingPiece::Thinking(last)), ThinkingPiece::Thinking(more))
            | (Some(ThinkingPiece::Text(last)), ThinkingPiece::Text(more)) => last.push_str(&more),
            (_, piece) => pieces.push(piece),
        }
    }

    #[test]
    fn reasoning_and_answer_are_the_same_in_pieces_of_any_length() {
        use ThinkingPiece::{Tag, Tag as T, Text, Thinking};
        let owned = str::to_owned;
        for (text, reasons, expected) in [
            (
                "\n<think>a < b</think>yes",
                false,
                vec![
                    Tag(owned("\n<think>")),
                    Thinking(owned("a < b")),
                    T(owned("</think>")),
                    Text(owned("yes")),
                ],
            ),
            ("so</think>yes", true, vec![Thinking(owned("so")), T(owned("</think>")), Text(owned("yes"))]),
            ("<thin ice</think>", false, vec![Text(owned("<thin ice</think>"))]),
            ("<think>cut</thi", false, vec![Tag(owned("<think>")), Thinking(owned("cut</thi"))]),
            ("<thi", false, vec![Text(owned("<thi"))]),
            ("", false, vec![]),
        ] {
            for length in 1..=text.len().max(1) {
                assert_eq!(parsed(text, reasons, length), expected, "{text:?} by {length}");
            }
        }
    }
}
