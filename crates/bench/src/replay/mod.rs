//! `foretoken-bench replay`: speeds of drafting policies on recorded drafts, without a model.

pub mod record;
mod report;

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

use self::report::{Interval, Report};

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
    /// Replay every text with drafters that were never measured
    #[arg(long)]
    cold: bool,
    /// Print how many guesses were accepted by tenths of their estimated chance
    #[arg(long)]
    calibration: bool,
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
                let mut first: Option<Vec<ReplayedText>> = None;
                for policy in &self.policy {
                    let texts = replay(&recordings, computer, policy, self.cold)?;
                    let mut report = Report::new([name, &computer.name, policy], &recordings, &texts);
                    report.over_first = first.as_ref().map(|first| Interval::of(first, &texts));
                    first.get_or_insert(texts);
                    if self.json {
                        output::json(&report)?;
                    } else {
                        output::line(report.line(self.calibration))?;
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

/// Replays the texts of a set in turn; with `cold`, each by drafters that were never measured.
fn replay(
    recordings: &[Arc<Recording>],
    computer: &Computer,
    policy: &str,
    cold: bool,
) -> Result<Vec<ReplayedText>> {
    let speculation = speculation(policy)?;
    let new = || {
        let ratios = RowRatios::shipped(&CostClass::default());
        Replay::new(computer.drafter, &computer.costs, &speculation, ratios)
    };
    let mut replay = new();
    let mut texts = Vec::with_capacity(recordings.len());
    for recording in recordings {
        if cold {
            replay = new();
        }
        texts.push(replay.text(recording)?);
    }
    Ok(texts)
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
