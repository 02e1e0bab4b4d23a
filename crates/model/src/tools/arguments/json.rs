//! Arguments as one JSON object.

use super::text::take;
use crate::tools::mark::unmarked;

/// Position within a JSON object.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Reader {
    /// See `Reader::read` of the module above.
    pub fn read(&mut self, held: &mut String, json: &mut String) -> bool {
        let end = self.end(held);
        json.push_str(&unmarked(&take(held, end.unwrap_or(held.len()))));
        end.is_some()
    }

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
