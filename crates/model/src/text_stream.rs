//! Incremental detokenization: whole characters only, and nothing of a stop string. The pieces join
//! to the tokenizer's text for all tokens at once.

use std::sync::Arc;

use super::channels::Channels;
use super::tokenizer::Tokenizer;
use crate::token::TokenId;

/// Text of a reply in progress.
#[derive(Clone)]
pub struct TextStream {
    tokenizer: Arc<Tokenizer>,
    /// Stop strings, none of them empty.
    stops: Vec<String>,
    /// Control tokens that stop strings name, with these strings. They have no text in which a
    /// string could be found.
    stop_tokens: Vec<(TokenId, String)>,
    /// True until the first bytes of a text, before which the tokenizer added a space.
    drops_space: bool,
    /// Conversion of channels, for a model that writes them.
    channels: Option<Channels>,
    /// Start of an incomplete character, 0 to 3 bytes.
    incomplete: Vec<u8>,
    /// Text that may be the start of a stop string.
    held: String,
    /// Stop string that ended the text.
    stopped: Option<String>,
}

impl TextStream {
    /// Starts a text. `stops` end it: neither a stop string nor text after it is returned.
    pub fn new(tokenizer: Arc<Tokenizer>, stops: &[String]) -> Self {
        let named = stops.iter().filter_map(|stop| Some((tokenizer.id_of(stop.trim())?, stop.clone())));
        Self {
            stop_tokens: named.filter(|(token, _)| tokenizer.is_control(*token)).collect(),
            stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(),
            drops_space: tokenizer.strips_leading_space(),
            channels: Channels::after(&[], &tokenizer),
            tokenizer,
            incomplete: Vec::new(),
            held: String::new(),
            stopped: None,
        }
    }

    /// Continues after `prompt`, which may contain the header of the message.
    pub fn after(mut self, prompt: &[TokenId]) -> Self {
        self.channels = Channels::after(prompt, &self.tokenizer);
        self
    }

    /// Continues an earlier text, so that a leading space is part of it. `unfinished` are the bytes
    /// of a character that the earlier text began: see [`Self::unfinished`].
    pub fn continuing(mut self, unfinished: &[u8]) -> Self {
        self.drops_space = false;
        self.incomplete = unfinished.to_vec();
        self
    }

    /// Returns the bytes of a character that has begun, at most three. They are not part of the
    /// text until the character is complete.
    pub fn unfinished(&self) -> &[u8] {
        &self.incomplete
    }

    /// Adds a token and returns the text that is now certain.
    pub fn push(&mut self, token: TokenId) -> String {
        let named = self.stop_tokens.iter().find(|(stop, _)| *stop == token);
        if let Some((_, stop)) = named.filter(|_| !self.stopped()) {
            let stop = stop.clone();
            let rest = self.finish();
            self.stopped = Some(stop);
            return rest;
        }
        let tokenizer = Arc::clone(&self.tokenizer);
        let bytes = tokenizer.next_bytes(token, &mut self.drops_space);
        let text = self.complete(bytes);
        let replaced = self.channels.as_mut().and_then(|channels| channels.push(token, &text));
        self.release(replaced.as_deref().unwrap_or(&text))
    }

    /// Returns whether a stop string has ended the text; nothing is added after it.
    pub fn stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Stop string that ended the text, if one did.
    pub fn stop_string(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Ends the text and returns what was held back, without an [unfinished](Self::unfinished)
    /// character.
    pub fn finish(&mut self) -> String {
        if self.stopped() { String::new() } else { std::mem::take(&mut self.held) }
    }

    /// Appends bytes and returns all characters that are complete.
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

    /// Appends text and returns the part that cannot belong to a stop string.
    fn release(&mut self, text: &str) -> String {
        if self.stopped() {
            return String::new();
        }
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| Some((self.held.find(stop)?, stop)));
        if let Some((at, stop)) = found.min_by_key(|(at, _)| *at) {
            self.stopped = Some(stop.clone());
            self.held.truncate(at);
            return std::mem::take(&mut self.held);
        }
        let kept = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let held = self.held.split_off(self.held.len() - kept);
        std::mem::replace(&mut self.held, held)
    }
}

/// Returns the length in bytes of the longest suffix of `text` that is a proper prefix of `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    let fits = |&length: &usize| text.as_bytes().ends_with(&stop.as_bytes()[..length]);
    // A prefix that splits a character cannot end valid text.
    (1..=longest).rev().filter(|&length| stop.is_char_boundary(length)).find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::ModelSource;
    use foretoken_testkit::Gguf;

    fn tokenizer(gguf: &Gguf) -> Arc<Tokenizer> {
        let folder = tempfile::tempdir().unwrap();
        let path = gguf.write(folder.path());
        Arc::new(ModelSource::open(&path).unwrap().tokenizer().unwrap())
    }

    /// Tokenizer with a token for each byte.
    fn bytes() -> Arc<Tokenizer> {
        tokenizer(&Gguf::tiny())
    }

    fn stream(stops: &[&str]) -> TextStream {
        let stops: Vec<String> = stops.iter().map(|&stop| stop.to_owned()).collect();
        TextStream::new(bytes(), &stops)
    }

    fn pieces(stream: &mut TextStream, text: &str) -> Vec<String> {
        text.bytes().map(|byte| stream.push(byte.into())).collect()
    }

    #[test]
    fn a_character_comes_whole_or_not_at_all() {
        let mut stream = stream(&[]);
        assert_eq!(pieces(&mut stream, "aé🦙"), ["a", "", "é", "", "", "", "🦙"]);
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn the_bytes_of_an_unfinished_character_are_kept_and_not_shown() {
        let mut ended = stream(&[]);
        assert_eq!(ended.push(b'a'.into()) + &ended.push(0xE2) + &ended.push(0x96), "a");
        assert_eq!((ended.finish().as_str(), ended.unfinished()), ("", &[0xE2, 0x96][..]));
        let mut next = stream(&[]).continuing(ended.unfinished());
        assert_eq!(next.push(0x88) + &next.push(b'b'.into()), "\u{2588}b");
        // Bytes that the next token does not complete are damaged.
        let mut other = stream(&[]).continuing(&[0xE2, 0x96]);
        assert_eq!(other.push(b'b'.into()), "\u{FFFD}b");
    }

    #[test]
    fn a_stop_string_that_names_a_control_token_ends_the_text_there() {
        let mut named = stream(&["<s>\n"]);
        assert_eq!(pieces(&mut named, "a<").concat() + &named.push(258) + &named.push(b'c'.into()), "a<");
        assert_eq!(named.stop_string(), Some("<s>\n"));
        // The text of one that is written letter by letter counts, too.
        let mut spelled = stream(&["<s>"]);
        assert_eq!(pieces(&mut spelled, "a<s>b").concat(), "a");
    }

    #[test]
    fn a_stop_string_and_what_follows_are_never_handed_out() {
        let mut stream = stream(&["END"]);
        assert_eq!(pieces(&mut stream, "an ENDing").concat(), "an ");
        assert_eq!(stream.stop_string(), Some("END"));
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn what_only_looked_like_a_stop_string_comes_with_the_next_token() {
        let mut stream = stream(&["END"]);
        assert_eq!(pieces(&mut stream, "EEN "), ["", "E", "", "EN "]);
        assert!(!stream.stopped());
        assert_eq!(pieces(&mut stream, "EN"), ["", ""]);
        assert_eq!(stream.finish(), "EN");
    }

    #[test]
    fn the_stop_string_that_begins_first_ends_the_text() {
        let mut stream = stream(&["lo wo", "o w", ""]);
        assert_eq!(pieces(&mut stream, "hello world").concat(), "hell");
        // One token may contain a whole stop string and text before it.
        let mut stream = self::stream(&["el"]);
        assert_eq!(stream.push(257), "h");
        assert!(stream.stopped());
    }

    #[test]
    fn only_the_first_word_of_a_text_loses_its_added_space() {
        let spaced = tokenizer(&Gguf::sentence_piece(&[("▁a", -1.0)]));
        let mut stream = TextStream::new(Arc::clone(&spaced), &[]);
        // Control tokens have no text.
        assert_eq!([1, 259, 259].map(|token| stream.push(token)), ["", "a", " a"]);
        let mut continuing = TextStream::new(spaced, &[]).continuing(&[]);
        assert_eq!(continuing.push(259), " a");
    }

    proptest! {
        #[test]
        fn pieces_join_to_the_decoded_text(tokens in prop::collection::vec(0u32..262, 0..40)) {
            thread_local!(static TOKENIZER: Arc<Tokenizer> = bytes());
            let tokenizer = TOKENIZER.with(Arc::clone);
            let mut stream = TextStream::new(Arc::clone(&tokenizer), &[]);
            let mut text: String = tokens.iter().map(|&token| stream.push(token)).collect();
            text.push_str(&stream.finish());
            text.push_str(&String::from_utf8_lossy(stream.unfinished()));
            prop_assert_eq!(text, tokenizer.decode(&tokens));
        }

        #[test]
        fn sentence_pieces_join_to_the_decoded_text(tokens in prop::collection::vec(0u32..264, 0..40)) {
            thread_local!(static TOKENIZER: Arc<Tokenizer> = tokenizer(
                &Gguf::sentence_piece(&[("▁", -2.0), ("▁a", -1.0), ("a", -3.0), ("▁▁", -1.0), ("é", -3.0)])
            ));
            let tokenizer = TOKENIZER.with(Arc::clone);
            let mut stream = TextStream::new(Arc::clone(&tokenizer), &[]);
            let mut text: String = tokens.iter().map(|&token| stream.push(token)).collect();
            text.push_str(&stream.finish());
            text.push_str(&String::from_utf8_lossy(stream.unfinished()));
            prop_assert_eq!(text, tokenizer.decode(&tokens));
        }

        #[test]
        fn text_ends_where_the_first_stop_string_begins(
            text in "[abé]{0,12}",
            stops in prop::collection::vec("[abé]{1,4}", 1..3),
        ) {
            thread_local!(static TOKENIZER: Arc<Tokenizer> = bytes());
            let mut stream = TextStream::new(TOKENIZER.with(Arc::clone), &stops);
            let mut found: String = text.bytes().map(|byte| stream.push(byte.into())).collect();
            found.push_str(&stream.finish());
            // The stop string that completes first ends the text; among several, the one that
            // begins first.
            let complete = (0..=text.len()).filter(|&end| text.is_char_boundary(end)).find_map(|end| {
                stops.iter().filter_map(|stop| text[..end].find(stop.as_str())).min()
            });
            prop_assert_eq!(stream.stopped(), complete.is_some());
            prop_assert_eq!(found, &text[..complete.unwrap_or(text.len())]);
        }
    }
}
