//! Splitting of a text into words before merges or scores: the steps of a `pre_tokenizer` that
//! language models use, with patterns that are safe to run (`pattern.rs`).

use std::time::{Duration, Instant};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use tokenizers::pattern::Invert;
use tokenizers::tokenizer::SplitDelimiterBehavior;
use tokenizers::{PreTokenizedString, PreTokenizer, PreTokenizerWrapper};

use super::pattern::Pattern;

/// Time for all patterns in a text. Real patterns search a megabyte in less than a second.
const LIMIT: Duration = Duration::from_secs(20);
/// Largest number of steps; real models have up to seven.
const MOST_STEPS: usize = 32;
/// Steps of the library that contain no pattern.
const PLAIN: &[&str] = &["ByteLevel", "Digits", "Metaspace", "Punctuation", "Whitespace", "WhitespaceSplit"];

/// Steps in order.
pub(super) struct Words(Vec<Step>);

enum Step {
    Cut { pattern: Pattern, behavior: SplitDelimiterBehavior, invert: bool },
    Library(PreTokenizerWrapper),
}

/// A `Split` step of tokenizer.json.
#[derive(Deserialize)]
struct Split {
    pattern: SplitPattern,
    behavior: SplitDelimiterBehavior,
    invert: bool,
}

#[derive(Deserialize)]
enum SplitPattern {
    String(String),
    Regex(String),
}

impl Words {
    /// Builds steps that isolate the matches of each pattern in turn, followed by `last`.
    ///
    /// # Errors
    /// The reason to reject a pattern.
    pub fn isolated(patterns: &[&str], last: impl Into<PreTokenizerWrapper>) -> Result<Self, String> {
        let cut = |pattern: &&str| {
            let behavior = SplitDelimiterBehavior::Isolated;
            Ok(Step::Cut { pattern: Pattern::new(pattern)?, behavior, invert: false })
        };
        let mut steps = patterns.iter().map(cut).collect::<Result<Vec<Step>, String>>()?;
        steps.push(Step::Library(last.into()));
        Ok(Self(steps))
    }

    /// Adds the steps that a document describes.
    fn add(&mut self, described: &Json) -> Result<(), String> {
        match described["type"].as_str().unwrap_or("none") {
            "Sequence" => {
                let steps = described["pretokenizers"].as_array();
                return steps.into_iter().flatten().try_for_each(|step| self.add(step));
            }
            "Split" => {
                let split = Split::deserialize(described).map_err(|error| error.to_string())?;
                let pattern = match split.pattern {
                    SplitPattern::Regex(pattern) => Pattern::new(&pattern)?,
                    SplitPattern::String(text) => Pattern::new(&fancy_regex::escape(&text))?,
                };
                self.0.push(Step::Cut { pattern, behavior: split.behavior, invert: split.invert });
            }
            kind if PLAIN.contains(&kind) => {
                let step = PreTokenizerWrapper::deserialize(described).map_err(|error| error.to_string())?;
                self.0.push(Step::Library(step));
            }
            kind => return Err(format!("it cuts a text into words by '{kind}', which is not known here")),
        }
        if self.0.len() > MOST_STEPS {
            return Err(format!("it cuts a text into words in more than {MOST_STEPS} steps"));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let described = Json::deserialize(deserializer)?;
        let mut words = Self(Vec::new());
        words.add(&described).map_err(D::Error::custom)?;
        Ok(words)
    }
}

impl PreTokenizer for Words {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> tokenizers::Result<()> {
        let deadline = Instant::now() + LIMIT;
        for step in &self.0 {
            match step {
                Step::Library(step) => step.pre_tokenize(text)?,
                Step::Cut { pattern, behavior, invert } => {
                    let search = pattern.until(deadline);
                    text.split(|_, part| match invert {
                        true => part.split(Invert(&search), *behavior),
                        false => part.split(&search, *behavior),
                    })?;
                }
            }
        }
        Ok(())
    }
}
