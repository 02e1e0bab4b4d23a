//! A document's text while it is put together, up to the limit.

use crate::unread::Unread;

/// Longest text of a file, in bytes: more than the contexts of models hold.
pub const MAX_TEXT: usize = 4 << 20;

/// Text of bounded length.
#[derive(Default)]
pub struct Text(String);

impl Text {
    /// Appends `text`.
    ///
    /// # Errors
    /// `TooLong`.
    pub fn push(&mut self, text: &str) -> Result<(), Unread> {
        if self.0.len() + text.len() > MAX_TEXT {
            return Err(Unread::TooLong);
        }
        self.0.push_str(text);
        Ok(())
    }

    /// Appends a line without spaces around it, unless it is empty.
    ///
    /// # Errors
    /// `TooLong`.
    pub fn line(&mut self, line: &str) -> Result<(), Unread> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(());
        }
        self.push(line)?;
        self.push("\n")
    }

    /// Appends a heading of this level after an empty line.
    ///
    /// # Errors
    /// `TooLong`.
    pub fn heading(&mut self, level: usize, title: &str) -> Result<(), Unread> {
        let title = title.trim();
        if title.is_empty() {
            return Ok(());
        }
        self.push(if self.0.is_empty() { "" } else { "\n" })?;
        self.push(&"#".repeat(level.clamp(1, 6)))?;
        self.push(" ")?;
        self.line(&title.replace('\n', " "))
    }

    pub fn into_string(self) -> String {
        self.0
    }
}
