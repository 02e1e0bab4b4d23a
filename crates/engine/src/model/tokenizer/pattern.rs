//! Regular expressions of strangers: which are run, and how long. They cut a text into words before merges; what
//! is done with the words is known to `words.rs`.
//!
//! A search goes back at most [`RETREATS`] times, and repetitions within repetitions are refused, so that a
//! search takes a time in proportion to the text. All searches in a text together end at a deadline.

use std::time::Instant;

use fancy_regex::{Expr, RegexBuilder};
use tokenizers::tokenizer::pattern;

/// Bytes of a pattern. The longest in use, which lists letters by their numbers, has 1,200.
const LONGEST: usize = 8192;
/// Times a part may be repeated where a pattern counts. Those in use count to three.
const REPEATS: usize = 64;
/// Times a search may try another way. Those in use need one for each alternative.
const RETREATS: usize = 50_000;
/// Bytes of a compiled part.
const COMPILED: usize = 4 << 20;

/// A pattern that may be run.
pub(super) struct Pattern(fancy_regex::Regex);

impl Pattern {
    /// Compiles `text`, in which a line's beginning and end are meant by `^` and `$`, as by Oniguruma, for which
    /// tokenizer.json files are written.
    ///
    /// # Errors
    /// A reason to run it not: it is damaged, or may take too long.
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

    /// Its matches in a text, for the library; it fails after `deadline`.
    pub fn until(&self, deadline: Instant) -> Search<'_> {
        Search { pattern: self, deadline }
    }
}

/// Checks that nothing in a pattern takes a time out of proportion. `room`: how often it may be repeated;
/// `endless`: it is in a repetition without end.
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

/// A pattern with the time by which all of a text has been searched.
pub(super) struct Search<'a> {
    pattern: &'a Pattern,
    deadline: Instant,
}

impl pattern::Pattern for &Search<'_> {
    fn find_matches(&self, text: &str) -> tokenizers::Result<Vec<(tokenizers::Offsets, bool)>> {
        let mut parts = Vec::new();
        let mut end = 0;
        for found in self.pattern.0.find_iter(text) {
            if Instant::now() > self.deadline {
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
