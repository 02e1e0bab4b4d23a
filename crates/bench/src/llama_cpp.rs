//! llama.cpp's own programs on the same files, with the same number of threads and otherwise their
//! defaults: mapped files, repacked weights, flash attention as they choose. Parses their output; a
//! program that is missing or fails is reported once and left out.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretoken_cli::commands::bench::real::{DraftedReply, OtherProgram};
use foretoken_cli::error::{Error, Result};
use foretoken_cli::output;
use foretoken_forward::device;
use serde::Deserialize;

/// Environment variable with the folder of the programs.
const FOLDER: &str = "LLAMA_CPP_BIN";

/// The programs in a folder.
#[derive(Debug, Clone)]
pub struct LlamaCpp {
    folder: PathBuf,
    /// A sentence for every program that failed; it is not run again.
    pub failures: Vec<(&'static str, String)>,
}

/// A test of llama-bench: prefill of a prompt, or decoding of some tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Timing {
    #[serde(rename = "n_prompt")]
    pub prompt: usize,
    #[serde(rename = "n_gen")]
    pub written: usize,
    /// Nanoseconds of every repetition.
    pub samples_ns: Vec<f64>,
}

/// Figures that llama-speculative-simple prints for a reply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speculated {
    pub tokens_per_second: f64,
    /// Accepted over drafted tokens, 0..=1.
    pub accepted_of_drafted: Option<f64>,
}

/// A reply to write speculatively.
pub struct SpeculativeRequest<'a> {
    pub target: &'a Path,
    /// `None` to use the target's own MTP block.
    pub draft: Option<&'a Path>,
    pub prompt: &'a str,
    pub tokens: usize,
    pub draft_length: usize,
    /// Probability of a token below which a draft ends.
    pub least_probability: f64,
    pub threads: usize,
}

const BENCH: &str = "llama-bench";
const SPECULATIVE: &str = "llama-speculative-simple";

/// Tokens of context beyond prompt and reply, for drafts.
const ROOM: usize = 64;

impl LlamaCpp {
    /// The programs in the folder that [`FOLDER`] names; `None` if it is not set.
    ///
    /// # Errors
    /// `Error::Usage` if it does not name a folder.
    pub fn find() -> Result<Option<Self>> {
        let Some(folder) = env::var_os(FOLDER).filter(|folder| !folder.is_empty()) else { return Ok(None) };
        let folder = PathBuf::from(folder);
        if folder.is_dir() {
            return Ok(Some(Self { folder, failures: Vec::new() }));
        }
        Err(Error::Usage(format!(
            "{FOLDER}: expected a folder with llama.cpp's programs, found '{}', which is not a folder. Correct it, or \
             unset it to measure without them.",
            folder.display()
        )))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs llama-bench on a model with `options`.
    pub fn bench(&mut self, model: &Path, threads: usize, options: &[&str]) -> Option<Vec<Timing>> {
        let mut command = self.program(BENCH)?;
        command.arg("-m").arg(model).args(["-t", &threads.to_string(), "-ngl", "0", "-o", "json"]);
        command.args(options);
        let printed = run(&mut command);
        let timings = printed.and_then(|printed| timings(&printed.out));
        self.noted(BENCH, timings)
    }

    /// Writes a reply with llama-speculative-simple.
    pub fn speculate(&mut self, request: &SpeculativeRequest<'_>) -> Option<Speculated> {
        let mut command = self.program(SPECULATIVE)?;
        command.arg("-m").arg(request.target).args(["-p", request.prompt]);
        request.draft.map(|draft| command.arg("-md").arg(draft));
        let mut option = |name: &str, value: &dyn ToString| {
            command.args([name, &value.to_string()]);
        };
        option("-n", &request.tokens);
        // A token is at least one byte of the prompt; the whole context would need gigabytes of
        // cache.
        option("-c", &(request.prompt.len() + request.tokens + ROOM));
        option("--temp", &0);
        option("--top-k", &1);
        option("-ngl", &0);
        for threads in ["-t", "-tb", "-td", "-tbd"] {
            option(threads, &request.threads);
        }
        option("--spec-type", &if request.draft.is_some() { "draft-simple" } else { "draft-mtp" });
        option("--spec-draft-n-max", &request.draft_length);
        option("--spec-draft-p-min", &request.least_probability);
        command.arg("--ignore-eos");
        let printed = run(&mut command);
        // The figures are in the log, which may go to either stream.
        let speculated = printed.and_then(|printed| speculated(&(printed.out + &printed.err)));
        self.noted(SPECULATIVE, speculated)
    }

    /// The program, unless it failed before.
    fn program(&self, name: &'static str) -> Option<Command> {
        let failed = self.failures.iter().any(|(failed, _)| *failed == name);
        (!failed).then(|| Command::new(self.folder.join(name)))
    }

    fn noted<T>(&mut self, name: &'static str, result: std::result::Result<T, String>) -> Option<T> {
        match result {
            Ok(result) => Some(result),
            Err(why) => {
                let sentence = format!("{name} in {} is skipped: {why}.", self.folder.display());
                output::note(&sentence);
                self.failures.push((name, sentence));
                None
            }
        }
    }
}

impl OtherProgram for LlamaCpp {
    fn plain(&mut self, target: &Path, tokens: u32) -> Vec<f64> {
        let tokens = tokens.to_string();
        let options = ["-p", "0", "-n", &tokens, "-d", "64", "-r", "2"];
        let timings = self.bench(target, device::threads(), &options).unwrap_or_default();
        let written = timings.iter().filter(|timing| timing.written > 0);
        let speeds = |timing: &Timing| {
            let tokens = timing.written as f64;
            timing.samples_ns.iter().map(move |ns| tokens * 1e9 / ns).collect::<Vec<_>>()
        };
        written.flat_map(speeds).collect()
    }

    fn drafted(&mut self, reply: &DraftedReply<'_>) -> Option<f64> {
        let DraftedReply { target, draft, prompt, tokens, draft_length } = *reply;
        let (tokens, threads) = (tokens as usize, device::threads());
        let least_probability = 0.0;
        let request =
            SpeculativeRequest { target, draft, prompt, tokens, draft_length, least_probability, threads };
        Some(self.speculate(&request)?.tokens_per_second)
    }
}

struct Printed {
    out: String,
    err: String,
}

/// Runs a program to its end; the error says why it failed.
fn run(command: &mut Command) -> std::result::Result<Printed, String> {
    let done = command.stdin(Stdio::null()).output().map_err(|error| format!("it cannot be run: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = Printed { out: text(&done.stdout), err: text(&done.stderr) };
    if done.status.success() {
        return Ok(printed);
    }
    let last = printed.err.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    Err(format!("it ended with {}: {}", done.status, output::harmless(last.trim())))
}

/// Parses llama-bench's JSON.
fn timings(json: &str) -> std::result::Result<Vec<Timing>, String> {
    serde_json::from_str(json).map_err(|error| format!("expected a JSON list of tests, found {error}"))
}

/// Parses the figures in llama-speculative-simple's log.
fn speculated(log: &str) -> std::result::Result<Speculated, String> {
    let after = |line: &str, mark: &str| -> Option<f64> {
        let (_, rest) = line.split_once(mark)?;
        rest.trim_start_matches(['=', ' ']).split([' ', '%']).next()?.parse().ok()
    };
    let decoded = log.lines().filter(|line| line.contains("decoded")).find_map(|line| after(line, "speed:"));
    // The log also has a line with the number of accepted tokens, "n_accept = 90".
    let percent = log.lines().filter(|line| line.trim_end().ends_with('%'));
    let share = percent.filter_map(|line| after(line, "accept  ")).next();
    match decoded {
        Some(speed) => Ok(Speculated {
            tokens_per_second: speed,
            accepted_of_drafted: share.filter(|share| share.is_finite()).map(|percent| percent / 100.0),
        }),
        None => Err("expected a line 'decoded ... speed: ... t/s', found none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"[
      {"build_commit": "0c1e570", "n_threads": 2, "n_prompt": 512, "n_gen": 0, "n_depth": 0,
       "avg_ns": 72135640, "avg_ts": 7100.0, "samples_ns": [ 74601900, 71632900 ], "samples_ts": [ 6863.1, 7147.5 ]},
      {"build_commit": "0c1e570", "n_threads": 2, "n_prompt": 0, "n_gen": 128, "n_depth": 0,
       "avg_ns": 1076767880, "avg_ts": 118.8, "samples_ns": [ 1075361300 ], "samples_ts": [ 119.03 ]}
    ]"#;

    #[test]
    fn the_times_are_parsed_from_llama_bench_json() {
        let prompt = Timing { prompt: 512, written: 0, samples_ns: vec![74_601_900.0, 71_632_900.0] };
        let written = Timing { prompt: 0, written: 128, samples_ns: vec![1_075_361_300.0] };
        assert_eq!(timings(JSON), Ok(vec![prompt, written]));
        for other in ["", "usage: llama-bench", "{}", "[{\"n_prompt\": 1}]"] {
            assert!(timings(other).unwrap_err().contains("JSON list of tests"));
        }
    }

    #[test]
    fn the_figures_are_parsed_from_the_log_of_a_speculative_reply() {
        let log = "encoded   52 tokens in    0.100 seconds, speed:  520.000 t/s\n\
                   0.01.2 I decoded  129 tokens in    2.275 seconds, speed:   56.703 t/s\n\n\
                   n_draft   = 3\nn_accept  = 90\naccept    = 78.947%\n";
        let found = Speculated { tokens_per_second: 56.703, accepted_of_drafted: Some(0.78947) };
        assert_eq!(speculated(log), Ok(found));
        let none = "decoded  129 tokens in    2.275 seconds, speed:   56.703 t/s\naccept    = -nan%\n";
        assert_eq!(speculated(none).unwrap().accepted_of_drafted, None);
        assert!(speculated("no such line").unwrap_err().contains("decoded"));
    }
}
