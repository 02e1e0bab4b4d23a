//! Prompts of a benchmark.

use std::path::Path;

use clap::ValueEnum;
use foretoken_engine::decoder::Request;
use foretoken_engine::session::Session;
use serde::{Deserialize, Serialize};

use crate::args::read_text;
use crate::error::{Error, Result};

/// Built-in prompts by topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Stories, questions, small skills: what the starter was trained for.
    #[default]
    Chat,
    /// Programs to continue, which the starter was not trained for.
    Code,
    /// A given text to repeat.
    Copy,
    /// Programs, questions, arithmetic and summaries, for models that follow instructions.
    Tasks,
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

const TASKS: [&str; 12] = [
    "Write a Python function `merge(a, b)` that merges two sorted lists into one sorted list without sorting again. Add a docstring and three doctests.",
    "Complete this Rust function and explain each line:\n\n```rust\n/// The length of the longest run of equal neighbours.\nfn longest_run(values: &[i32]) -> usize {\n```",
    "Write a JavaScript function that debounces another function, then a short example that uses it on a search field.",
    "Here is a table: people(id, name, born, city). Write SQL for: how many people live in each city; the oldest person of each city; all pairs with the same birthday.",
    "I have a free afternoon in a town I do not know. Ask me nothing and suggest a plan with four stops, and say for each why it is worth it.",
    "Write a polite e-mail to a landlord about a heating that has not worked for three days, and then a shorter second version of it.",
    "Explain to a ten-year-old how a bicycle stays upright, then explain the same to a student of physics.",
    "A baker sells 48 rolls in the morning and half as many in the afternoon, at 0.60 each. The flour for all of them cost 9.50. How much is left? Show the steps.",
    "A train leaves at 9:40 and travels 210 km at 84 km/h, waits 15 minutes, and travels 90 km at 60 km/h. When does it arrive? Show the steps.",
    "Three friends share a bill of 87.30. One pays twice as much as each of the others. How much does each of them pay? Check the result.",
    "Summarise in three sentences: The harbour was built in 1873 for ships that carried grain. When the railway came, the ships went elsewhere, and the basin silted up. In the 1950s fishermen used what was left of it; in 1988 the last of them sold his boat. The town then dug the basin out again and let it to people with sailing boats, who pay more than the grain ever did. The old granary is a museum now, and its tower a café with a view over the bay. Twice a year, in spring and in autumn, the water rises so high that the café has to close.",
    "Summarise as a list of five points: Bees find flowers by colour and scent, and tell each other where they are by dancing. The angle of the dance gives the direction against the sun, its length the distance. A hive in summer has up to fifty thousand bees, nearly all of them workers. In winter they form a ball around the queen and keep it warm by trembling. What they eat then is the honey of the summer, about twenty kilograms of it. A beekeeper who takes more has to feed them sugar.",
];

pub fn built_in(workload: Workload) -> Vec<String> {
    let prompts: &[&str] = match workload {
        Workload::Chat => &CHAT,
        Workload::Code => &CODE,
        Workload::Copy => &COPY,
        Workload::Tasks => &TASKS,
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

/// Reads the prompts of a file.
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

/// A request like `base` for every text. All texts are checked before the first one runs.
pub fn requests(session: &Session, texts: &[String], base: &Request) -> Result<Vec<Request>> {
    let limit = session.context();
    let request = |text: &String| {
        let prompt = session.text(text)?;
        let request = Request { prompt, ..base.clone() };
        request.admit(limit)?;
        Ok(request)
    };
    texts.iter().map(request).collect()
}
