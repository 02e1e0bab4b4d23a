//! Splits a JSON file into conversations: the elements of a list, or the whole file. Only their
//! ends are found here; `kinds` parses them.

use std::borrow::Cow;
use std::io::{self, BufRead};

use foretoken_json::repaired;

use super::problem::bad;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode};

/// Longest conversation in a file, in bytes.
pub const LONGEST: usize = 256 << 20;

/// Reader of elements; see the module. Holds one in memory at a time.
pub struct Elements<'a, R> {
    file: R,
    place: Place,
    /// Bytes read so far.
    read: u64,
    /// Most bytes to read, and of one element.
    most: u64,
    longest: usize,
    cancel: &'a Cancel,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Begin,
    /// Before an element of a list.
    List,
    End,
}

/// Nesting in lists and objects, and in a string.
#[derive(Default)]
struct Depth {
    open: usize,
    string: bool,
    escaped: bool,
}

impl<'a, R: BufRead> Elements<'a, R> {
    /// Creates a reader that stops after `most` bytes, or when `cancel` is set.
    pub fn new(file: R, most: u64, cancel: &'a Cancel) -> Self {
        Self { file, place: Place::Begin, read: 0, most, longest: LONGEST, cancel }
    }

    /// Returns the bytes read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Returns the next element, which need not be valid JSON; `None` after the last.
    ///
    /// # Errors
    /// Returns `BadFile` if the file cannot be read, ends early or continues after its list;
    /// `Cancelled`.
    pub fn next(&mut self) -> Result<Option<String>> {
        let begin = self.place == Place::Begin;
        if begin {
            self.skip_space()?;
            self.place = if self.fill()?.first() == Some(&b'[') { Place::List } else { Place::End };
            if self.place == Place::End {
                return self.element().map(Some);
            }
            self.consume(1);
        }
        if self.place == Place::End {
            return Ok(None);
        }
        let element = self.element()?;
        Ok((!(begin && self.place == Place::End && element.trim().is_empty())).then_some(element))
    }

    /// Returns the text up to the next comma or end of the list, or the rest of the file.
    fn element(&mut self) -> Result<String> {
        let (mut json, mut depth) = (Vec::new(), Depth::default());
        loop {
            let listed = self.place == Place::List;
            let bytes = self.fill()?;
            if bytes.is_empty() {
                break;
            }
            let end = if listed { bytes.iter().position(|&byte| depth.ends_at(byte)) } else { None };
            let taken = end.unwrap_or(bytes.len());
            json.extend_from_slice(&bytes[..taken]);
            let last = end.map(|end| bytes[end]);
            self.consume(taken + usize::from(end.is_some()));
            if json.len() > self.longest {
                return Err(unread(format!("a conversation has more than {} MB", self.longest >> 20)));
            }
            match last {
                Some(b']') => {
                    self.place = Place::End;
                    self.skip_space()?;
                    if !self.fill()?.is_empty() {
                        return Err(unread("it continues after its end"));
                    }
                    return Ok(text(json));
                }
                Some(_) => return Ok(text(json)),
                None => {}
            }
        }
        match self.place {
            Place::List => Err(unread("it ends too early")),
            _ => Ok(text(json)),
        }
    }

    /// Skips white space and a UTF-8 byte order mark.
    fn skip_space(&mut self) -> Result<()> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF) = self.fill()?.first() {
            self.consume(1);
        }
        Ok(())
    }

    /// Returns the buffered bytes; nothing at the end of the file.
    fn fill(&mut self) -> Result<&[u8]> {
        if self.cancel.is_cancelled() {
            let message = "The import was stopped. Nothing was imported.";
            return Err(CommandError::new(ErrorCode::Cancelled, message));
        }
        if self.read > self.most {
            return Err(bad(
                "This archive is too large to unpack here. Unpack it, and import the conversations.json in it.",
            ));
        }
        self.file.fill_buf().map_err(|error: io::Error| unread(error))
    }

    fn consume(&mut self, bytes: usize) {
        self.file.consume(bytes);
        self.read += bytes as u64;
    }
}

impl Depth {
    /// Advances by a byte; returns whether an element of a list ends before it.
    fn ends_at(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = self.string,
            b'"' => self.string = !self.string,
            _ if self.string => {}
            b',' | b']' if self.open == 0 => return true,
            b'[' | b'{' => self.open += 1,
            b']' | b'}' => self.open = self.open.saturating_sub(1),
            _ => {}
        }
        false
    }
}

/// Returns the text with damaged characters replaced.
fn text(json: Vec<u8>) -> String {
    match repaired(&json) {
        Cow::Owned(text) => text,
        // Borrowed, so it is valid as it is.
        Cow::Borrowed(_) => String::from_utf8(json).unwrap_or_default(),
    }
}

fn unread(reason: impl std::fmt::Display) -> CommandError {
    bad(format!("This file could not be read: {reason}. Nothing was imported."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(json: &[u8], most: u64) -> Result<Vec<String>> {
        let cancel = Cancel::default();
        // A small buffer splits the text everywhere.
        let mut elements = Elements::new(io::BufReader::with_capacity(3, json), most, &cancel);
        let mut all = Vec::new();
        while let Some(element) = elements.next()? {
            all.push(element);
        }
        assert_eq!(elements.read(), json.len() as u64);
        Ok(all)
    }

    #[test]
    fn elements_end_at_their_own_commas_and_brackets() {
        for (json, expected) in [
            (r#"[{"a":[1,2]},{"b":"],\"]\\"}]"#, vec![r#"{"a":[1,2]}"#, r#"{"b":"],\"]\\"}"#]),
            ("\u{feff} [ 1 , [] ]\n", vec![" 1 ", " [] "]),
            ("[]", vec![]),
            (" [ ] ", vec![]),
            ("[1,]", vec!["1", ""]),
            ("[,]", vec!["", ""]),
            ("{\"a\":[1]} ", vec!["{\"a\":[1]} "]),
            ("", vec![""]),
            ("[}]", vec!["}"]),
        ] {
            assert_eq!(elements(json.as_bytes(), u64::MAX).unwrap(), expected, "{json}");
        }
    }

    #[test]
    fn a_list_without_end_or_with_trailing_text_is_refused() {
        for json in ["[", "[1", "[1,", "[\"]", "[1]]", "[1],2", "[\u{1b}"] {
            let error = elements(json.as_bytes(), u64::MAX).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadFile, "{json}");
        }
        assert_eq!(elements(b"[\"\xff\"]", u64::MAX).unwrap(), ["\"\u{fffd}\""]);
    }

    #[test]
    fn reading_stops_at_the_limit() {
        assert!(elements(b"[1,2,3]", 7).is_ok());
        let error = elements(b"[1,2,3]", 5).unwrap_err();
        assert!(error.message.contains("archive"), "{}", error.message);
        let cancel = Cancel::default();
        for (json, most) in [("[[1,2],[3,4]]", 5), ("{\"a\":7}", 7)] {
            for longest in [most - 1, most] {
                let mut elements = Elements { longest, ..Elements::new(json.as_bytes(), u64::MAX, &cancel) };
                assert_eq!(elements.next().is_ok(), longest == most, "{json}");
            }
        }
    }
}
