//! `check`: compares a reply with drafts to one without. The two must be identical.

use std::ops::ControlFlow;
use std::process::ExitCode;

use foretoken_engine::check::{Check, check};
use foretoken_model::Tokenizer;
use foretoken_model::sampling::{Mode, Sampling};
use foretoken_model::token::TokenId;
use serde::Serialize;

use super::generate::prepare;
use crate::args::ReplyArgs;
use crate::error::{Error, Result};
use crate::output;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub reply: ReplyArgs,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    check: &'a Check,
    /// Seed of both replies; none at temperature 0.
    seed: Option<u32>,
}

pub fn run(Args { reply: args }: &Args) -> Result<ExitCode> {
    let base = Sampling {
        mode: Mode::Reproducible,
        automatic_penalties: true,
        stop_loops: true,
        ..Sampling::greedy()
    };
    let (mut session, request) = prepare(args, base)?;
    if session.draft.drafters.is_empty() || request.speculation.is_off() {
        return Err(nothing_to_compare());
    }
    let verdict = check(&mut session.decoder, &request, &mut session.draft.drafters, &mut |_| {
        ControlFlow::Continue(())
    })?;
    if args.json {
        output::json(&Line { check: &verdict, seed: request.sampling.seed })?;
    } else {
        output::line(sentence(&verdict, session.tokenizer()))?;
    }
    Ok(if verdict.identical { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn nothing_to_compare() -> Error {
    Error::Usage(
        "check compares a reply with drafts to one without: it needs --draft with a model, mtp \
         or ngram, and a --draft-length other than 0."
            .to_owned(),
    )
}

fn sentence(check: &Check, tokenizer: &Tokenizer) -> String {
    let Some(difference) = &check.first_difference else {
        return format!("identical: all {} tokens are the same with and without drafts", check.tokens);
    };
    let name = |token: Option<TokenId>| match token {
        Some(token) => format!("{token} '{}'", output::harmless(&tokenizer.piece(token))),
        None => "no token".to_owned(),
    };
    let tie = if difference.near_tie { ", a near tie that rounding decides" } else { "" };
    let gap = difference.gap.map_or(String::new(), |gap| format!("; their logits differ by {gap}{tie}"));
    format!(
        "different: token {} of the reply is {} with drafts and {} without{gap}",
        difference.position,
        name(difference.with),
        name(difference.without)
    )
}
