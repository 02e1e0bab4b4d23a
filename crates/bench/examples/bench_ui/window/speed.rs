//! Share of the engine's speed that arrives in the window: the same replies there and in the
//! terminal, in turn, with the token view, the heatmap and the numbers open.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use foretoken_model::sampling::{Mode, Sampling};
use foretoken_store::Store;
use foretoken_tests::cli;
use foretoken_tests::spread::Spread;
use foretoken_tests::window::Window;
use serde_json::{Value, json};

use super::taken::{Shares, Taken};
use super::typing;

/// Prompts to which the starter replies without an end.
const STORIES: [&str; 3] = [
    "Tell me a story about a lighthouse that never ends.",
    "Tell me a story about a fox who finds a lantern.",
    "Tell me a story about two friends who build a boat.",
];

const TASKS: [&str; 3] = [
    "Write a Python function that parses a CSV line with quoted fields, and explain it step by step.",
    "Why do the seasons change? Explain it to a child, then to a student.",
    "A train leaves at 9:40 and travels 210 km at 84 km/h. When does it arrive? Show the steps.",
];

/// Prompt for a reply that takes longer than the typing.
const LONG: &str =
    "Write a long story about a lighthouse keeper, chapter by chapter, with all that he does on each day.";

/// Time during which the idle window is measured.
const IDLE: Duration = Duration::from_secs(20);

/// A target and its draft, as the terminal names them.
pub struct Pair {
    name: &'static str,
    target: String,
    draft: String,
    tokens: u32,
    prompts: [&'static str; 3],
    sampling: Sampling,
}

/// Speed of a reply, and the average time and tokens of its rounds.
struct Measured {
    tokens_per_second: f64,
    tokens_per_round: f64,
    pass_ms: f64,
    /// Time beside the pass: drafting, verifying, reporting.
    rest_ms: f64,
}

impl Pair {
    /// The starter, and the measured models that `folder` has.
    pub fn all(folder: Option<&Path>) -> Vec<Self> {
        let mut pairs = vec![Self {
            prompts: STORIES,
            sampling: Sampling::greedy(),
            ..Self::new("starter and its draft", "starter", "starter-draft", 3000)
        }];
        let Some(folder) = folder else { return pairs };
        let found = |name: &str| -> Option<String> {
            let mut files: Vec<PathBuf> =
                std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
            files.sort();
            let file = files.into_iter().find(|file| file.to_string_lossy().contains(name))?;
            Some(file.display().to_string())
        };
        if let Some(smol) = found("SmolLM2-135M") {
            pairs.push(Self::new("SmolLM2 135M with n-grams", &smol, "ngram", 400));
        }
        if let Some((target, draft)) = found("Coder-1.5B").zip(found("Coder-0.5B")) {
            pairs.push(Self::new("Qwen2.5 Coder 1.5B and 0.5B", &target, &draft, 200));
        }
        pairs
    }

    fn new(name: &'static str, target: &str, draft: &str, tokens: u32) -> Self {
        let (target, draft) = (target.to_owned(), draft.to_owned());
        Self { name, target, draft, tokens, prompts: TASKS, sampling: reproducible() }
    }

    /// Prints the window's speed against the terminal's, and its processor time.
    pub async fn measure(&self, data: &Path) {
        let settings = json!({
            "target": self.target,
            "drafts": { &self.target: self.draft },
            // Models that are not listed cannot be chosen.
            "added_models": self.files(),
            "sampling": self.sampling,
            "max_tokens": self.tokens,
        });
        Store::open(&data.join("foretoken.db")).unwrap().save_settings(&settings.to_string()).unwrap();
        let window = Window::open(data).await;
        println!("{}:", self.name);
        let mut ratios = Spread::default();
        for (turn, prompt) in self.prompts.iter().enumerate() {
            let first = (turn % 2 == 0).then(|| self.in_the_terminal(data, prompt));
            let (here, shares) = self.in_the_window(&window, prompt).await;
            let there = first.unwrap_or_else(|| self.in_the_terminal(data, prompt));
            let ratio = here.tokens_per_second / there.tokens_per_second;
            let place = |name: &str, found: &Measured| {
                println!(
                    "  {name:8} {:7.1} tokens/s, {:.2} a round of {:6.2} ms for the pass and {:5.2} ms for the rest",
                    found.tokens_per_second, found.tokens_per_round, found.pass_ms, found.rest_ms
                );
            };
            place("window", &here);
            place("terminal", &there);
            println!(
                "  ratio {ratio:.2}; of a core the engine takes {:.0} %, page and webview {:.1} %",
                shares.engine * 100.0,
                shares.page * 100.0
            );
            ratios.add(ratio);
        }
        println!("  median of the ratios: {:.2}", ratios.median());
        window.configure(json!({ "max_tokens": 10 * self.tokens })).await;
        window.ask(LONG).await;
        window.wait("the reply streams", async || window.rounds().await > 3).await;
        typing::while_it_streams(&window).await;
        window.close().await;
    }

    /// Models that are given by their files.
    fn files(&self) -> Vec<&str> {
        let models = [&self.target, &self.draft].map(String::as_str);
        models.into_iter().filter(|model| Path::new(model).is_absolute()).collect()
    }

    async fn in_the_window(&self, window: &Window, prompt: &str) -> (Measured, Shares) {
        window.click("new-chat").await;
        window.type_into("composer", prompt).await;
        // Every query costs the page time, so there is none while the reply streams.
        let script = "const done = arguments[0];
            const { invoke } = window.__TAURI_INTERNALS__;
            const look = async () => {
                const [newest] = await invoke('list_conversations', {});
                const reply = (await invoke('messages', { conversation: newest.id })).at(-1);
                if (!reply.summary) return setTimeout(look, 1000);
                done([reply.summary, await invoke('trace', { message: reply.id }), reply.draft]);
            };
            setTimeout(look, 1000);";
        let before = Taken::by_window(window.driver());
        window.submit().await;
        let found = window.page.execute_async(script, vec![]).await.unwrap();
        let shares = Taken::by_window(window.driver()) - before;
        assert_eq!(found[2] == "n-gram", self.draft == "ngram", "{} drafted, not {}", found[2], self.draft);
        (Measured::new(&found[0], found[1].as_array().unwrap()), shares)
    }

    /// Measures in the terminal, with the same data folder, so that both have the same saved
    /// statistics.
    fn in_the_terminal(&self, data: &Path, prompt: &str) -> Measured {
        let Sampling { temperature, top_p, seed, .. } = self.sampling;
        let output = Command::new(cli())
            .env("FORETOKEN_DATA_DIR", data)
            .args([
                "generate",
                "--json",
                "--target",
                &self.target,
                "--draft",
                &self.draft,
                "--prompt",
                prompt,
            ])
            .args(["--max-tokens", &self.tokens.to_string(), "--temperature", &temperature.to_string()])
            .args(["--top-p", &top_p.to_string(), "--seed", &seed.unwrap_or(0).to_string()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let done = lines.pop().unwrap();
        Measured::new(&done, &lines)
    }
}

impl Measured {
    fn new(summary: &Value, rounds: &[Value]) -> Self {
        // The first round's time includes the prompt.
        let later = &rounds[1..];
        let mean = |names: &[&str]| {
            let ms =
                |round: &Value| names.iter().map(|name| round["times"][name].as_f64().unwrap()).sum::<f64>();
            later.iter().map(ms).sum::<f64>() / later.len() as f64
        };
        Self {
            tokens_per_second: summary["tokens_per_second"].as_f64().unwrap(),
            tokens_per_round: summary["tokens_per_round"].as_f64().unwrap(),
            pass_ms: mean(&["verify_ms"]),
            rest_ms: mean(&["draft_ms", "sample_ms", "rest_ms"]),
        }
    }
}

/// Ordinary sampling, in the mode in which both write the same text.
fn reproducible() -> Sampling {
    Sampling { temperature: 0.7, top_p: 0.95, seed: Some(7), mode: Mode::Reproducible, ..Sampling::default() }
}

/// Prints the processor time of an idle window.
pub async fn idle(data: &Path) {
    let window = Window::open(data).await;
    // Work left over from the start.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let before = Taken::by_window(window.driver());
    tokio::time::sleep(IDLE).await;
    let Shares { engine, page } = Taken::by_window(window.driver()) - before;
    println!(
        "idle for {IDLE:?}: {:.2} % of one core, the engine's {:.2} % among them",
        (engine + page) * 100.0,
        engine * 100.0
    );
    window.close().await;
}
