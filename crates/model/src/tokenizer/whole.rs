//! Tokens that are matched whole before merges or scores: control tokens and added tokens. Finds
//! where a text spells them, and where user input does so by accident.

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

/// Byte strings in order, so that those with a common prefix are neighbours: a search takes a few
/// steps for each byte of a text, however many strings begin alike.
#[derive(Debug, Default)]
struct Sorted(Vec<Vec<u8>>);

impl Sorted {
    fn new(mut all: Vec<Vec<u8>>) -> Self {
        all.sort_unstable();
        all.dedup();
        Self(all)
    }
}

/// For each length, the entries that begin with so many bytes of `text`, while there are any. The
/// first of them is the shortest. Entries are sorted by `bytes`.
fn narrowed<T>(
    entries: &[T],
    bytes: impl Fn(&T) -> &[u8],
    text: impl Iterator<Item = u8>,
) -> impl Iterator<Item = &[T]> {
    let mut rest = entries;
    text.enumerate().map_while(move |(at, byte)| {
        let start = rest.partition_point(|entry| bytes(entry).get(at) < Some(&byte));
        let end = start + rest[start..].partition_point(|entry| bytes(entry).get(at) == Some(&byte));
        rest = &rest[start..end];
        (!rest.is_empty()).then_some(rest)
    })
}

/// Tokens with a meaning, in lower case, for the search for accidental spellings.
#[derive(Debug, Default)]
struct Meaningful {
    forward: Sorted,
    /// Reversed tokens.
    backward: Sorted,
    /// Bytes of the longest token.
    longest: usize,
}

impl Meaningful {
    fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let lower: Vec<Vec<u8>> = texts.map(|text| text.to_ascii_lowercase().into_bytes()).collect();
        let backward = lower.iter().map(|text| text.iter().rev().copied().collect());
        let longest = lower.iter().map(Vec::len).max().unwrap_or(0);
        Self { backward: Sorted::new(backward.collect()), forward: Sorted::new(lower), longest }
    }

    /// Length of the longest token that `text` begins with, and the number of bytes of `text` that
    /// any token begins with.
    fn at(&self, text: &[u8]) -> (Option<usize>, usize) {
        let (mut longest, mut shared) = (None, 0);
        let lower = text.iter().map(u8::to_ascii_lowercase);
        for (index, found) in narrowed(&self.forward.0, |text| text, lower).enumerate() {
            shared = index + 1;
            longest = (found[0].len() == shared).then_some(shared).or(longest);
        }
        (longest, shared)
    }

    /// Longest prefix of `text`, ignoring white space, that is a proper suffix of a token.
    fn suffix_at(&self, text: &str) -> Option<Range<usize>> {
        let start = text.len() - text.trim_start().len();
        let rest = &text.as_bytes()[start..];
        let is_suffix = |&length: &usize| {
            let lower = rest[..length].iter().rev().map(u8::to_ascii_lowercase);
            let found = narrowed(&self.backward.0, |text| text, lower).nth(length - 1);
            // Tokens are different, so a second one is longer.
            found.is_some_and(|found| found.len() > 1 || found[0].len() > length)
        };
        let length = (1..=rest.len().min(self.longest.saturating_sub(1))).rev().find(is_suffix)?;
        text.is_char_boundary(start + length).then_some(start..start + length)
    }
}

/// All tokens of a vocabulary that are matched whole.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// Tokens ordered by text, each text once.
    marks: Vec<Mark>,
    /// Control tokens, and these with all other tokens that mean more than their text.
    controls: Meaningful,
    meaningful: Meaningful,
}

/// Checks that no token is longer than [`limits::WHOLE_TOKEN_BYTES`], which bounds the search at
/// each place of a text.
///
/// # Errors
/// The reason to reject the tokens.
pub(crate) fn check<'a>(texts: impl Iterator<Item = &'a str>) -> Result<(), String> {
    match texts.map(str::len).max().filter(|&most| most > limits::WHOLE_TOKEN_BYTES) {
        Some(most) => Err(format!(
            "expected at most {} bytes in an added token, found {most}",
            limits::WHOLE_TOKEN_BYTES
        )),
        None => Ok(()),
    }
}

impl Whole {
    /// Sorts tokens; the first of equal texts counts.
    pub fn new(all: impl Iterator<Item = Mark>) -> Self {
        let mut marks: Vec<Mark> = all.filter(|mark| !mark.text.is_empty()).collect();
        let texts = |counts: fn(&Mark) -> bool| {
            Meaningful::new(marks.iter().filter(|mark| counts(mark)).map(|mark| mark.text.as_str()))
        };
        let controls = texts(|mark| mark.control);
        let meaningful = texts(|mark| mark.control || !mark.ordinary);
        marks.sort_by(|left, right| left.text.cmp(&right.text));
        marks.dedup_by(|later, first| later.text == first.text);
        Self { marks, controls, meaningful }
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Mark> {
        self.marks.iter_mut()
    }

    /// Returns the longest `allowed` token that `text` begins with.
    fn at(&self, text: &str, allowed: impl Fn(&Mark) -> bool) -> Option<&Mark> {
        let found = narrowed(&self.marks, |mark| mark.text.as_bytes(), text.bytes());
        let whole = found.enumerate().filter(|(index, found)| found[0].text.len() == index + 1);
        let whole: Vec<&Mark> = whole.map(|(_, found)| &found[0]).collect();
        whole.into_iter().rev().find(|mark| allowed(mark))
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
        let tokens = if controls { &self.controls } else { &self.meaningful };
        let end = text.trim_end().len();
        let mut found: Vec<Range<usize>> = tokens.suffix_at(text).into_iter().collect();
        let mut tail = None;
        for (at, _) in text.char_indices() {
            let (longest, shared) = tokens.at(&text.as_bytes()[at..]);
            found.extend(longest.map(|length| at..at + length));
            // The first place from which the text ends within a token.
            if tail.is_none() && at < end && at + shared >= end {
                tail = Some(at..end);
            }
        }
        found.extend(tail);
        joined(found)
    }
}

/// Returns whether the token at `range` is recognised, given `plain`, ascending ranges of plain
/// text.
pub(super) fn is_read(plain: &[Range<usize>], range: &Range<usize>, mark: &Mark) -> bool {
    let next = plain.partition_point(|plain| plain.end <= range.start);
    mark.ordinary || plain.get(next).is_none_or(|plain| plain.start >= range.end)
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
