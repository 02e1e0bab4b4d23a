//! Measures one model, in turn with llama.cpp if it is there, so that other load affects both
//! alike.

use foretoken_cli::args::DraftChoice;
use foretoken_cli::commands::bench::cost::{CONTEXT, RowCost, draft_cost, verify_cost};
use foretoken_cli::commands::bench::numbers::median;
use foretoken_cli::commands::bench::prompts::Workload;
use foretoken_cli::commands::bench::runs::{Totals, write};
use foretoken_cli::commands::bench::{bandwidth, prompts};
use foretoken_cli::error::Result;
use foretoken_cli::output;
use foretoken_cli::random::RandomModel;
use foretoken_cli::random::file::Pair;
use foretoken_cli::session::{choose_draft, load};
use foretoken_engine::decoder::Request;
use foretoken_engine::session::{Form, Session};
use foretoken_engine::speculation::{DrafterChoice, Speculation};
use foretoken_forward::device;
use foretoken_model::ModelSource;
use foretoken_model::sampling::Sampling;

use crate::RandomArgs;
use crate::llama_cpp::{LlamaCpp, SpeculativeRequest, Timing};
use crate::report::{Costs, Drafted, Memory, Report, TheirDrafted, Theirs};
use crate::resident;

/// The draft lengths to measure.
const DRAFT_LENGTHS: [usize; 6] = [2, 3, 4, 5, 6, 7];

/// Probabilities below which llama.cpp ends a draft: never, and its former default.
const MIN_PROBABILITIES: [f64; 2] = [0.0, 0.75];

/// Length of the prompt whose prefill is measured, in tokens.
const PROMPT: usize = 512;

/// Rows of the passes that llama.cpp is measured with, and the repetitions of each.
const THEIR_ROWS: &str = "1,2,4,8,16";
const THEIR_REPEATS: &str = "5";

/// A loaded model and its settings.
struct Subject<'a> {
    pair: &'a Pair,
    args: &'a RandomArgs,
    session: Session,
    texts: Vec<String>,
    requests: Vec<Request>,
}

/// Measures all figures of a model.
pub fn measure(
    model: RandomModel,
    pair: &Pair,
    args: &RandomArgs,
    mut llama_cpp: Option<&mut LlamaCpp>,
) -> Result<Report> {
    output::note(format_args!("measuring {model}"));
    let mut subject = Subject::load(pair, args)?;
    let memory = subject.memory(model)?;
    let named = pair.draft.as_ref().map(|draft| draft.display().to_string());
    let draft = named.clone().map_or(DraftChoice::Mtp, DraftChoice::Model);
    choose_draft(&mut subject.session, &draft, None, &args.device)?;
    subject.session.remarks().for_each(output::note);
    let (ours, theirs) = subject.in_turns(llama_cpp.as_deref_mut())?;
    let plain = ours.plain.plain();
    let seconds = plain.tokens_per_second.map(|speed| 1.0 / speed);
    let costs = if args.verify_cost { Some(subject.costs()?) } else { None };
    let theirs = llama_cpp.map(|llama_cpp| {
        let rows = if args.verify_cost { subject.their_rows(llama_cpp) } else { None };
        theirs.report(llama_cpp, rows)
    });
    let drafted = |(draft_length, totals): (usize, Totals)| {
        let speed = totals.speculative();
        let speedup = speed.tokens_per_second.zip(seconds).map(|(speed, seconds)| speed * seconds);
        Drafted { draft_length, speed, speedup }
    };
    let speculative = DRAFT_LENGTHS.into_iter().zip(ours.speculative).map(drafted).collect();
    Ok(Report {
        model: model.to_string(),
        target: pair.target.display().to_string(),
        draft: named.unwrap_or_else(|| "MTP".to_owned()),
        device: subject.session.devices(),
        tokens: args.tokens,
        repeats: args.repeats,
        prompt_tokens_per_second: median(ours.prompt),
        plain,
        speculative,
        memory,
        costs,
        llama_cpp: theirs,
    }
    .compared())
}

/// The request without drafts.
fn plain(request: &Request) -> Request {
    Request { speculation: Speculation::off(), ..request.clone() }
}

/// Our figures by repeat.
#[derive(Default)]
struct Ours {
    plain: Totals,
    /// Prefill speed in tokens per second.
    prompt: Vec<f64>,
    /// By [`DRAFT_LENGTHS`].
    speculative: [Totals; DRAFT_LENGTHS.len()],
}

/// llama.cpp's figures in tokens per second.
#[derive(Default)]
struct TheirSpeeds {
    plain: Vec<f64>,
    prompt: Vec<f64>,
    speculative: Vec<TheirDrafts>,
}

/// One setting of llama.cpp's drafting.
struct TheirDrafts {
    draft_length: usize,
    least_probability: f64,
    tokens_per_second: Vec<f64>,
    accepted_of_drafted: Vec<f64>,
}

impl<'a> Subject<'a> {
    fn load(pair: &'a Pair, args: &'a RandomArgs) -> Result<Self> {
        let source = ModelSource::open(&pair.target)?;
        let session = load(&source, Form::Raw, &args.device)?;
        let base = Request {
            sampling: Sampling::greedy(),
            max_tokens: Some(args.tokens as usize),
            ignore_end: true,
            continues: true,
            ..Request::new(Vec::new())
        };
        let texts = prompts::built_in(Workload::default());
        let requests = prompts::requests(&session, &texts, &base)?;
        Ok(Self { pair, args, session, texts, requests })
    }

    /// Memory of the target alone after a prompt and a reply, which also warm it up.
    fn memory(&mut self, model: RandomModel) -> Result<Memory> {
        self.prompt_speed()?;
        write(&mut self.session, &plain(&self.requests[0]))?;
        let cached = self.session.decoder.target().cached().len();
        Ok(Memory::new(self.pair.bytes, model.shape.cache_bytes(cached) as u64, resident::bytes()))
    }

    /// Runs all ways of decoding in turn, with another prompt for each repeat.
    fn in_turns(&mut self, mut llama_cpp: Option<&mut LlamaCpp>) -> Result<(Ours, TheirSpeeds)> {
        let (mut ours, mut theirs) = (Ours::default(), TheirSpeeds::default());
        let prompts = self.texts.clone().into_iter().zip(self.requests.clone());
        let repeats = self.args.repeats;
        for (repeat, (text, request)) in (1..=repeats).zip(prompts.cycle()) {
            self.one(&plain(&request), &mut ours.plain)?;
            if let Some(llama_cpp) = llama_cpp.as_deref_mut() {
                self.their_plain(llama_cpp, &mut theirs);
            }
            ours.prompt.push(self.prompt_speed()?);
            let report_speed = |way: &str, totals: &Totals| {
                let speed = totals.last();
                output::note(format_args!("repeat {repeat} of {repeats}: {way}, {speed} tokens/s"));
            };
            report_speed("without drafts", &ours.plain);
            for (draft_length, totals) in DRAFT_LENGTHS.into_iter().zip(&mut ours.speculative) {
                let speculation =
                    Speculation { drafter: DrafterChoice::Model, ..Speculation::fixed(draft_length) };
                self.one(&Request { speculation, ..request.clone() }, totals)?;
                if let Some(llama_cpp) = llama_cpp.as_deref_mut() {
                    self.their_drafts(llama_cpp, &text, draft_length, &mut theirs);
                }
                report_speed(&format!("drafts of {draft_length}"), totals);
            }
        }
        Ok((ours, theirs))
    }

    fn one(&mut self, request: &Request, totals: &mut Totals) -> Result<()> {
        totals.add(&write(&mut self.session, request)?);
        totals.end_repeat();
        Ok(())
    }

    /// Tokens per second from an empty cache to the first token after [`PROMPT`] tokens.
    fn prompt_speed(&mut self) -> Result<f64> {
        let text = self.requests.iter().flat_map(|request| request.prompt.iter().copied()).cycle();
        let prompt = text.take(PROMPT).collect();
        let request = Request { prompt, max_tokens: Some(1), ..plain(&self.requests[0]) };
        self.session.decoder.target_mut().truncate(0);
        let reply = write(&mut self.session, &request)?;
        Ok(PROMPT as f64 * 1e3 / reply.summary.ttft_ms)
    }

    fn costs(&mut self) -> Result<Costs> {
        output::note("measuring what a pass costs");
        let rows = verify_cost(&mut self.session, &self.requests, CONTEXT)?;
        let draft_ms = draft_cost(&mut self.session, &self.requests)?;
        let reading = bandwidth::read(self.session.decoder.target_mut(), &self.requests)?;
        Ok(Costs {
            verify_cost: rows,
            draft_ms,
            read_bandwidth_gb_s: reading.map(|reading| reading.gb_s),
            weight_bytes_per_token: reading.map(|reading| reading.bytes as u64),
            bandwidth_share: reading.map(|reading| reading.share),
        })
    }

    fn their_plain(&self, llama_cpp: &mut LlamaCpp, theirs: &mut TheirSpeeds) {
        let (prompt, tokens) = (PROMPT.to_string(), self.args.tokens.to_string());
        let options = ["-p", &prompt, "-n", &tokens, "-r", "1"];
        for timing in llama_cpp.bench(&self.pair.target, device::threads(), &options).unwrap_or_default() {
            let speeds = if timing.prompt > 0 { &mut theirs.prompt } else { &mut theirs.plain };
            let tokens = (timing.prompt + timing.written) as f64;
            speeds.extend(timing.samples_ns.iter().map(|ns| tokens * 1e9 / ns));
        }
    }

    /// llama.cpp's time for passes over several rows; it computes only the logits of the last.
    fn their_rows(&self, llama_cpp: &mut LlamaCpp) -> Option<Vec<RowCost>> {
        let depth = CONTEXT.to_string();
        let options = ["-p", THEIR_ROWS, "-n", "0", "-d", &depth, "-r", THEIR_REPEATS];
        let timings = llama_cpp.bench(&self.pair.target, device::threads(), &options)?;
        let ms = |timing: Timing| Some((timing.prompt, median(timing.samples_ns)? / 1e6));
        Some(RowCost::of(timings.into_iter().filter_map(ms)))
    }

    fn their_drafts(
        &self,
        llama_cpp: &mut LlamaCpp,
        prompt: &str,
        draft_length: usize,
        theirs: &mut TheirSpeeds,
    ) {
        for least_probability in MIN_PROBABILITIES {
            let request = SpeculativeRequest {
                target: &self.pair.target,
                draft: self.pair.draft.as_deref(),
                prompt,
                tokens: self.args.tokens as usize,
                draft_length,
                least_probability,
                threads: device::threads(),
            };
            let Some(found) = llama_cpp.speculate(&request) else { return };
            let drafts = theirs.drafts(draft_length, least_probability);
            drafts.tokens_per_second.push(found.tokens_per_second);
            drafts.accepted_of_drafted.extend(found.accepted_of_drafted);
        }
    }
}

impl TheirSpeeds {
    /// The entry of a setting, added if it is missing.
    fn drafts(&mut self, draft_length: usize, least_probability: f64) -> &mut TheirDrafts {
        let same = |drafts: &TheirDrafts| {
            drafts.draft_length == draft_length && drafts.least_probability == least_probability
        };
        let index = self.speculative.iter().position(same).unwrap_or_else(|| {
            self.speculative.push(TheirDrafts {
                draft_length,
                least_probability,
                tokens_per_second: Vec::new(),
                accepted_of_drafted: Vec::new(),
            });
            self.speculative.len() - 1
        });
        &mut self.speculative[index]
    }

    fn report(self, llama_cpp: &LlamaCpp, verify_cost: Option<Vec<RowCost>>) -> Theirs {
        let drafted = |drafts: TheirDrafts| TheirDrafted {
            draft_length: drafts.draft_length,
            least_probability: drafts.least_probability,
            tokens_per_second: median(drafts.tokens_per_second),
            accepted_of_drafted: median(drafts.accepted_of_drafted),
        };
        Theirs {
            folder: llama_cpp.folder().display().to_string(),
            prompt_tokens_per_second: median(self.prompt),
            plain_tokens_per_second: median(self.plain),
            speculative: self.speculative.into_iter().map(drafted).collect(),
            verify_cost,
            ratios: None,
            failures: llama_cpp.failures.iter().map(|(_, sentence)| sentence.clone()).collect(),
        }
    }
}
