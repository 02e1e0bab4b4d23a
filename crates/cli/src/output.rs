//! Standard output, only for results, and standard error, for all other messages.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{IsTerminal, Write, stdout};

use foretoken_engine::trace::{Finish, Summary};
use serde::Serialize;

use crate::error::{Error, Result};

/// Writes one JSON object as a line.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(value).map_err(std::io::Error::from)?;
    line.push(b'\n');
    let mut out = stdout().lock();
    out.write_all(&line)?;
    Ok(out.flush()?)
}

/// Writes text unchanged; on a terminal, with its control characters made visible.
pub fn text(text: &str) -> Result<()> {
    let text = if stdout().is_terminal() { harmless(text) } else { Cow::Borrowed(text) };
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes [`text`] and a line break.
pub fn line(line: impl Display) -> Result<()> {
    text(&format!("{line}\n"))
}

/// Writes a line to standard error, in colour where the terminal shows it. Write errors are
/// ignored.
pub fn note(line: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

/// Replaces the last line on the terminal of standard error.
pub fn status(line: impl Display) {
    let mut err = anstream::stderr().lock();
    let _ = write!(err, "\r\u{1b}[2K{line}").and_then(|()| err.flush());
}

/// Writes an error to standard error. Its text may contain parts of a model file or a template.
pub fn failure(error: &Error) {
    note(format_args!("error: {}", harmless(&error.to_string())));
}

/// Returns text from a model or a file with its control characters (except line breaks and tabs)
/// made visible: a terminal would obey them, for example to move the cursor or to change its title.
/// So are characters that change the direction of text, with which a line could imitate another.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let directs = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let dangerous = |c: char| c.is_control() && c != '\n' && c != '\t' || directs(c);
    if text.contains(dangerous) {
        Cow::Owned(text.replace(dangerous, "\u{FFFD}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The statistics of a reply in one line.
pub fn summary(summary: &Summary) -> String {
    let speed = summary.tokens_per_second.map_or(String::new(), |speed| format!(", {speed:.1} tokens/s"));
    let drafts = summary.acceptance_rate.map_or(String::new(), |rate| {
        format!(
            ", {:.2} tokens per round, {:.0} % of {} judged draft tokens accepted",
            summary.tokens_per_round,
            rate * 100.0,
            summary.judged
        )
    });
    let against_plain = summary.speedup.map_or(String::new(), |speedup| format!(", {speedup}"));
    let ended = match summary.finish {
        Finish::Stop => "ended by the model",
        Finish::Length => "stopped at the maximum length",
        Finish::ContextFull => "stopped because the context is full",
        Finish::Cancelled => "stopped",
        Finish::Repeating => "stopped because the model kept repeating itself (--keep-loops continues)",
    };
    format!(
        "{} tokens{speed}{against_plain}{drafts}, first token after {:.0} ms, {ended}",
        summary.tokens, summary.ttft_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_a_model_do_not_reach_the_terminal() {
        assert_eq!(harmless("a\tb\n\u{1b}[2Jc\u{9b}d\r"), "a\tb\n\u{FFFD}[2Jc\u{FFFD}d\u{FFFD}");
        assert_eq!(harmless("a\u{202e}b\u{2066}c\u{200f}"), "a\u{FFFD}b\u{FFFD}c\u{FFFD}");
        assert!(matches!(harmless("é\n שלום"), Cow::Borrowed(_)));
    }
}
