//! Whether a reply runs in circles: its last tokens are the same sequence many times over, or its last words hold few
//! different sequences of three. Looks at the reply alone, one token at a time, so that drafts change nothing.
//!
//! Tables, lists, code and counting are no circles: numbers and code count as words that are all different, and a
//! sequence has to come again for hundreds of tokens.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::token::TokenId;

/// The longest sequence that is looked for.
const LONGEST_PERIOD: usize = 256;

/// So many tokens have to repeat what came before them, and so many times over.
const MIN_REPEATED: usize = 256;
const MIN_TIMES: usize = 7;

/// The words that are looked at, and how many of their sequences of three have to be different.
const WORDS: usize = 200;
const MIN_DIFFERENT: usize = WORDS / 5;

/// See the module.
#[derive(Debug)]
pub struct Loops {
    last: VecDeque<TokenId>,
    /// Of each distance, the last tokens in a row that are the same as those so far before them.
    repeated: Vec<usize>,
    /// The word under way, and the two before it.
    word: String,
    before: VecDeque<u64>,
    sequences: VecDeque<u64>,
    counts: HashMap<u64, usize>,
    /// Words that were no words of prose, each different from all others.
    others: u64,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            last: VecDeque::with_capacity(LONGEST_PERIOD + 1),
            repeated: vec![0; LONGEST_PERIOD],
            word: String::new(),
            before: VecDeque::new(),
            sequences: VecDeque::new(),
            counts: HashMap::new(),
            others: 0,
        }
    }
}

impl Loops {
    /// Takes in the next token and the text it adds; whether the reply runs in circles.
    pub fn push(&mut self, token: TokenId, text: &str) -> bool {
        let words = self.push_text(text);
        self.push_token(token) || words
    }

    fn push_token(&mut self, token: TokenId) -> bool {
        let mut circles = false;
        for (index, &other) in self.last.iter().rev().enumerate() {
            let repeated = &mut self.repeated[index];
            *repeated = if other == token { *repeated + 1 } else { 0 };
            circles |= *repeated >= MIN_REPEATED.max(MIN_TIMES * (index + 1));
        }
        self.last.push_back(token);
        if self.last.len() > LONGEST_PERIOD {
            self.last.pop_front();
        }
        circles
    }

    fn push_text(&mut self, text: &str) -> bool {
        let mut circles = false;
        for letter in text.chars() {
            if letter.is_whitespace() {
                let word = std::mem::take(&mut self.word);
                circles |= !word.is_empty() && self.push_word(&word);
            } else {
                self.word.push(letter);
            }
        }
        circles
    }

    fn push_word(&mut self, word: &str) -> bool {
        let core =
            word.trim_matches(|letter: char| letter.is_ascii_punctuation() && !"<>{}|`=/".contains(letter));
        let prose =
            !core.is_empty() && core.chars().all(|letter| letter.is_alphabetic() || "'’-".contains(letter));
        let number = if prose {
            hash(&core.to_lowercase())
        } else {
            self.others += 1;
            hash(&self.others)
        };
        self.before.push_back(number);
        if self.before.len() < 3 {
            return false;
        }
        let sequence = hash(&self.before);
        self.before.pop_front();
        *self.counts.entry(sequence).or_insert(0) += 1;
        self.sequences.push_back(sequence);
        if self.sequences.len() > WORDS
            && let Some(oldest) = self.sequences.pop_front()
        {
            let count = self.counts.entry(oldest).or_insert(1);
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.sequences.len() == WORDS && self.counts.len() < MIN_DIFFERENT
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words after which a text is said to run in circles; a token is a word, with what is before it.
    fn circles_after(text: &str) -> Option<usize> {
        let (mut loops, mut names) = (Loops::default(), HashMap::new());
        let mut tokens = text.split_inclusive(|letter: char| !letter.is_alphanumeric());
        tokens.position(|piece| {
            let next = names.len() as TokenId;
            let token = *names.entry(piece.to_owned()).or_insert(next);
            loops.push(token, piece)
        })
    }

    #[test]
    fn a_sentence_over_and_over_runs_in_circles() {
        let after = circles_after(&"It was very special. ".repeat(200)).unwrap();
        assert!(after < 400, "{after}");
        assert!(circles_after(&"she continued on her way and ".repeat(200)).is_some());
        assert!(circles_after("a").is_none());
        assert!(circles_after(&"x ".repeat(600)).is_some());
    }

    #[test]
    fn sentences_that_differ_by_a_word_now_and_then_do() {
        let things = ["lantern", "stone", "star", "river"];
        let text: String = (0..200)
            .map(|at| format!("The fox was very happy and very proud of the {}. ", things[at % 7 % 4]))
            .collect();
        assert!(circles_after(&text).is_some());
    }

    #[test]
    fn what_people_ask_for_does_not() {
        let count: String = (1..=500).map(|number| format!("{number}\n")).collect();
        let listed: String =
            (1..=300).map(|number| format!("{number}. Item {number} of the list\n")).collect();
        let table: String =
            (1..=200).map(|row| format!("| {row} | {} | {} | yes |\n", row * row, row * 7)).collect();
        let zeros = format!("[{}]", ["[0, 0, 0, 0, 0, 0, 0, 0]"; 12].join(",\n"));
        let json: String = (1..=150)
            .map(|id| format!("{{\"id\": {id}, \"name\": \"user{id}\", \"active\": true, \"tags\": []}},\n"))
            .collect();
        let html: String = (1..=150).map(|id| format!("<tr><td>{id}</td><td>row</td></tr>\n")).collect();
        let code: String = (0..150)
            .map(|at| {
                format!("    let value_{at} = read(input, {at})?;\n    assert_eq!(value_{at}, {at});\n")
            })
            .collect();
        let verses = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
        let song: String = verses
            .iter()
            .map(|number| {
                format!(
                    "{number} green bottles hanging on the wall,\n{number} green bottles hanging on the wall,\n\
                     and if one green bottle should accidentally fall,\nthere'd be less than {number} of them \
                     hanging on the wall.\n\n"
                )
            })
            .collect();
        let refrain: String = (0..12)
            .map(|verse| {
                format!("In verse {} the river sings of things that never were before.\n{}", verses[verse % 10],
                    "Row, row, row your boat, gently down the stream,\nmerrily, merrily, life is but a dream.\n")
            })
            .collect();
        let words: String = verses.iter().cycle().take(120).map(|word| format!("{word} ")).collect();
        for text in [count, listed, table, zeros, json, html, code, song, refrain, words] {
            assert_eq!(circles_after(&text), None, "{}", &text[..60]);
        }
    }
}
