//! Text that grows token by token: whole characters only, and nothing of a stop string. Pieces join
//! to what the tokenizer makes of all tokens at once.

use std::sync::Arc;

use super::tokenizer::Tokenizer;
use crate::trace::TokenId;

/// The text of a reply under way.
#[derive(Clone)]
pub struct TextStream {
    tokenizer: Arc<Tokenizer>,
    /// Never empty strings.
    stops: Vec<String>,
    /// The next bytes are the first of a text, whose leading space the tokenizer has added.
    drops_space: bool,
    /// The beginning of a character, 0 to 3 bytes.
    incomplete: Vec<u8>,
    /// Text that may be the beginning of a stop string.
    held: String,
    stopped: bool,
}

impl TextStream {
    /// A text from its beginning. `stops` end it: neither they nor anything after is handed out.
    pub fn new(tokenizer: Arc<Tokenizer>, stops: &[String]) -> Self {
        Self {
            stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            drops_space: tokenizer.strips_leading_space(),
            tokenizer,
            incomplete: Vec::new(),
            held: String::new(),
            stopped: false,
        }
    }

    /// The same for a text that goes on after another: its leading space is its own.
    pub fn continuing(mut self) -> Self {
        self.drops_space = false;
        self
    }

    /// Takes one token and returns what has become certain of the text since the one before.
    pub fn push(&mut self, token: TokenId) -> String {
        let tokenizer = Arc::clone(&self.tokenizer);
        let mut bytes = tokenizer.decode_bytes(token);
        if self.drops_space && !bytes.is_empty() {
            self.drops_space = false;
            bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
        }
        let text = self.complete(bytes);
        self.release(&text)
    }

    /// Whether a stop string has ended the text. Nothing more is added then.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Returns what was held back: the text ends here. An incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        if self.stopped {
            return String::new();
        }
        let rest = std::mem::take(&mut self.incomplete);
        let mut text = std::mem::take(&mut self.held);
        text.push_str(&String::from_utf8_lossy(&rest));
        text
    }

    /// Appends bytes and takes out all but an incomplete character at the end.
    fn complete(&mut self, bytes: &[u8]) -> String {
        self.incomplete.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.incomplete);
        let mut text = String::new();
        let mut rest = all.as_slice();
        while let Err(error) = std::str::from_utf8(rest) {
            let (valid, damaged) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(length) = error.error_len() else {
                self.incomplete = damaged.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &damaged[length..];
        }
        text.push_str(&String::from_utf8_lossy(rest));
        text
    }

    /// Appends text and takes out what cannot be part of a stop string.
    fn release(&mut self, text: &str) -> String {
        if self.stopped {
            return String::new();
        }
        self.held.push_str(text);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.held.find(stop)).min() {
            self.stopped = true;
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let kept = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let held = self.held.split_off(self.held.len() - kept);
        std::mem::replace(&mut self.held, held)
    }
}

/// Bytes of the longest end of `text` that `stop` begins with, `stop` as a whole not counted.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    let fits = |&length: &usize| text.as_bytes().ends_with(&stop.as_bytes()[..length]);
    // A stop string's beginning is cut at a character, or it could not end valid text.
    (1..=longest).rev().filter(|&length| stop.is_char_boundary(length)).find(fits).unwrap_or(0)
}
