//! What a benchmark writes replies to.

use std::path::Path;

use foretoken_engine::decoder::Request;
use serde::Deserialize;

use crate::args::read_text;
use crate::error::{Error, Result};
use crate::prompt::Form;
use crate::session::Session;

/// What the starter was trained for: stories, questions, small skills.
const BUILT_IN: [&str; 6] = [
    "Tell me a story about a fox who finds a lantern.",
    "What is speculative decoding?",
    "Tell me a story about two friends who build a boat.",
    "Why is the text the same with a draft as without?",
    "Tell me a story about a girl and a red kite.",
    "Count from one to twenty.",
];

/// A line of a file of prompts; other fields are ignored.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Prompt { prompt: String },
    Turns { turns: Vec<String> },
}

/// The prompts of a file, or the built-in ones.
pub fn read(path: Option<&Path>) -> Result<Vec<String>> {
    let Some(path) = path else { return Ok(BUILT_IN.map(str::to_owned).to_vec()) };
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let prompts: Vec<String> =
        lines.map(|(index, line)| parse(path, index + 1, line)).collect::<Result<_>>()?;
    if prompts.is_empty() {
        return Err(bad(path, "an empty file".to_owned()));
    }
    Ok(prompts)
}

fn parse(path: &Path, number: usize, line: &str) -> Result<String> {
    let prompt = match serde_json::from_str(line) {
        Ok(Line::Prompt { prompt }) => Some(prompt),
        Ok(Line::Turns { turns }) => turns.into_iter().next(),
        Err(_) => None,
    };
    prompt.ok_or_else(|| bad(path, format!("something else in line {number}")))
}

fn bad(path: &Path, found: String) -> Error {
    let expected = "a JSON object a line with a \"prompt\" or a list of \"turns\"";
    Error::Content { path: path.to_owned(), expected, found }
}

/// A request like `base` for every text. All are checked before any is run.
pub fn requests(session: &Session, form: &Form, texts: &[String], base: &Request) -> Result<Vec<Request>> {
    let limit = session.decoder.target().config().context;
    let request = |text: &String| {
        let prompt = form.tokens(session.tokenizer(), text)?;
        let request = Request { prompt, ..base.clone() };
        request.admit(limit)?;
        Ok(request)
    };
    texts.iter().map(request).collect()
}
