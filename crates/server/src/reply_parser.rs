//! Reasoning, text and calls of a reply, found while it is written.

use foretoken_model::token::TokenId;
use foretoken_model::tools::unmarked;
use foretoken_model::{CallParser, Piece, ThinkingParser, ThinkingPiece};

use crate::writer::Event;

/// Turns a reply's text into events; see the module.
#[derive(Clone)]
pub struct ReplyParser {
    /// Separates the reasoning; `None` where it is part of the text.
    thinking: Option<ThinkingParser>,
    /// Finds calls; `None` without tools.
    calls: Option<CallParser>,
    /// White space at the end of the reasoning so far, which is no part of it.
    space: String,
    /// Number of tokens that belong to the reasoning.
    thinking_tokens: usize,
    /// State of separated reasoning and text: `true` until their first word.
    begins: bool,
}

impl ReplyParser {
    /// Creates a parser. `calls` finds no reasoning of its own where `thinking` does.
    pub fn new(thinking: Option<ThinkingParser>, calls: Option<CallParser>) -> Self {
        let begins = thinking.is_some();
        Self { thinking, calls, space: String::new(), thinking_tokens: 0, begins }
    }

    /// Goes on with tokens and their texts; returns the events that are certain. Neighbours of one
    /// kind are one.
    pub fn push_tokens<'a>(&mut self, tokens: impl Iterator<Item = (TokenId, &'a str)>) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for (token, text) in tokens {
            let was_thinking = self.is_thinking();
            let text = self.calls.as_ref().map_or(text.into(), |calls| calls.marked(token, text));
            for event in self.push(&text) {
                match (events.last_mut(), event) {
                    (Some(Event::Thinking(last)), Event::Thinking(more))
                    | (Some(Event::Text(last)), Event::Text(more))
                    | (Some(Event::Arguments(last)), Event::Arguments(more)) => last.push_str(&more),
                    (_, event) => events.push(event),
                }
            }
            // The tags count, too.
            self.thinking_tokens += usize::from(was_thinking || self.is_thinking());
        }
        events
    }

    /// Number of tokens of separated reasoning so far.
    pub fn thinking_tokens(&self) -> usize {
        self.thinking_tokens
    }

    /// Returns whether separated reasoning goes on.
    pub fn is_thinking(&self) -> bool {
        self.thinking.as_ref().is_some_and(ThinkingParser::is_thinking)
    }

    /// Goes on with `text`; returns the events that are certain.
    fn push(&mut self, text: &str) -> Vec<Event> {
        let Some(thinking) = &mut self.thinking else { return self.text(text) };
        let pieces = thinking.push(text);
        pieces.into_iter().flat_map(|piece| self.separated(piece)).collect()
    }

    /// Returns the events of what is held back at the end of the reply.
    pub fn finish(&mut self) -> Vec<Event> {
        let held = self.thinking.as_mut().and_then(ThinkingParser::finish);
        let mut events: Vec<Event> = held.into_iter().flat_map(|piece| self.separated(piece)).collect();
        let rest = self.calls.as_mut().map(CallParser::finish).unwrap_or_default();
        events.extend(rest.into_iter().filter_map(event));
        events
    }

    fn separated(&mut self, piece: ThinkingPiece) -> Vec<Event> {
        match piece {
            ThinkingPiece::Tag(_) => {
                self.begins = true;
                self.space.clear();
                Vec::new()
            }
            ThinkingPiece::Thinking(text) => {
                let text = unmarked(&text);
                let mut text = std::mem::take(&mut self.space) + self.first_word(&text);
                self.space = text.split_off(text.trim_end().len());
                if text.is_empty() { Vec::new() } else { vec![Event::Thinking(text)] }
            }
            ThinkingPiece::Text(text) => {
                let text = self.first_word(&text).to_owned();
                self.text(&text)
            }
        }
    }

    /// Returns `text` from its first word on, if none came before.
    fn first_word<'a>(&mut self, text: &'a str) -> &'a str {
        let text = if self.begins { text.trim_start() } else { text };
        self.begins &= text.is_empty();
        text
    }

    fn text(&mut self, text: &str) -> Vec<Event> {
        match &mut self.calls {
            Some(calls) => calls.push(text).into_iter().filter_map(event).collect(),
            None => event(Piece::Text(text.to_owned())).into_iter().collect(),
        }
    }
}

/// Event of a part of a reply, unless it is empty.
fn event(piece: Piece) -> Option<Event> {
    match piece {
        Piece::Text(text) => (!text.is_empty()).then_some(Event::Text(text)),
        Piece::Call(name) => Some(Event::Call(name)),
        Piece::Arguments(json) => Some(Event::Arguments(json)),
        Piece::End => Some(Event::CallEnded),
    }
}

#[cfg(test)]
mod tests {
    use foretoken_model::{CallForm, Thinking};

    use super::*;
    use crate::reply::{Part, Reply};

    const TAGS: Thinking = Thinking::KNOWN[0];

    /// Parts of `text` in chunks of `length` bytes.
    fn parts(text: &str, mut parser: ReplyParser, length: usize) -> Vec<(char, String)> {
        let mut reply = Reply::default();
        for chunk in text.as_bytes().chunks(length) {
            for event in parser.push(std::str::from_utf8(chunk).unwrap()) {
                reply.extend(&event);
            }
        }
        for event in parser.finish() {
            reply.extend(&event);
        }
        let shown = |part: &Part| match part {
            Part::Thinking(text) => ('r', text.clone()),
            Part::Text(text) => ('t', text.clone()),
            Part::Call(call) => ('c', format!("{}{}", call.name, call.arguments)),
        };
        reply.parts().iter().map(shown).collect()
    }

    #[test]
    fn tokens_of_separated_reasoning_are_counted_with_their_tags() {
        let thinking = |separates: bool| separates.then(|| ThinkingParser::new(Some(TAGS), false));
        for (separates, expected) in [(true, 4), (false, 0)] {
            let mut parser = ReplyParser::new(thinking(separates), None);
            let texts = ["<think>", "so", " so", "</think>", "yes", " no"];
            let events = parser.push_tokens(texts.map(|text| (0, text)).into_iter());
            assert_eq!((events.len(), parser.thinking_tokens()), (if separates { 2 } else { 1 }, expected));
        }
    }

    #[test]
    fn reasoning_text_and_calls_are_the_same_in_pieces_of_any_length() {
        let call = "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": 7}}\n</tool_call>";
        let text = format!("<think>\n<tool_call> or not?\n\n</think>\n\nLet me see.\n{call}");
        let called = ('c', "look{\"at\": 7}".to_owned());
        for length in 1..text.len() {
            let calls = || Some(CallParser::new(CallForm::HERMES, None, false));
            let apart = ReplyParser::new(Some(ThinkingParser::new(Some(TAGS), false)), calls());
            let (reasoning, said) = ("<tool_call> or not?".to_owned(), "Let me see.".to_owned());
            let expected = [('r', reasoning), ('t', said), called.clone()];
            assert_eq!(parts(&text, apart, length), expected, "{length}");
            let together = ReplyParser::new(None, Some(CallParser::new(CallForm::HERMES, Some(TAGS), false)));
            let said = text.split("\n<tool_call>\n").next().unwrap().to_owned();
            assert_eq!(parts(&text, together, length), [('t', said), called.clone()], "{length}");
        }
    }
}
