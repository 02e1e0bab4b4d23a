//! `bench`: plain against speculative decoding on this device, and the cost of a pass. Prints
//! figures and draws no conclusions.

mod args;
pub mod bandwidth;
mod beside;
pub mod cost;
pub mod numbers;
pub mod prompts;
pub mod real;
pub mod rounds;
pub mod runs;
mod sweep;

use foretoken_engine::decoder::Request;
use foretoken_model::sampling::Sampling;

use foretoken_engine::speculation::{DraftLength, Speculation, Staged, Threshold, Tree};
use serde::Serialize;

use crate::args::DraftChoice;
use crate::error::Result;
use crate::output;
use crate::session::{choose_draft, form, load};
pub use args::{Args, RunArgs};
use cost::{RowCost, draft_cost, verify_cost};
use numbers::number;
use prompts::Workload;
use runs::{Speed, Totals, compare};

/// All results.
#[derive(Serialize)]
#[serde(tag = "type", rename = "bench")]
struct Report {
    target: String,
    draft: String,
    speculation: Speculation,
    device: String,
    workload: Option<Workload>,
    prompts: usize,
    repeats: u32,
    plain: Speed,
    /// Null without a drafter.
    speculative: Option<Speed>,
    /// Speculative over plain tokens per second.
    speedup: Option<f64>,
    /// Other settings; null unless requested.
    sweep: Option<Vec<OtherWay>>,
    /// Acceptance statistics were forgotten after each reply.
    cold: bool,
    /// Null unless requested.
    verify_cost: Option<Vec<RowCost>>,
    /// Number of cached tokens while passes were measured: the replies' median; null unless
    /// requested.
    verify_position: Option<usize>,
    /// Milliseconds to draft a token; null unless requested, or if nothing was drafted.
    draft_ms: Option<f64>,
    /// Null unless requested.
    read_bandwidth_gb_s: Option<f64>,
}

#[derive(Serialize)]
struct OtherWay {
    name: String,
    speculation: Speculation,
    #[serde(flatten)]
    speed: Speed,
    speedup: Option<f64>,
}

pub fn run(args: &Args) -> Result<()> {
    match (&args.target, &args.models) {
        (Some(target), _) => run_on(target, args),
        (None, Some(folder)) => real::run(folder, &args.run, None),
        (None, None) => unreachable!("clap requires a target or a folder"),
    }
}

fn run_on(target: &str, args: &Args) -> Result<()> {
    let speculation = args.speculation.speculation()?;
    let base = Request {
        sampling: args.run.sampling.over(Sampling::greedy())?,
        max_tokens: Some(args.run.tokens as usize),
        ..Request::new(Vec::new())
    };
    let texts = match &args.run.prompts {
        Some(path) => prompts::read(path)?,
        None => prompts::built_in(args.run.workload.unwrap_or_default()),
    };
    if let Some(busy) = args.beside {
        let base = Request { speculation: Speculation::off(), ..base };
        return beside::run(target, busy, &texts, &base, args);
    }
    let source = args.run.device.target.open(target)?;
    let mut session = load(&source, form(&source, args.run.raw)?, &args.run.device)?;
    let requests = prompts::requests(&session, &texts, &base)?;
    let draft = args.speculation.draft_or(DraftChoice::None);
    choose_draft(&mut session, &draft, args.speculation.stage.as_deref(), &args.run.device)?;
    session.device_sentences().for_each(output::note);
    let mut ways = vec![("plain".to_owned(), Speculation::off())];
    if !session.draft.drafters.is_empty() {
        ways.push(("speculative".to_owned(), speculation.clone()));
        ways.extend(args.sweep.iter().flat_map(|sweep| sweep.ways(&speculation)));
    }
    let totals = compare(&mut session, &requests, &ways, args.run.repeats, args.speculation.cold)?;
    let position = totals.first().map_or(cost::CONTEXT, Totals::position);
    let mut totals = totals.into_iter();
    let plain = totals.next().unwrap_or_default().plain();
    let speedup = |speed: &Speed| Some(speed.tokens_per_second? / plain.tokens_per_second?);
    let speculative = totals.next().map(Totals::speculative);
    let sweep = ways.into_iter().skip(2).zip(totals).map(|((name, speculation), totals)| {
        let speed = totals.speculative();
        OtherWay { name, speculation, speedup: speedup(&speed), speed }
    });
    let sweep = args.sweep.map(|_| sweep.collect());
    let mut report = Report {
        target: target.to_owned(),
        draft: draft.to_string(),
        speculation,
        device: session.devices(),
        workload: args.run.prompts.is_none().then(|| args.run.workload.unwrap_or_default()),
        prompts: requests.len(),
        repeats: args.run.repeats,
        speedup: speculative.as_ref().and_then(speedup),
        plain,
        speculative,
        sweep,
        cold: args.speculation.cold,
        verify_cost: None,
        verify_position: args.verify_cost.then_some(position),
        draft_ms: None,
        read_bandwidth_gb_s: None,
    };
    if args.verify_cost {
        output::note("measuring what a pass costs");
        report.verify_cost = Some(verify_cost(&mut session, &requests, position)?);
        report.draft_ms = draft_cost(&mut session, &requests)?;
        let reading = bandwidth::read(session.decoder.target_mut(), &requests)?;
        report.read_bandwidth_gb_s = reading.map(|reading| reading.gb_s);
    }
    if args.run.json { output::json(&report) } else { output::text(&report.table()) }
}

impl Report {
    fn table(&self) -> String {
        let Self { target, draft, device, prompts, repeats, .. } = self;
        let known = if self.cold {
            "acceptance statistics cleared after each reply"
        } else {
            "acceptance statistics kept between replies"
        };
        let mut lines = vec![
            format!("{target} with {draft}, {}, {device}", describe(&self.speculation)),
            format!("medians of {repeats} repeats over {prompts} prompts, {known}\n"),
            "              tokens/s  acceptance  tokens per round  speedup".to_owned(),
            format!("plain       {:>10}", number(self.plain.tokens_per_second, 1)),
        ];
        let line = |name: &str, speed: &Speed, speedup: Option<f64>| {
            let rate = speed.acceptance_rate.map_or("-".to_owned(), |rate| format!("{:.1} %", rate * 100.0));
            let (fast, long) = (number(speed.tokens_per_second, 1), number(speed.tokens_per_round, 2));
            format!("{name:12}{fast:>10}  {rate:>10}  {long:>16}  {:>7}", number(speedup, 2))
        };
        lines.extend(self.speculative.iter().map(|speed| line("speculative", speed, self.speedup)));
        for other in self.sweep.iter().flatten() {
            lines.push(line(&other.name, &other.speed, other.speedup));
        }
        lines.extend(self.against_the_best());
        let mut ways = vec![("plain", &self.plain.rounds[..])];
        ways.extend(self.speculative.iter().map(|speed| ("speculative", &speed.rounds[..])));
        lines.push(String::new());
        lines.extend(rounds::table(&ways));
        if let Some(costs) = &self.verify_cost {
            let position = self.verify_position.unwrap_or_default();
            lines.push(format!("\npasses after {position} tokens\n{}", RowCost::heading(costs)));
            lines.extend(costs.iter().map(RowCost::line));
        }
        if let Some(ms) = self.draft_ms {
            lines.push(format!("\ndrafting a token takes {ms:.3} ms"));
        }
        if let Some(speed) = self.read_bandwidth_gb_s {
            lines.push(format!("memory is read at {speed:.1} GB/s"));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Report {
    /// Compares the requested settings with the fastest of the others.
    fn against_the_best(&self) -> Option<String> {
        let speed = |other: &&OtherWay| other.speed.tokens_per_second.unwrap_or_default();
        let best = self.sweep.iter().flatten().max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        let ratio = self.speculative.as_ref()?.tokens_per_second? / best.speed.tokens_per_second?;
        Some(format!(
            "the requested settings are {ratio:.3} times as fast as '{}', the fastest of the others",
            best.name
        ))
    }
}

/// "draft length auto, tree auto, threshold off, staged auto"
fn describe(speculation: &Speculation) -> String {
    let length = match speculation.length {
        DraftLength::Auto => "auto".to_owned(),
        DraftLength::Fixed(length) => length.to_string(),
        DraftLength::Off => "off".to_owned(),
    };
    let tree = match speculation.tree {
        Tree::Auto => "auto".to_owned(),
        Tree::Off => "off".to_owned(),
        Tree::Width(width) => width.to_string(),
    };
    let threshold = match speculation.threshold {
        Threshold::Auto => "auto".to_owned(),
        Threshold::Off => "off".to_owned(),
        Threshold::Fixed(least) => least.to_string(),
    };
    let staged = match speculation.staged {
        Staged::Auto => "auto",
        Staged::Off => "off",
        Staged::On => "on",
    };
    format!("draft length {length}, tree {tree}, threshold {threshold}, staged {staged}")
}
