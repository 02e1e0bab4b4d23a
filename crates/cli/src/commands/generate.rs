//! `generate`: one reply, as text or as a JSON line per round and one at the end.

use foretoken_engine::decoder::{Reply, Request};
use foretoken_engine::session::Session;
use foretoken_engine::trace::{Finish, Round, Speedup, Times};
use foretoken_model::Conversation;
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use serde::Serialize;

use crate::args::{DraftChoice, ReplyArgs};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::{choose_draft, form, load, reply};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub reply: ReplyArgs,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Round(&'a Round),
    Done(Done<'a>),
}

/// The whole reply and its statistics, as in `Summary`.
#[derive(Serialize)]
struct Done<'a> {
    text: &'a str,
    tokens: &'a [TokenId],
    prompt_tokens: u32,
    reused_tokens: u32,
    acceptance_rate: Option<f64>,
    tokens_per_round: f64,
    ttft_ms: f64,
    tokens_per_second: Option<f64>,
    speedup: Option<Speedup>,
    elapsed_ms: f64,
    rounds: u32,
    drafted: u32,
    judged: u32,
    accepted: u32,
    finish: Finish,
    seed: Option<u32>,
    times: Times,
}

impl<'a> Done<'a> {
    fn of(reply: &'a Reply, seed: Option<u32>) -> Self {
        let summary = &reply.summary;
        Self {
            text: &reply.text,
            tokens: &reply.tokens,
            prompt_tokens: summary.prompt_tokens,
            reused_tokens: summary.reused_tokens,
            acceptance_rate: summary.acceptance_rate,
            tokens_per_round: summary.tokens_per_round,
            ttft_ms: summary.ttft_ms,
            tokens_per_second: summary.tokens_per_second,
            speedup: summary.speedup,
            elapsed_ms: summary.elapsed_ms,
            rounds: summary.rounds,
            drafted: summary.drafted,
            judged: summary.judged,
            accepted: summary.accepted,
            finish: summary.finish,
            seed,
            times: summary.times,
        }
    }
}

pub fn run(Args { reply: args }: &Args) -> Result<()> {
    let (mut session, request) =
        prepare(args, Sampling { automatic_penalties: true, stop_loops: true, ..Sampling::greedy() })?;
    let interrupt = Interrupt::listen();
    let reply = reply(&mut session, &request, &interrupt, &mut |round| {
        if args.json {
            return output::json(&Line::Round(round));
        }
        output::text(&round.emitted().map(|(_, text)| text).collect::<String>())
    })?;
    if args.json {
        return output::json(&Line::Done(Done::of(&reply, request.sampling.seed)));
    }
    output::line("")?;
    output::note(output::summary(&reply.summary));
    Ok(())
}

/// Loads the models that `args` name and builds the request, with sampling completed from `base`.
/// Invalid options are rejected before any model is loaded.
pub fn prepare(args: &ReplyArgs, base: Sampling) -> Result<(Session, Request)> {
    let sampling = args.sampling.over(base)?;
    let speculation = args.speculation.speculation()?;
    let grammar = args.grammar.grammar()?;
    let text = args.prompt.text()?;
    let source = args.device.target.open(&args.target)?;
    let mut session = load(&source, form(&source, args.raw)?, &args.device)?;
    let thinking = args.thinking.of(session.form());
    let prompt = session.conversation(&Conversation::of(&[session.form().said(&text)?], thinking))?;
    let draft = args.speculation.draft_or(DraftChoice::None);
    choose_draft(&mut session, &draft, args.speculation.stage.as_deref(), &args.device)?;
    if !args.speculation.cold && !speculation.is_off() {
        session.prepare();
    }
    session.remarks().for_each(output::note);
    let request = Request {
        sampling,
        speculation,
        max_tokens: args.max_tokens,
        ignore_end: args.ignore_eos,
        continues: args.raw,
        constraint: grammar.map(|grammar| session.form().constrained(grammar)),
        ..Request::new(prompt)
    };
    Ok((session, request))
}
