//! Tokens that are matched whole before merges or scores: control tokens and added tokens. Finds
//! where a text spells them, and where user input does so by accident.

use std::collections::HashMap;
use std::ops::Range;

use super::table::Kind;
use crate::limits;
use crate::token::TokenId;

/// Names of HTML tags among Gemma's added tokens. These count as ordinary text, like white space,
/// words and single characters.
const MARKUP: &[&str] = &[
    "table",
    "caption",
    "thead",
    "tbody",
    "tfoot",
    "tr",
    "th",
    "td",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "strong",
    "em",
    "b",
    "i",
    "u",
    "s",
    "sub",
    "sup",
    "code",
    "ul",
    "ol",
    "li",
    "p",
    "br",
    "a",
];

/// A token matched whole.
#[derive(Debug)]
pub(super) struct Mark {
    pub text: String,
    pub id: TokenId,
    pub control: bool,
    /// True if the token absorbs white space before or after it in a text.
    pub takes_before: bool,
    pub takes_behind: bool,
    /// True if the token means no more than its text.
    pub ordinary: bool,
}

impl Mark {
    pub fn new(text: String, id: TokenId, kind: Kind) -> Self {
        let control = kind == Kind::Control;
        let name =
            text.strip_prefix("</").or_else(|| text.strip_prefix('<')).and_then(|t| t.strip_suffix('>'));
        let markup = name.is_some_and(|name| MARKUP.contains(&name));
        let word =
            text.chars().count() == 1 || text.chars().all(|c| c.is_alphanumeric() || c.is_whitespace());
        let ordinary = !control && (markup || word);
        Self { text, id, control, takes_before: false, takes_behind: false, ordinary }
    }
}

/// All tokens of a vocabulary that are matched whole.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Tokens by first byte, longest first.
    marks: HashMap<u8, Vec<Mark>>,
    /// Length of the longest token in bytes.
    longest: usize,
}

/// Checks that no more than [`limits::WHOLE_TOKENS`] of `texts` begin with the same byte, since all
/// of these are compared at each place of a text.
///
/// # Errors
/// The reason to reject the tokens.
pub(super) fn check<'a>(texts: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut counts = [0; 256];
    for first in texts.filter_map(|text| text.bytes().next()) {
        counts[usize::from(first)] += 1;
    }
    match counts.into_iter().max().filter(|&most| most > limits::WHOLE_TOKENS) {
        Some(most) => Err(format!(
            "expected at most {} added tokens that begin alike, found {most}",
            limits::WHOLE_TOKENS
        )),
        None => Ok(()),
    }
}

impl Whole {
    pub fn new(all: impl Iterator<Item = Mark>) -> Self {
        let mut whole = Self::default();
        for mark in all {
            let Some(&first) = mark.text.as_bytes().first() else { continue };
            whole.longest = whole.longest.max(mark.text.len());
            whole.marks.entry(first).or_default().push(mark);
        }
        for marks in whole.marks.values_mut() {
            marks.sort_by_key(|mark| std::cmp::Reverse(mark.text.len()));
        }
        whole
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.marks.values().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Mark> {
        self.marks.values_mut().flatten()
    }

    /// Returns the longest `allowed` token that `text` begins with.
    fn at(&self, text: &str, allowed: impl Fn(&Mark) -> bool) -> Option<&Mark> {
        let marks = self.marks.get(text.as_bytes().first()?)?;
        marks.iter().find(|mark| text.starts_with(&mark.text) && allowed(mark))
    }

    /// Splits `text` into `allowed` tokens matched whole and the text between them.
    pub fn stretches(
        &self,
        text: &str,
        allowed: impl Fn(Range<usize>, &Mark) -> bool,
    ) -> Vec<(Range<usize>, Option<TokenId>)> {
        let mut stretches = Vec::new();
        // Start of the current stretch of text.
        let mut plain = 0;
        let mut at = 0;
        while at < text.len() {
            let Some(mark) = self.at(&text[at..], |mark| allowed(at..at + mark.text.len(), mark)) else {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
                continue;
            };
            let before = &text[plain..at];
            let start = plain + if mark.takes_before { before.trim_end() } else { before }.len();
            at += mark.text.len();
            if mark.takes_behind {
                at = text.len() - text[at..].trim_start().len();
            }
            if plain < start {
                stretches.push((plain..start, None));
            }
            stretches.push((start..at, Some(mark.id)));
            plain = at;
        }
        if plain < text.len() {
            stretches.push((plain..text.len(), None));
        }
        stretches
    }

    /// Returns the ranges of `text` that spell tokens with a meaning, ignoring ASCII case, or a
    /// part of one at either end; ascending and disjoint. With `controls`, considers control tokens
    /// only.
    pub fn spelled(&self, text: &str, controls: bool) -> Vec<Range<usize>> {
        let counts = |mark: &&Mark| mark.control || !controls && !mark.ordinary;
        let marks: Vec<&[u8]> = self.iter().filter(counts).map(|mark| mark.text.as_bytes()).collect();
        let mut by_first: HashMap<u8, Vec<&[u8]>> = HashMap::new();
        for &mark in &marks {
            by_first.entry(mark[0].to_ascii_lowercase()).or_default().push(mark);
        }
        let starting =
            |at: usize| by_first.get(&text.as_bytes()[at].to_ascii_lowercase()).into_iter().flatten();
        let mut found = Vec::new();
        found.extend(ends_of(&marks, text));
        for (at, _) in text.char_indices() {
            let rest = &text.as_bytes()[at..];
            let lengths = starting(at).filter(|mark| begins(rest, mark)).map(|mark| mark.len());
            found.extend(lengths.max().map(|length| at..at + length));
        }
        let end = text.trim_end().len();
        let tail = text.char_indices().map(|(at, _)| at).find(|&at| {
            at < end
                && at + self.longest > end
                && starting(at).any(|mark| begins(mark, &text.as_bytes()[at..end]))
        });
        found.extend(tail.map(|at| at..end));
        joined(found)
    }
}

/// Returns whether the token at `range` is recognised, given `plain`, ascending ranges of plain
/// text.
pub(super) fn is_read(plain: &[Range<usize>], range: &Range<usize>, mark: &Mark) -> bool {
    let next = plain.partition_point(|plain| plain.end <= range.start);
    mark.ordinary || plain.get(next).is_none_or(|plain| plain.start >= range.end)
}

/// Returns whether `text` begins with `so`, ignoring ASCII case.
fn begins(text: &[u8], so: &[u8]) -> bool {
    text.get(..so.len()).is_some_and(|start| start.eq_ignore_ascii_case(so))
}

/// Returns the longest prefix of `text`, ignoring white space, that is a proper suffix of a token.
fn ends_of(marks: &[&[u8]], text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    let rest = &text.as_bytes()[start..];
    let length = |mark: &&[u8]| {
        let longest = rest.len().min(mark.len().saturating_sub(1));
        (1..=longest).rev().find(|&length| mark[mark.len() - length..].eq_ignore_ascii_case(&rest[..length]))
    };
    let length = marks.iter().filter_map(length).max()?;
    text.is_char_boundary(start + length).then_some(start..start + length)
}

/// Sorts ranges and merges those that overlap or touch.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}
