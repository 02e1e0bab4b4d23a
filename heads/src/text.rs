//! Prompts and what was replied, a line of JSON each.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use foretoken_engine::token::TokenId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What the target is asked.
#[derive(Debug, Deserialize)]
pub struct Prompt {
    /// `None` where the target writes the prompt, too.
    pub prompt: Option<String>,
    pub temperature: f32,
}

/// A prompt and its reply in tokens.
#[derive(Debug, Serialize, Deserialize)]
pub struct Text {
    /// The number of its prompt.
    pub number: usize,
    /// How many of the tokens the prompt has.
    pub prompt: usize,
    pub tokens: Vec<TokenId>,
}

/// The lines of a file; none of one that is not there. A last line that was cut off is left out.
///
/// # Errors
/// When the file cannot be read.
pub fn lines<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut found = Vec::new();
    for line in BufReader::new(file).lines() {
        match serde_json::from_str(&line?) {
            Ok(value) => found.push(value),
            Err(error) if error.is_eof() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}
