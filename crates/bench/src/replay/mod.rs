//! `foretoken-bench replay`: speeds of drafting policies on recorded drafts, without a model.

pub mod record;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use foretoken_cli::args::read_text;
use foretoken_cli::error::{Error, Result};
use foretoken_cli::output;
use foretoken_engine::drafter_kind::DrafterKind;
use foretoken_engine::governor::{CostClass, RowRatios};
use foretoken_engine::replay::{Recording, Replay, ReplayCosts, ReplayedText};
use foretoken_engine::speculation::{DrafterChoice, Speculation, Threshold, Tree};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// Recorded sets, as `record` writes them
    #[arg(value_name = "FILE", required = true)]
    sets: Vec<PathBuf>,
    /// File of simulated costs, by set and computer
    #[arg(long, value_name = "FILE")]
    costs: PathBuf,
    /// Policies: auto, chains, confident, model (the model or head alone), or a fixed length of 1
    /// to 16
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "auto")]
    policy: Vec<String>,
    /// File of speedups to compare with; a loss of more than 1 % on any set is an error
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// File to write the speedups to, for --against
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON, one object per line, and nothing else
    #[arg(long)]
    json: bool,
}

/// Largest loss of a policy on a set against an earlier one.
const MAX_LOSS: f64 = 0.01;

/// Speedups by set, computer and policy.
type Speedups = BTreeMap<String, f64>;

/// Costs of a set's pair on a computer.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Computer {
    name: String,
    /// Beginning of the names of the sets it applies to.
    pair: String,
    /// Kind of the recorded drafter.
    drafter: DrafterKind,
    #[serde(flatten)]
    costs: ReplayCosts,
}

/// Speed of a policy on a set.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(rename = "type")]
    kind: &'static str,
    set: String,
    computer: String,
    policy: String,
    /// Speed over plain decoding's.
    speedup: f64,
    tokens_per_round: f64,
    rows_per_round: f64,
    acceptance: f64,
    /// Speedup by topic.
    topics: BTreeMap<String, f64>,
}

impl ReplayArgs {
    /// Replays every set with every policy and prints each report as soon as it is done.
    ///
    /// # Errors
    /// Errors of reading and writing the files; `Error::Usage` for an unknown policy, and for one
    /// that loses against an earlier one.
    pub fn run(&self) -> Result<()> {
        let computers: Vec<Computer> = read_json(&self.costs)?;
        let before: Speedups = self.against.as_deref().map(read_json).transpose()?.unwrap_or_default();
        let (mut speedups, mut losses) = (Speedups::new(), Vec::new());
        for path in &self.sets {
            let recordings = read_set(path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let name = name.split(".jsonl").next().unwrap_or_default();
            for computer in computers.iter().filter(|computer| name.starts_with(&computer.pair)) {
                for policy in &self.policy {
                    let report = replay(name, &recordings, computer, policy)?;
                    if self.json {
                        output::json(&report)?
                    } else {
                        output::line(report.line())?
                    }
                    let (key, speedup) = (report.key(), report.speedup);
                    losses.extend(before.get(&key).and_then(|&before| loss(&key, before, speedup)));
                    speedups.insert(key, (speedup * 1e4).round() / 1e4);
                }
            }
        }
        if let Some(path) = &self.write {
            let text = serde_json::to_string_pretty(&speedups).map_err(std::io::Error::from)? + "\n";
            std::fs::write(path, text).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        if losses.is_empty() { Ok(()) } else { Err(Error::Usage(losses.join("\n"))) }
    }
}

/// A sentence if `speedup` is too far below the speedup `before`.
fn loss(key: &str, before: f64, speedup: f64) -> Option<String> {
    let lost = 1.0 - speedup / before;
    (lost > MAX_LOSS).then(|| format!("{key} lost {:.1} %: {before:.3} to {speedup:.3}.", lost * 1e2))
}

fn replay(set: &str, recordings: &[Arc<Recording>], computer: &Computer, policy: &str) -> Result<Report> {
    let ratios = RowRatios::shipped(&CostClass::default());
    let mut replay = Replay::new(computer.drafter, &computer.costs, &speculation(policy)?, ratios);
    let mut all = Vec::new();
    for recording in recordings {
        all.push((recording.topic.as_str(), replay.text(recording)?));
    }
    let speedup = |texts: &[&ReplayedText]| {
        let sum = |of: fn(&ReplayedText) -> f64| texts.iter().copied().map(of).sum::<f64>();
        sum(|text| text.plain_ms) / sum(|text| text.ms)
    };
    let texts: Vec<&ReplayedText> = all.iter().map(|(_, text)| text).collect();
    let sum = |of: fn(&ReplayedText) -> usize| texts.iter().copied().map(of).sum::<usize>() as f64;
    let (rounds, drafted) = (sum(|text| text.rounds), sum(|text| text.drafted));
    let mut topics: BTreeMap<String, Vec<&ReplayedText>> = BTreeMap::new();
    all.iter().for_each(|(topic, text)| topics.entry((*topic).to_owned()).or_default().push(text));
    Ok(Report {
        kind: "replay",
        set: set.to_owned(),
        computer: computer.name.clone(),
        policy: policy.to_owned(),
        speedup: speedup(&texts),
        tokens_per_round: sum(|text| text.tokens) / rounds,
        rows_per_round: 1.0 + drafted / rounds,
        acceptance: sum(|text| text.accepted) / drafted.max(1.0),
        topics: topics.iter().map(|(topic, texts)| (topic.clone(), speedup(texts))).collect(),
    })
}

impl Report {
    fn key(&self) -> String {
        format!("{}, {}, {}", self.set, self.computer, self.policy)
    }

    fn line(&self) -> String {
        let topics: Vec<String> =
            self.topics.iter().map(|(topic, speedup)| format!("{topic} {speedup:.3}")).collect();
        format!(
            "{:22} {:8} {:10} {:.3} times plain, {:.2} tokens and {:.2} rows a round, {:.0} % accepted; {}",
            self.set,
            self.computer,
            self.policy,
            self.speedup,
            self.tokens_per_round,
            self.rows_per_round,
            self.acceptance * 1e2,
            topics.join(", ")
        )
    }
}

/// Settings of a policy.
fn speculation(policy: &str) -> Result<Speculation> {
    let auto = Speculation::default;
    Ok(match policy {
        "auto" => auto(),
        "chains" => Speculation { tree: Tree::Off, ..auto() },
        "confident" => Speculation { threshold: Threshold::Auto, tree: Tree::Off, ..auto() },
        "model" => Speculation { drafter: DrafterChoice::Model, ..auto() },
        _ => match policy.parse() {
            Ok(length @ 0..=16) => {
                Speculation { drafter: DrafterChoice::Model, ..Speculation::fixed(length) }
            }
            _ => return Err(Error::Usage(format!("expected a policy, found {policy}"))),
        },
    })
}

fn read_set(path: &Path) -> Result<Vec<Arc<Recording>>> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let lines = BufReader::new(GzDecoder::new(File::open(path).map_err(read)?)).lines();
    let parse = |line: std::io::Result<String>| {
        let line = line.map_err(read)?;
        serde_json::from_str(&line).map(Arc::new).map_err(|error| content(path, &error))
    };
    lines.map(parse).collect()
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| content(path, &error))
}

fn content(path: &Path, error: &serde_json::Error) -> Error {
    Error::Content {
        path: path.to_owned(),
        expected: "recorded drafts or their costs",
        found: error.to_string(),
    }
}
