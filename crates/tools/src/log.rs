//! Latest lines of a server: its standard error, and remarks of this program.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most lines, and the longest line in characters.
const LINES: usize = 200;
const LONGEST_LINE: usize = 500;

/// Longest name or address of a server's entry in bytes.
const LONGEST_IDENTIFIER: usize = 2_000;

/// Log of a server; clones share its lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    /// Adds a line without control characters; a line that is too long is cut.
    pub(crate) fn add(&self, line: &str) {
        let line = printable(line);
        if line.is_empty() {
            return;
        }
        let mut lines = self.lines();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.lines().iter().cloned().collect()
    }

    /// Returns the last line; empty without one.
    pub(crate) fn last(&self) -> String {
        self.lines().back().cloned().unwrap_or_default()
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the beginning of a text as one line without control characters.
pub(crate) fn printable(text: &str) -> String {
    let spaced = text.trim().chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter });
    spaced.filter(|letter| !letter.is_control()).take(LONGEST_LINE).collect()
}

/// Returns a name that a server gets back unchanged; `None` for one that is empty, too long or has
/// control characters.
pub(crate) fn identifier(name: String) -> Option<String> {
    let fits = (1..=LONGEST_IDENTIFIER).contains(&name.len()) && !name.contains(char::is_control);
    fits.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_latest_lines_without_control_characters() {
        let log = Log::default();
        for number in 0..LINES + 5 {
            log.add(&format!("\u{1b}[31m{number}\r\n"));
        }
        log.add("  ");
        log.add(&"x".repeat(9_000));
        let lines = log.all();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES, "[31m6"));
        assert_eq!(log.last().len(), LONGEST_LINE);
    }
}
