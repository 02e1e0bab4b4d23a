//! The conversations in a file of JSON, one after the other: the elements of a list, or the one that is all of the
//! file. Only where they end is looked at; what they are is left to `kinds`.

use std::io::{self, BufRead};

use super::problem::bad;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{CommandError, ErrorCode};

/// Longest conversation in a file, in bytes.
pub const LONGEST: usize = 256 << 20;

/// See the module. Memory is taken for one of them at a time.
pub struct Elements<'a, R> {
    file: R,
    place: Place,
    /// Bytes that were read.
    read: u64,
    /// That may be read, and those that one element may have.
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

/// Where it is in JSON: how deep in lists and objects, and whether in a string.
#[derive(Default)]
struct Depth {
    open: usize,
    string: bool,
    escaped: bool,
}

impl<'a, R: BufRead> Elements<'a, R> {
    /// Gives up once more than `most` bytes were read, or `cancel` says so.
    pub fn new(file: R, most: u64, cancel: &'a Cancel) -> Self {
        Self { file, place: Place::Begin, read: 0, most, longest: LONGEST, cancel }
    }

    /// Bytes that were read so far.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next one, which may be no JSON; `None` after the last.
    ///
    /// # Errors
    /// `BadFile` where the file cannot be read, ends early or goes on after its list; `Cancelled`.
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

    /// What is left of the file, or in a list, what comes before the next comma or the end.
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
                        return Err(unread("it goes on after its end"));
                    }
                    return text(json);
                }
                Some(_) => return text(json),
                None => {}
            }
        }
        match self.place {
            Place::List => Err(unread("it is cut off")),
            _ => text(json),
        }
    }

    /// White space, and what some programs mark UTF-8 with.
    fn skip_space(&mut self) -> Result<()> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF) = self.fill()?.first() {
            self.consume(1);
        }
        Ok(())
    }

    /// What is read and not consumed; nothing at the end of the file.
    fn fill(&mut self) -> Result<&[u8]> {
        if self.cancel.is_cancelled() {
            let message = "The import was stopped. Nothing was imported.";
            return Err(CommandError::new(ErrorCode::Cancelled, message));
        }
        if self.read > self.most {
            return Err(bad(
                "What is in this archive takes too much room. Unpack it, and import the conversations.json in it.",
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
    /// Goes on by a byte; whether an element of a list ends before it.
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

fn text(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(unread)
}

fn unread(reason: impl std::fmt::Display) -> CommandError {
    bad(format!("This file could not be read: {reason}. Nothing was imported."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(json: &[u8], most: u64) -> Result<Vec<String>> {
        let cancel = Cancel::default();
        // Few bytes at a time, so that everything is cut somewhere.
        let mut elements = Elements::new(io::BufReader::with_capacity(3, json), most, &cancel);
        let mut all = Vec::new();
        while let Some(element) = elements.next()? {
            all.push(element);
        }
        assert_eq!(elements.read(), json.len() as u64);
        Ok(all)
    }

    #[test]
    fn elements_end_where_commas_and_brackets_are_theirs() {
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
    fn a_list_that_does_not_end_or_goes_on_after_its_end_is_refused() {
        for json in ["[", "[1", "[1,", "[\"]", "[1]]", "[1],2", "[\u{1b}"] {
            let error = elements(json.as_bytes(), u64::MAX).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadFile, "{json}");
        }
        assert!(elements(b"[\"\xff\"]", u64::MAX).is_err());
    }

    #[test]
    fn no_more_is_read_than_may_be() {
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
