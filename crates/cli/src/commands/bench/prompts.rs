//! What a benchmark writes replies to.

use std::path::Path;

use clap::ValueEnum;
use foretoken_engine::decoder::Request;
use serde::{Deserialize, Serialize};

use crate::args::read_text;
use crate::error::{Error, Result};
use crate::prompt::Form;
use crate::session::Session;

/// What is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Stories, questions, small skills: what the starter was trained for.
    #[default]
    Chat,
    /// Programs to go on with, which the starter knows nothing of.
    Code,
    /// A given text to be said again.
    Copy,
}

const CHAT: [&str; 6] = [
    "Tell me a story about a fox who finds a lantern.",
    "What is speculative decoding?",
    "Tell me a story about two friends who build a boat.",
    "Why is the text the same with a draft as without?",
    "Tell me a story about a girl and a red kite.",
    "Count from one to twenty.",
];

const CODE: [&str; 4] = [
    "fn sum(values: &[i32]) -> i32 {\n    let mut total = 0;\n    for value in values {\n",
    "def fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n",
    "for (let i = 0; i < items.length; i++) {\n  const item = items[i];\n",
    "SELECT name, count(*) FROM people WHERE age > 30 GROUP BY name ORDER BY",
];

const COPY: [&str; 4] = [
    "Repeat after me: the little fox found a lantern in the old barn and took it home to show it to his mother.",
    "Repeat after me: one day two friends built a boat and sailed over the lake to the island with the tall tree.",
    "Repeat after me: the girl let her red kite fly high over the hill, and the wind took it far away to the sea.",
    "Repeat after me: the cat and the dog and the bird sat by the fire and told stories until the moon came up.",
];

pub fn built_in(workload: Workload) -> Vec<String> {
    let prompts: &[&str] = match workload {
        Workload::Chat => &CHAT,
        Workload::Code => &CODE,
        Workload::Copy => &COPY,
    };
    prompts.iter().map(|&prompt| prompt.to_owned()).collect()
}

/// A line of a file of prompts; other fields are ignored.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Prompt { prompt: String },
    Turns { turns: Vec<String> },
}

/// The prompts of a file.
pub fn read(path: &Path) -> Result<Vec<String>> {
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
