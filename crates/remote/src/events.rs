//! Parser of server-sent events for bytes in pieces of any size. Keeps at most one event, of
//! limited size.

use foretoken_json::repaired;

use crate::error::{Error, Result};

/// Largest event in bytes; a chunk of a reply has a few hundred.
const MAX_EVENT: usize = 1 << 20;

/// Parser of events; see the module.
#[derive(Debug, Default)]
pub struct Events {
    /// The line so far.
    line: Vec<u8>,
    /// The data of the event so far, if it has any.
    data: Option<Vec<u8>>,
}

impl Events {
    /// Parses bytes and calls `on` with the data of every completed event, until one returns an
    /// error.
    ///
    /// # Errors
    /// Returns `Error::TooLarge`, and errors of `on`.
    pub fn take(&mut self, bytes: &[u8], on: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let kept = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if kept + piece.len() > MAX_EVENT {
                return Err(Error::TooLarge("a line without end"));
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.end_line(line.trim_ascii_end(), on)?;
            }
        }
        Ok(())
    }

    /// Handles the end of the stream, which also completes an event.
    ///
    /// # Errors
    /// Returns errors of `on`.
    pub fn finish(&mut self, on: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        self.end_line(line.trim_ascii_end(), on)?;
        self.end_line(b"", on)
    }

    fn end_line(&mut self, line: &[u8], on: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        if line.is_empty() {
            return match self.data.take() {
                // Where a token ends inside an emoji, servers may send half a surrogate pair.
                Some(data) => on(&repaired(&data)),
                None => Ok(()),
            };
        }
        // Comments and other fields are ignored.
        let Some(value) = line.strip_prefix(b"data:").or_else(|| line.strip_prefix(b"error:")) else {
            return Ok(());
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `bytes` in pieces of `at_a_time` bytes.
    fn events(bytes: &[u8], at_a_time: usize) -> Result<Vec<String>> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        let mut on = |data: &str| {
            found.push(data.to_owned());
            Ok(())
        };
        bytes.chunks(at_a_time).try_for_each(|chunk| events.take(chunk, &mut on))?;
        events.finish(&mut on)?;
        Ok(found)
    }

    #[test]
    fn events_do_not_depend_on_how_the_bytes_are_split() {
        let bytes = ": hello\r\n\r\ndata: eins ü\r\n\r\nevent: x\ndata:zwei\ndata: 🦊\n\n\n\ndata: [DONE]";
        for at_a_time in 1..=bytes.len() {
            let found = events(bytes.as_bytes(), at_a_time).unwrap();
            assert_eq!(found, ["eins ü", "zwei\n🦊", "[DONE]"], "{at_a_time} bytes at a time");
        }
    }

    #[test]
    fn invalid_utf_8_becomes_replacement_characters() {
        assert_eq!(events(b"data: a\xff\xf0\x9fb\n\n", 1).unwrap(), ["a\u{fffd}\u{fffd}b"]);
    }

    #[test]
    fn endless_lines_and_events_are_refused_and_not_kept() {
        let endless = [b"data: ".as_slice(), &[b'x'; 10 << 20]].concat();
        assert!(matches!(events(&endless, 65_536), Err(Error::TooLarge(_))));
        let lines = b"data: 0123456789\n".repeat(1 << 20);
        assert!(matches!(events(&lines, 65_536), Err(Error::TooLarge(_))));
    }
}
