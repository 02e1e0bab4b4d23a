//! Regular expressions from untrusted model files, which split a text into words before merges
//! (`words.rs`).
//!
//! Backtracking is limited to [`RETREATS`] steps and nested unbounded repetitions are rejected, so
//! that a search takes time proportional to the text. A deadline covers all searches in a text.

use std::time::Instant;

use fancy_regex::{Expr, RegexBuilder};
use tokenizers::tokenizer::pattern;

use super::cancel;

/// Longest pattern in bytes. The longest in real tokenizers, with lists of letters, has 1,200.
const LONGEST: usize = 8192;
/// Largest product of counted repetitions. Real patterns count to three.
const REPEATS: usize = 64;
/// Backtracking steps of a search. Real patterns need one for each alternative.
const RETREATS: usize = 50_000;
/// Largest size of a compiled part, in bytes.
const COMPILED: usize = 4 << 20;

/// A compiled pattern within the limits.
pub(super) struct Pattern(fancy_regex::Regex);

impl Pattern {
    /// Compiles `text`. As in Oniguruma, for which tokenizer.json files are written, `^` and `$`
    /// match at the boundaries of lines.
    ///
    /// # Errors
    /// The reason to reject a pattern: it is invalid or might take too long.
    pub fn new(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("a pattern has {} bytes, and at most {LONGEST} are run", text.len()));
        }
        let refused = |reason: String| format!("the pattern '{text}' is not run: {reason}");
        let tree = Expr::parse_tree(text).map_err(|error| refused(error.to_string()))?;
        sober(&tree.expr, REPEATS, false).map_err(refused)?;
        let compiled = RegexBuilder::new(text)
            .oniguruma_mode(true)
            .multi_line(true)
            .backtrack_limit(RETREATS)
            .delegate_size_limit(COMPILED)
            .build();
        compiled.map(Self).map_err(|error| refused(error.to_string()))
    }

    /// Returns a search for the library, which fails after `deadline`.
    pub fn until(&self, deadline: Instant) -> Search<'_> {
        Search { pattern: self, deadline }
    }
}

/// Rejects parts of a pattern that take disproportionate time. `room` is the remaining product of
/// repetitions; `endless` is true inside an unbounded repetition.
fn sober(part: &Expr, room: usize, endless: bool) -> Result<(), String> {
    match part {
        Expr::Concat(parts) | Expr::Alt(parts) => {
            parts.iter().try_for_each(|part| sober(part, room, endless))
        }
        Expr::Group(inner) | Expr::AtomicGroup(inner) | Expr::LookAround(inner, _) => {
            sober(inner, room, endless)
        }
        Expr::Repeat { child, lo, hi, .. } => {
            let without_end = *hi == usize::MAX;
            let times = if without_end { *lo } else { *hi };
            if without_end && endless {
                return Err("it repeats a repetition, which may take for ever".to_owned());
            }
            if times > room {
                return Err(format!("it repeats a part more than {REPEATS} times"));
            }
            sober(child, room / times.max(1), endless || without_end)
        }
        Expr::Empty
        | Expr::Any { .. }
        | Expr::Assertion(_)
        | Expr::Literal { .. }
        | Expr::Delegate { .. } => Ok(()),
        _ => Err("it refers to what it found before, which may take too long".to_owned()),
    }
}

/// A pattern with the deadline for all searches in a text.
pub(super) struct Search<'a> {
    pattern: &'a Pattern,
    deadline: Instant,
}

impl pattern::Pattern for &Search<'_> {
    fn find_matches(&self, text: &str) -> tokenizers::Result<Vec<(tokenizers::Offsets, bool)>> {
        let mut parts = Vec::new();
        let mut end = 0;
        for found in self.pattern.0.find_iter(text) {
            if Instant::now() > self.deadline || cancel::is_cancelled() {
                return Err(too_long());
            }
            let found = found.map_err(|_| too_long())?;
            if end < found.start() {
                parts.push(((end, found.start()), false));
            }
            parts.push(((found.start(), found.end()), true));
            end = found.end();
        }
        if end < text.len() || text.is_empty() {
            parts.push(((end, text.len()), false));
        }
        Ok(parts)
    }
}

fn too_long() -> tokenizers::Error {
    "cutting this text into words by the tokenizer's pattern takes too long".into()
}
