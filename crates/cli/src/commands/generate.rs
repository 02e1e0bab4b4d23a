//! `generate`: one reply, as text or as a JSON line per round and one at the end.

use foretoken_engine::decoder::{Reply, Request};
use foretoken_engine::session::{Form, Session, ToolUse};
use foretoken_engine::trace::{Finish, Round, Speedup, Times};
use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use foretoken_model::{CallParser, ChatMessage, Conversation, Piece, ToolCall, Written};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{DraftChoice, ReplyArgs, ToolArgs};
use crate::error::Result;
use crate::files::{self, Files};
use crate::interrupt::Interrupt;
use crate::output;
use crate::pictures;
use crate::session::{choose_draft, form, load, reply};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    tools: ToolArgs,
    // The last field, since clap would list later options under its last heading.
    #[command(flatten)]
    pub reply: ReplyArgs,
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Round(&'a Round),
    Done(&'a Done<'a>),
}

/// The whole reply and its statistics, as in `Summary`.
#[derive(Serialize)]
struct Done<'a> {
    text: &'a str,
    tokens: &'a [TokenId],
    /// Calls of tools in the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<PrintedCall<'a>>,
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

/// A call of a tool.
#[derive(Serialize)]
struct PrintedCall<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

impl<'a> PrintedCall<'a> {
    fn of(ToolCall { name, arguments, .. }: &'a ToolCall) -> Self {
        Self { name, arguments }
    }
}

impl<'a> Done<'a> {
    fn of(reply: &'a Reply, written: &'a Written, seed: Option<u32>) -> Self {
        let summary = &reply.summary;
        Self {
            text: &reply.text,
            tokens: &reply.tokens,
            calls: written.calls.iter().map(PrintedCall::of).collect(),
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

pub fn run(Args { reply: args, tools }: &Args) -> Result<()> {
    let tools = tools.tools()?;
    let base = Sampling { automatic_penalties: true, stop_loops: true, ..Sampling::greedy() };
    let (mut session, request, mut parser) = prepare_with(args, base, tools.as_ref())?;
    let interrupt = Interrupt::listen();
    let mut written = Written::default();
    let reply = reply(&mut session, &request, &interrupt, &mut |round| {
        if args.json {
            output::json(&Line::Round(round))?;
        }
        let pieces = match &mut parser {
            Some(parser) => parser.push_tokens(round.emitted()),
            None => vec![Piece::Text(round.emitted().map(|(_, text)| text).collect())],
        };
        pieces.into_iter().try_for_each(|piece| show(piece, &mut written, args.json))
    })?;
    let rest = parser.map(|mut parser| parser.finish()).unwrap_or_default();
    rest.into_iter().try_for_each(|piece| show(piece, &mut written, args.json))?;
    if args.json {
        return output::json(&Line::Done(&Done::of(&reply, &written, request.sampling.seed)));
    }
    if !written.text.is_empty() || written.calls.is_empty() {
        output::line("")?;
    }
    written.calls.iter().try_for_each(|call| output::json(&PrintedCall::of(call)))?;
    output::note(output::summary(&reply.summary));
    Ok(())
}

/// Prints the text of a part of the reply; calls are printed at its end.
fn show(piece: Piece, written: &mut Written, json: bool) -> Result<()> {
    let shown = match &piece {
        Piece::Text(text) if !json => output::text(text),
        _ => Ok(()),
    };
    written.push(piece);
    shown
}

/// `message` behind the pictures that `args` name.
fn with_pictures(message: ChatMessage, args: &ReplyArgs) -> Result<ChatMessage> {
    let mut shown = ChatMessage::new(message.role, "");
    for path in &args.picture {
        shown = shown.with_picture(&pictures::read(path)?, args.vision.detail());
    }
    Ok(ChatMessage { pictures: shown.pictures, ..message })
}

/// Loads the models that `args` name and builds the request, with sampling completed from `base`.
/// Invalid options are rejected before any model is loaded.
pub fn prepare(args: &ReplyArgs, base: Sampling) -> Result<(Session, Request)> {
    prepare_with(args, base, None).map(|(session, request, _)| (session, request))
}

/// As [`prepare`], for a reply that may call `tools`, with the parser of its text.
fn prepare_with(
    args: &ReplyArgs,
    base: Sampling,
    tools: Option<&ToolUse>,
) -> Result<(Session, Request, Option<CallParser>)> {
    let sampling = args.sampling.over(base)?;
    let speculation = args.speculation.speculation()?;
    let grammar = args.grammar.grammar()?;
    let (files, question) = (files::read_all(&args.file)?, args.prompt.text()?);
    let embedder = args.embedding.load()?;
    let source = args.device.target.open(&args.target)?;
    let mut session = load(&source, form(&source, args.raw)?, &args.device)?;
    args.vision.open(&mut session, &source)?;
    let thinking = args.thinking.of(session.form());
    let text = files::before(&files, question, Files::new(session.context(), embedder))?;
    let messages = &[with_pictures(session.form().said(&text)?, args)?];
    let offered = tools.map_or(&[][..], |asked| &asked.tools);
    let conversation = Conversation { messages, tools: offered, thinking };
    let prompt = session.conversation(&conversation)?;
    pictures::see(&mut session, &conversation, None)?;
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
    match (tools, session.form().as_ref()) {
        (Some(tools), Form::Chat(template)) => {
            let (request, parser) = tools.constrained(&session, template, request)?;
            Ok((session, request, Some(parser)))
        }
        _ => Ok((session, request, None)),
    }
}
