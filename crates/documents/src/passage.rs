//! Passages: consecutive parts of a text that are found and shown by themselves.

use std::ops::Range;

/// Longest passage in bytes, about 220 tokens of English.
pub const LONGEST: usize = 900;

/// Longest heading in characters; longer ones are cut.
const LONGEST_HEADING: usize = 120;

/// Separates the pages of a text.
const PAGE_END: char = '\u{c}';

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Bytes of the text. Passages follow each other without gaps.
    pub range: Range<usize>,
    /// Page of its first letter, from 1, in a text with page ends.
    pub page: Option<u32>,
    /// Last heading at or before its first letter.
    pub heading: Option<String>,
}

/// Cuts a text before pages, headings and paragraphs, and within longer ones after sentences,
/// between words or, at last, between letters.
pub fn passages(text: &str) -> Vec<Passage> {
    let mut pages = text.contains(PAGE_END).then_some(1);
    let (mut heading, mut found) = (None, Vec::<Passage>::new());
    for block in blocks(text) {
        let part = &text[block.clone()];
        let (begins_page, own) = (part.starts_with(PAGE_END), heading_of(part));
        if begins_page {
            pages = pages.map(|page| page + 1);
        }
        let is_heading = own.is_some();
        heading = own.or(heading);
        match found.last_mut() {
            Some(last) if !begins_page && !is_heading && last.range.len() + block.len() <= LONGEST => {
                last.range.end = block.end;
            }
            _ => found.push(Passage { range: block, page: pages, heading: heading.clone() }),
        }
    }
    found
}

/// Pages, headings and paragraphs of a text with the empty lines after them, each in parts of at
/// most [`LONGEST`] bytes.
fn blocks(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let end = start + length_of_first(rest);
        let block = start..end;
        start = end;
        Some(block)
    })
}

/// Length of the first block of a text that is not empty. Only as much of the text is looked at as
/// a passage may have.
fn length_of_first(text: &str) -> usize {
    let longest = text.floor_char_boundary(LONGEST.min(text.len()));
    let (mut length, mut after_empty_line) = (0, false);
    for line in text[..longest].split_inclusive('\n') {
        let is_empty = line.trim().is_empty() && !line.contains(PAGE_END);
        if length > 0
            && (after_empty_line && !is_empty || line.starts_with(PAGE_END) || heading_of(line).is_some())
        {
            return length;
        }
        if let Some((at, _)) = line.char_indices().skip(1).find(|(_, letter)| *letter == PAGE_END) {
            return length + at;
        }
        length += line.len();
        after_empty_line |= is_empty;
    }
    if longest < text.len() { cut(&text[..longest]) } else { length }
}

/// Length of a text's beginning up to its last sentence end, else its last space, in its second
/// half; the whole length without one.
fn cut(text: &str) -> usize {
    let second_half = |at: &usize| *at > text.len() / 2;
    let ends = ['.', '!', '?', '\n', '。', '！', '？', '।'];
    let sentence = text.char_indices().rev().find(|(at, letter)| {
        let next = &text[at + letter.len_utf8()..];
        ends.contains(letter)
            && (!letter.is_ascii() || *letter == '\n' || next.starts_with(char::is_whitespace))
    });
    let space = text.char_indices().rev().find(|(_, letter)| letter.is_whitespace());
    let after = |found: Option<(usize, char)>| found.map(|(at, letter)| at + letter.len_utf8());
    after(sentence).filter(second_half).or(after(space).filter(second_half)).unwrap_or(text.len())
}

/// The heading that a block begins with: a line of Markdown.
fn heading_of(block: &str) -> Option<String> {
    let line = block.lines().next()?.trim_start_matches(PAGE_END);
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    let is_heading = (1..=6).contains(&level) && words.starts_with(' ') && !words.trim().is_empty();
    is_heading.then(|| words.trim().chars().take(LONGEST_HEADING).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        passages(text).into_iter().map(|passage| &text[passage.range]).collect()
    }

    #[test]
    fn short_paragraphs_share_a_passage_and_headings_begin_one() {
        assert_eq!(texts("a\n\nb\nc\n"), ["a\n\nb\nc\n"]);
        assert_eq!(texts("a\n# B\nb\n\nc\n## D\n"), ["a\n", "# B\nb\n\nc\n", "## D\n"]);
        assert_eq!(texts("#include <a>\n#\n#b"), ["#include <a>\n#\n#b"]);
        assert!(texts("").is_empty());
        let found = passages("# A\n\nfox\n\n# B\nhen");
        let headings: Vec<_> = found.iter().map(|passage| passage.heading.as_deref()).collect();
        assert_eq!(headings, [Some("A"), Some("B")]);
    }

    #[test]
    fn paragraphs_stay_whole_where_they_fit() {
        let paragraph = format!("{}.\n\n", "fox ".repeat(100));
        assert_eq!(texts(&paragraph.repeat(5)), [paragraph.repeat(2), paragraph.repeat(2), paragraph]);
    }

    #[test]
    fn pages_are_counted_from_one_where_a_text_has_page_ends() {
        let found = passages("one\u{c}two\n\u{c}\n\u{c}four");
        let pages: Vec<_> = found.iter().map(|passage| passage.page).collect();
        assert_eq!(pages, [Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(passages("one\n\ntwo")[0].page, None);
    }

    #[test]
    fn long_paragraphs_are_cut_after_a_sentence_or_a_word() {
        let sentences = "The fox jumps over the lazy dog. ".repeat(60);
        assert!(texts(&sentences).iter().all(|part| part.trim_end().ends_with("dog.")));
        let words = "fox ".repeat(600);
        assert!(texts(&words).iter().all(|part| part.ends_with("fox ")));
        assert_eq!(texts(&"x".repeat(2 * LONGEST)), vec!["x".repeat(LONGEST); 2]);
        let chinese = "狐狸跳过懒狗。".repeat(200);
        assert!(texts(&chinese).iter().all(|part| part.ends_with('。')));
        assert_eq!(texts(&"狐".repeat(301))[1], "狐");
    }

    proptest! {
        #[test]
        fn passages_are_short_and_cover_the_text(
            text in "(fox |[.!?]|\n|\n\n|# |#|\u{c}|狐狸|ä|x{300}|y{950}){0,60}"
        ) {
            let found = texts(&text);
            prop_assert_eq!(found.concat(), text.clone());
            prop_assert!(found.iter().all(|part| !part.is_empty() && part.len() <= LONGEST));
        }
    }
}
