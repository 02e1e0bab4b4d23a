//! Detection of replies that repeat themselves: the same sequence of tokens many times over, or
//! words that form few different sequences of three. Only the reply's tokens count, so drafts
//! change nothing.
//!
//! Tables, lists, code and counting are not loops: numbers and code count as words that all differ,
//! and a token sequence has to repeat for hundreds of tokens.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use foretoken_model::token::TokenId;

/// Longest token sequence whose repetition is detected.
const LONGEST_PERIOD: usize = 256;

/// Least number of tokens that repeat earlier ones, and least number of repetitions.
const MIN_REPEATED: usize = 256;
const MIN_TIMES: usize = 7;

/// Word counts, and the least number of different three-word sequences in as many words. Songs with
/// a refrain have 0.23 of them different over 200 words, and end before 600; replies of SmolLM2
/// that loop with changing words have 0.25 to 0.38 over 600.
const MIN_DIFFERENT: [(usize, usize); 2] = [(200, 40), (600, 228)];

/// State of the detection over one reply.
#[derive(Debug)]
pub struct Loops {
    last: VecDeque<TokenId>,
    /// For each distance, the number of last tokens that equal the tokens at that distance before.
    repeated: Vec<usize>,
    /// The current word, and hashes of the two words before it.
    word: String,
    before: VecDeque<u64>,
    /// One for each of [`MIN_DIFFERENT`].
    windows: [Window; 2],
    /// Number of words that are not prose; each counts as different from all others.
    others: u64,
}

impl Default for Loops {
    fn default() -> Self {
        Self {
            last: VecDeque::with_capacity(LONGEST_PERIOD + 1),
            repeated: vec![0; LONGEST_PERIOD],
            word: String::new(),
            before: VecDeque::new(),
            windows: MIN_DIFFERENT.map(|(words, different)| Window::new(words, different)),
            others: 0,
        }
    }
}

impl Loops {
    /// Adds the next token and its text; returns true if the reply repeats itself.
    pub fn push(&mut self, token: TokenId, text: &str) -> bool {
        let words = self.push_text(text);
        self.push_token(token) || words
    }

    fn push_token(&mut self, token: TokenId) -> bool {
        let mut repeats = false;
        for (index, &other) in self.last.iter().rev().enumerate() {
            let repeated = &mut self.repeated[index];
            *repeated = if other == token { *repeated + 1 } else { 0 };
            repeats |= *repeated >= MIN_REPEATED.max(MIN_TIMES * (index + 1));
        }
        self.last.push_back(token);
        if self.last.len() > LONGEST_PERIOD {
            self.last.pop_front();
        }
        repeats
    }

    fn push_text(&mut self, text: &str) -> bool {
        let mut repeats = false;
        for letter in text.chars() {
            if letter.is_whitespace() {
                let word = std::mem::take(&mut self.word);
                repeats |= !word.is_empty() && self.push_word(&word);
            } else {
                self.word.push(letter);
            }
        }
        repeats
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
        let mut repeats = false;
        for window in &mut self.windows {
            repeats |= window.push(sequence);
        }
        repeats
    }
}

/// The last three-word sequences of a reply, with the number of times that each occurs.
#[derive(Debug)]
struct Window {
    words: usize,
    min_different: usize,
    sequences: VecDeque<u64>,
    counts: HashMap<u64, usize>,
}

impl Window {
    fn new(words: usize, min_different: usize) -> Self {
        Self { words, min_different, sequences: VecDeque::new(), counts: HashMap::new() }
    }

    /// Adds a sequence; returns true if the window is full and has too few different sequences.
    fn push(&mut self, sequence: u64) -> bool {
        *self.counts.entry(sequence).or_insert(0) += 1;
        self.sequences.push_back(sequence);
        if self.sequences.len() > self.words
            && let Some(oldest) = self.sequences.pop_front()
        {
            let count = self.counts.entry(oldest).or_insert(1);
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.sequences.len() == self.words && self.counts.len() < self.min_different
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

    /// Number of words after which a text counts as repeating itself; each word is a token.
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
    fn a_repeated_sentence_is_a_loop() {
        let after = circles_after(&"It was very special. ".repeat(200)).unwrap();
        assert!(after < 400, "{after}");
        assert!(circles_after(&"she continued on her way and ".repeat(200)).is_some());
        assert!(circles_after("a").is_none());
        assert!(circles_after(&"x ".repeat(600)).is_some());
    }

    #[test]
    fn sentences_that_rarely_differ_are_a_loop() {
        let things = ["lantern", "stone", "star", "river"];
        let text: String = (0..200)
            .map(|at| format!("The fox was very happy and very proud of the {}. ", things[at % 7 % 4]))
            .collect();
        assert!(circles_after(&text).is_some());
    }

    #[test]
    fn endlessly_permuted_words_are_a_loop() {
        let (verbs, mut place) = (["made", "makes", "creating", "helped", "helps", "building", "comes"], 1);
        let text: String = (0..1200)
            .map(|_| {
                place = place * 75 % 65537;
                format!("which {} ", verbs[place % 7])
            })
            .collect();
        let after = circles_after(&text).unwrap();
        assert!((600..700).contains(&after), "{after}");
    }

    #[test]
    fn requested_lists_and_code_are_no_loop() {
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
