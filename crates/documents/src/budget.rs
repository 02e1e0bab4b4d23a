//! Files that are part of a prompt as a whole; longer ones are searched.

use crate::block::block;

/// Most bytes of a longer file that a prompt begins with.
const BEGINNING: usize = 2_000;

/// Part of a file that a prompt has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    /// As many bytes of its beginning; the file is searched.
    Beginning(usize),
}

/// Tokens of a prompt for whole files, which are passed in the order in which they were attached.
#[derive(Debug, Clone, Copy)]
pub struct FileBudget {
    /// Most tokens of all together, and how many are left.
    limit: usize,
    left: usize,
    /// Estimates the tokens of a text by its bytes.
    estimate: fn(usize) -> usize,
}

impl FileBudget {
    /// A budget of `limit` tokens; `usize::MAX` for no limit.
    pub fn new(limit: usize, estimate: fn(usize) -> usize) -> Self {
        Self { limit, left: limit, estimate }
    }

    /// Tokens left for further files; `None` without a limit.
    pub fn left(&self) -> Option<u32> {
        (self.limit < usize::MAX).then(|| u32::try_from(self.left).unwrap_or(u32::MAX))
    }

    /// Returns what the prompt has of the next file, of `bytes` of text.
    pub fn next(&mut self, bytes: usize) -> Part {
        let (part, tokens) = match self.tokens(bytes) {
            tokens if tokens <= self.left => (Part::Whole, tokens),
            _ => {
                let beginning = BEGINNING.min(self.left);
                (Part::Beginning(beginning), self.tokens(beginning))
            }
        };
        self.left -= tokens;
        part
    }

    /// Formats the next file as a [`block`], or its beginning with a line about the `rest`.
    pub fn shown(&mut self, name: &str, text: &str, rest: &str) -> String {
        let Part::Beginning(bytes) = self.next(text.len()) else { return block(name, text) };
        let beginning = &text[..text.floor_char_boundary(bytes)];
        let lines = text.lines().count();
        format!(
            "{}\n[The file has {lines} lines and is too long to be shown whole. {rest}]",
            block(name, beginning)
        )
    }

    /// Most tokens of all whole files together.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Estimated tokens of a text of as many bytes.
    pub(crate) fn tokens(&self, bytes: usize) -> usize {
        (self.estimate)(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: usize) -> FileBudget {
        FileBudget::new(limit, |bytes| bytes.div_ceil(4))
    }

    #[test]
    fn files_are_whole_until_their_sum_exceeds_the_limit() {
        let mut budget = budget(100);
        assert_eq!([200, 204].map(|bytes| budget.next(bytes)), [Part::Whole, Part::Beginning(50)]);
        assert_eq!(budget.left(), Some(37));
        assert_eq!(
            [148, 4, 0].map(|bytes| budget.next(bytes)),
            [Part::Whole, Part::Beginning(0), Part::Whole]
        );
        assert_eq!(self::budget(usize::MAX).left(), None);
    }

    #[test]
    fn a_long_file_is_shown_with_its_beginning() {
        let long = "äöü fox\n".repeat(1_000);
        assert_eq!(budget(usize::MAX).shown("a.txt", &long, "Ask."), block("a.txt", &long));
        let short = budget(500).shown("a.txt", &long, "Ask.");
        assert!(short.len() < 500 + 200, "{}", short.len());
        assert!(short.starts_with("a.txt:\n```txt\näöü fox\n"), "{short}");
        assert!(short.ends_with("\n[The file has 1000 lines and is too long to be shown whole. Ask.]"));
    }
}
