//! Words for the full-text index. In scripts without spaces every letter is indexed as a word, and
//! two neighbours are searched for.

use std::collections::HashSet;

/// Most words of a question that are searched for, and most characters of it that are read.
const MOST: usize = 48;
const LONGEST: usize = 20_000;

/// Returns a text with spaces around the letters of scripts without spaces.
pub fn searchable(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            // FTS5 ends a text at a NUL.
            '\0' => spaced.push(' '),
            letter if is_unspaced(letter) => spaced.extend([' ', letter, ' ']),
            letter => spaced.push(letter),
        }
    }
    spaced
}

/// Returns the different words of a question as strings of an FTS5 expression; of a long question
/// the first ones.
pub fn words(question: &str) -> Vec<String> {
    let end = question.char_indices().nth(LONGEST).map_or(question.len(), |(end, _)| end);
    let mut seen = HashSet::new();
    let parts = question[..end].split(|letter: char| !is_letter(letter)).flat_map(parts_of);
    let words = parts.filter(|word| seen.insert(word.to_lowercase()));
    words.take(MOST).map(|word| format!("\"{word}\"")).collect()
}

/// Joins words to an expression that each of them matches; `None` without words.
pub fn expression(words: Vec<String>) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// Parts of a word: pairs of letters of scripts without spaces, and the rest.
fn parts_of(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let runs = letters.chunk_by(|a, b| is_unspaced(*a) == is_unspaced(*b));
    let parts = |run: &[char]| match run {
        [first, _, ..] if is_unspaced(*first) => {
            run.windows(2).map(|pair| format!("{} {}", pair[0], pair[1])).collect()
        }
        run => vec![run.iter().collect()],
    };
    runs.flat_map(parts).collect()
}

/// Returns whether FTS5 counts a character as part of a word, or may do so.
fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || is_unspaced(letter) || ('\u{300}'..='\u{36f}').contains(&letter)
}

/// Returns whether a letter's script has no spaces between words: Thai, Lao, Tibetan, Burmese,
/// Khmer, kana and Chinese characters.
fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{e00}'..='\u{fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_once_and_cjk_is_searched_for_in_pairs() {
        assert_eq!(words("Is the fox's FOX \"red\"?"), ["\"Is\"", "\"the\"", "\"fox\"", "\"s\"", "\"red\""]);
        assert_eq!(words("Rust的狐狸3"), ["\"Rust\"", "\"的 狐\"", "\"狐 狸\"", "\"3\""]);
        assert_eq!(words("狐"), ["\"狐\""]);
        assert!(words("?! \0").is_empty());
        assert_eq!(words(&"a b ".repeat(LONGEST)), ["\"a\"", "\"b\""]);
        assert_eq!(words(&(0..100).map(|n| format!("w{n} ")).collect::<String>()).len(), MOST);
    }

    #[test]
    fn letters_of_scripts_without_spaces_become_words() {
        assert_eq!(searchable("a狐狸b\0"), "a 狐  狸 b ");
    }
}
