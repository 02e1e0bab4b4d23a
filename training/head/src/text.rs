//! Prompts and replies, one JSON object per line.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use foretoken_model::token::TokenId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A prompt for the target.
#[derive(Debug, Deserialize)]
pub struct Prompt {
    /// `None` if the target writes the prompt too.
    pub prompt: Option<String>,
    pub temperature: f32,
}

/// A prompt and its reply as tokens.
#[derive(Debug, Serialize, Deserialize)]
pub struct Text {
    /// Number of the prompt.
    pub number: usize,
    /// Number of prompt tokens.
    pub prompt: usize,
    pub tokens: Vec<TokenId>,
}

/// Reads the lines of a file; none if it does not exist. An incomplete last line is left out.
///
/// # Errors
/// Returns an error if the file cannot be read.
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
