//! `bench --models`: every model of a folder as a target, without drafts and with every draft that
//! fits. `foretoken-bench` also measures llama.cpp on the same files.

use std::fs;
use std::path::{Path, PathBuf};

use foretoken_engine::compat;
use foretoken_engine::decoder::Request;
use foretoken_engine::session::Session;
use foretoken_engine::speculation::{DrafterChoice, Speculation};
use foretoken_model::ModelSource;
use foretoken_model::sampling::Sampling;
use serde::Serialize;

use super::args::RunArgs;
use super::cost::{RowCost, draft_cost, verify_cost};
use super::numbers::{median, number};
use super::prompts::Workload;
use super::runs::{Speed, Totals, write};
use super::{bandwidth, prompts, rounds};
use crate::args::DraftChoice;
use crate::error::{Error, Result};
use crate::output;
use crate::session::{choose_draft, form, load};

/// Largest size of a draft, as a share of its target's bytes.
const LARGEST_DRAFT: f64 = 0.5;

/// Draft lengths measured with another program.
const THEIR_LENGTHS: [usize; 3] = [2, 4, 8];

/// Numbers of rows that the table shows.
const ROWS: [usize; 4] = [1, 2, 4, 8];

/// Another program that runs the same files.
pub trait OtherProgram {
    /// Speeds of plain decoding in tokens per second.
    fn plain(&mut self, target: &Path, tokens: u32) -> Vec<f64>;

    /// Speed with drafts in tokens per second; `None` if the program failed.
    fn drafted(&mut self, reply: &DraftedReply<'_>) -> Option<f64>;
}

/// A program that is measured in turn.
pub type Other<'a> = &'a mut (dyn OtherProgram + 'static);

/// Reply that another program writes with drafts.
pub struct DraftedReply<'a> {
    pub target: &'a Path,
    /// `None` to use the target's own MTP block.
    pub draft: Option<&'a Path>,
    pub prompt: &'a str,
    pub tokens: u32,
    pub draft_length: usize,
}

/// A target and, if any, its draft.
struct Pair {
    target: PathBuf,
    draft: Option<Draft>,
}

enum Draft {
    /// The draft head in the target's own file.
    Mtp,
    File(PathBuf),
}

/// All results of a pair.
#[derive(Serialize)]
#[serde(tag = "type", rename = "bench_model")]
struct Report {
    target: String,
    /// Null if no model of the folder can draft for the target, and it has no draft head of its
    /// own.
    draft: Option<String>,
    device: String,
    prompts: usize,
    /// Maximum length of a reply.
    tokens: u32,
    repeats: u32,
    ways: Vec<Way>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    llama_cpp: Vec<Theirs>,
    verify_cost: Vec<RowCost>,
    /// Number of cached tokens while passes were measured: the replies' median.
    verify_position: usize,
    /// The draft's time for a token; null without a draft.
    draft_ms: Option<f64>,
    /// Bandwidth of reading these weights; null, like the next field, if they are on another
    /// device.
    read_bandwidth_gb_s: Option<f64>,
    /// Share of the bandwidth that plain decoding reaches.
    bandwidth_share: Option<f64>,
}

/// One way of decoding.
#[derive(Serialize)]
struct Way {
    name: &'static str,
    #[serde(flatten)]
    speed: Speed,
    /// Speed over plain decoding's.
    speedup: Option<f64>,
}

/// llama.cpp on the same files and, where it drafts, the same prompts.
#[derive(Serialize)]
struct Theirs {
    /// Null for plain decoding.
    draft_length: Option<usize>,
    tokens_per_second: Option<f64>,
}

/// Measures one pair after the other and prints each report as soon as it is done.
///
/// # Errors
/// `Error::Usage` for a folder without chat models; errors of loading and running them.
pub fn run(folder: &Path, args: &RunArgs, mut other: Option<Other<'_>>) -> Result<()> {
    let texts = match &args.prompts {
        Some(path) => prompts::read(path)?,
        None => prompts::built_in(args.workload.unwrap_or(Workload::Tasks)),
    };
    for (index, pair) in pairs(folder)?.iter().enumerate() {
        let report = Subject::load(pair, &texts, args)?.measure(other.as_deref_mut())?;
        if args.json {
            output::json(&report)?;
        } else {
            output::text(&format!("{}{}", if index > 0 { "\n" } else { "" }, report.table()))?;
        }
    }
    Ok(())
}

/// Every chat model of `folder`, small ones first: first alone, then with each draft.
fn pairs(folder: &Path) -> Result<Vec<Pair>> {
    let read = |source| Error::Read { path: folder.to_owned(), source };
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).map_err(read)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    let size = |path: &PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
    files.sort_by_key(size);
    let mut pairs = Vec::new();
    for target in &files {
        let source = match ModelSource::open(target).and_then(|source| {
            source.config()?;
            if !source.is_draft_head() {
                source.template_source()?;
            }
            Ok(source)
        }) {
            Ok(source) if source.is_draft_head() => continue,
            Ok(source) => source,
            Err(error) => {
                output::note(format_args!("{} is skipped: {error}", target.display()));
                continue;
            }
        };
        let tokenizer = source.tokenizer()?;
        let largest = size(target) as f64 * LARGEST_DRAFT;
        let fits = |draft: &&PathBuf| {
            let Ok(draft_source) = ModelSource::open(draft) else { return false };
            if draft_source.is_draft_head() {
                return draft_source.for_target(&source).is_ok();
            }
            let theirs = draft_source.tokenizer();
            size(draft) as f64 <= largest
                && theirs.is_ok_and(|theirs| compat::compare(&tokenizer, &theirs).compatible)
        };
        let own = source.mtp_head().and_then(|head| head.for_target(&source)).is_ok();
        let files = files.iter().filter(fits).cloned().map(Draft::File);
        let drafts: Vec<_> = own.then_some(Draft::Mtp).into_iter().chain(files).map(Some).collect();
        let alone = if drafts.is_empty() { vec![None] } else { Vec::new() };
        let pair = |draft| Pair { target: target.clone(), draft };
        pairs.extend(drafts.into_iter().chain(alone).map(pair));
    }
    if pairs.is_empty() {
        return Err(Error::Usage(format!(
            "--models: expected a folder with .gguf files of chat models, found none in {}.",
            folder.display()
        )));
    }
    Ok(pairs)
}

/// A loaded pair and the prompts to measure it with.
struct Subject<'a> {
    pair: &'a Pair,
    args: &'a RunArgs,
    session: Session,
    /// Prompts for another program, as text.
    texts: Vec<String>,
    requests: Vec<Request>,
}

impl<'a> Subject<'a> {
    fn load(pair: &'a Pair, texts: &[String], args: &'a RunArgs) -> Result<Self> {
        output::note(format_args!("measuring {}", pair.name()));
        let source = ModelSource::open(&pair.target)?;
        let mut session = load(&source, form(&source, args.raw)?, &args.device)?;
        let draft = pair.draft.as_ref().map_or(DraftChoice::Ngram, Draft::choice);
        choose_draft(&mut session, &draft, None, &args.device)?;
        session.remarks().for_each(output::note);
        let base = Request {
            sampling: args.sampling.over(Sampling::greedy())?,
            max_tokens: Some(args.tokens as usize),
            ..Request::new(Vec::new())
        };
        let requests = prompts::requests(&session, texts, &base)?;
        let texts = texts.iter().map(|text| Ok(session.form().text(text)?)).collect::<Result<_>>()?;
        Ok(Self { pair, args, session, texts, requests })
    }

    fn measure(mut self, other: Option<Other<'_>>) -> Result<Report> {
        let (ways, theirs, position) = self.in_turns(other)?;
        let verify_cost = verify_cost(&mut self.session, &self.requests, position)?;
        let draft_ms =
            if self.pair.draft.is_some() { draft_cost(&mut self.session, &self.requests)? } else { None };
        let reading = bandwidth::read(self.session.decoder.target_mut(), &self.requests)?;
        Ok(Report {
            target: name(&self.pair.target),
            draft: self.pair.draft.as_ref().map(Draft::name),
            device: self.session.devices(),
            prompts: self.requests.len(),
            tokens: self.args.tokens,
            repeats: self.args.repeats,
            ways,
            llama_cpp: theirs,
            verify_cost,
            verify_position: position,
            draft_ms,
            read_bandwidth_gb_s: reading.map(|reading| reading.gb_s),
            bandwidth_share: reading.map(|reading| reading.share),
        })
    }

    /// Runs all ways of decoding in turn, prompt by prompt, and the other program after each
    /// repeat. Also returns the median position of plain rounds.
    fn in_turns(&mut self, mut other: Option<Other<'_>>) -> Result<(Vec<Way>, Vec<Theirs>, usize)> {
        let ways = self.ways();
        let mut totals: Vec<Totals> = ways.iter().map(|_| Totals::default()).collect();
        let mut theirs = vec![Vec::new(); 1 + THEIR_LENGTHS.len()];
        self.one(&Speculation::off(), 0, &mut Totals::default())?;
        for repeat in 1..=self.args.repeats {
            for prompt in 0..self.requests.len() {
                for turn in 0..ways.len() {
                    // Rotates the order, so that no way is always first.
                    let way = (turn + prompt) % ways.len();
                    self.one(&ways[way].1, prompt, &mut totals[way])?;
                }
                if let Some(other) = other.as_deref_mut() {
                    self.their_drafts(other, prompt, &mut theirs[1..]);
                }
            }
            totals.iter_mut().for_each(Totals::end_repeat);
            if let Some(other) = other.as_deref_mut() {
                theirs[0].extend(other.plain(&self.pair.target, self.args.tokens));
            }
            let speeds =
                ways.iter().zip(&totals).map(|((name, _), totals)| format!("{} {name}", totals.last()));
            let speeds = speeds.collect::<Vec<_>>().join(", ");
            output::note(format_args!("repeat {repeat} of {}: tokens/s {speeds}", self.args.repeats));
        }
        let lengths = [None].into_iter().chain(THEIR_LENGTHS.map(Some));
        let theirs = lengths.zip(theirs).filter(|(_, speeds)| !speeds.is_empty());
        let theirs = theirs
            .map(|(draft_length, speeds)| Theirs { draft_length, tokens_per_second: median(speeds) })
            .collect();
        let position = totals[0].position();
        Ok((speeds(&ways, totals), theirs, position))
    }

    /// All ways of decoding, plain first.
    fn ways(&self) -> Vec<(&'static str, Speculation)> {
        let by = |drafter| Speculation { drafter, ..Speculation::default() };
        let mut ways = vec![
            ("plain", Speculation::off()),
            ("n-gram", by(DrafterChoice::Ngram)),
            ("recycling", by(DrafterChoice::Recycling)),
        ];
        if self.pair.draft.is_some() {
            ways.push(("model", by(DrafterChoice::Model)));
        }
        ways.push(("combined", by(DrafterChoice::Combined)));
        ways
    }

    fn one(&mut self, speculation: &Speculation, prompt: usize, totals: &mut Totals) -> Result<()> {
        // Otherwise a repeated reply would be drafted from the first one.
        self.session.decoder.forget(&mut self.session.draft.drafters);
        let request = Request { speculation: speculation.clone(), ..self.requests[prompt].clone() };
        totals.add(&write(&mut self.session, &request)?);
        Ok(())
    }

    fn their_drafts(&self, other: &mut dyn OtherProgram, prompt: usize, speeds: &mut [Vec<f64>]) {
        let Some(draft) = &self.pair.draft else { return };
        for (draft_length, speeds) in THEIR_LENGTHS.into_iter().zip(speeds) {
            let reply = DraftedReply {
                target: &self.pair.target,
                draft: draft.file(),
                prompt: &self.texts[prompt],
                tokens: self.args.tokens,
                draft_length,
            };
            let Some(speed) = other.drafted(&reply) else { return };
            speeds.push(speed);
        }
    }
}

/// Speeds of all ways, plain first.
fn speeds(ways: &[(&'static str, Speculation)], totals: Vec<Totals>) -> Vec<Way> {
    let mut plain = None;
    let way = |(&(name, _), totals): (&(&'static str, Speculation), Totals)| {
        let speed = if plain.is_none() { totals.plain() } else { totals.speculative() };
        let plain = *plain.get_or_insert(speed.tokens_per_second);
        let speedup = speed.tokens_per_second.zip(plain).map(|(speed, plain)| speed / plain);
        Way { name, speed, speedup }
    };
    ways.iter().zip(totals).map(way).collect()
}

impl Pair {
    fn name(&self) -> String {
        let draft = self.draft.as_ref().map(|draft| format!(" with {}", draft.name()));
        format!("{}{}", name(&self.target), draft.unwrap_or_default())
    }
}

impl Draft {
    fn file(&self) -> Option<&Path> {
        if let Self::File(path) = self { Some(path) } else { None }
    }

    fn choice(&self) -> DraftChoice {
        self.file().map_or(DraftChoice::Mtp, |path| DraftChoice::Model(path.display().to_string()))
    }

    fn name(&self) -> String {
        self.file().map_or_else(|| "MTP".to_owned(), name)
    }
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl Report {
    fn table(&self) -> String {
        let Self { target, device, prompts, tokens, repeats, .. } = self;
        let draft = self.draft.as_ref().map(|draft| format!(" with {draft}")).unwrap_or_default();
        let mut lines = vec![
            format!("{target}{draft}, {device}"),
            format!("{prompts} prompts, up to {tokens} tokens, medians of {repeats}\n"),
            "                     tokens/s  against plain  tokens per round  acceptance".to_owned(),
        ];
        let line = |name: &str, speed: Option<f64>, speedup: Option<f64>, rest: String| {
            let (speed, speedup) = (number(speed, 1), number(speedup, 2));
            format!("{name:19}{speed:>10}  {speedup:>13}{rest}").trim_end().to_owned()
        };
        for Way { name, speed, speedup } in &self.ways {
            let rate = speed.acceptance_rate.map_or(String::new(), |rate| format!("{:.1} %", rate * 100.0));
            let rounds = speed.tokens_per_round.map_or(String::new(), |tokens| format!("{tokens:.2}"));
            lines.push(line(name, speed.tokens_per_second, *speedup, format!("  {rounds:>16}  {rate:>10}")));
        }
        let plain = self.ways.first().and_then(|way| way.speed.tokens_per_second);
        for Theirs { draft_length, tokens_per_second } in &self.llama_cpp {
            let name =
                draft_length.map_or("llama.cpp".to_owned(), |length| format!("llama.cpp, drafts {length}"));
            let against = tokens_per_second.zip(plain).map(|(theirs, ours)| theirs / ours);
            lines.push(line(&name, *tokens_per_second, against, String::new()));
        }
        let first_and_last = [self.ways.first(), self.ways.last()].into_iter().flatten();
        let rounds: Vec<_> = first_and_last.map(|way| (way.name, &way.speed.rounds[..])).collect();
        lines.push(String::new());
        lines.extend(rounds::table(&rounds));
        let position = self.verify_position;
        lines.push(format!("\npasses after {position} tokens\n{}", RowCost::heading(&self.verify_cost)));
        let shown = self.verify_cost.iter().filter(|cost| ROWS.contains(&cost.rows));
        lines.extend(shown.map(RowCost::line));
        if let Some((draft, pass)) = self.draft_ms.zip(self.verify_cost.first()) {
            let share = draft / pass.ms * 100.0;
            lines.push(format!("drafting a token {draft:>11.3}         {share:.1} % of a pass"));
        }
        if let Some((speed, share)) = self.read_bandwidth_gb_s.zip(self.bandwidth_share) {
            let share = share * 100.0;
            lines.push(format!(
                "\nthese weights can be read at {speed:.1} GB/s; plain decoding reads at {share:.0} % of that"
            ));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}
