//! The engine's request for an order.

use foretoken_engine::decoder::Request;
use foretoken_engine::session::{Form, Session};
use foretoken_model::error::Result;
use foretoken_model::{CallParser, ThinkingParser};

use crate::order::{Defaults, Order, Prompt};
use crate::prompt_reader::PromptReader;
use crate::reply_parser::ReplyParser;

/// Builds the engine's request for `order`, unless `stop` returns `true` meanwhile, and the parser
/// of the reply.
///
/// # Errors
/// Returns errors of the template and the tokenizer, and those of
/// [`Decoder::admit`](foretoken_engine::decoder::Decoder::admit).
pub fn request(
    order: Order,
    session: &Session,
    defaults: &Defaults,
    stop: &dyn Fn() -> bool,
) -> Result<(Request, ReplyParser)> {
    let separates = order.separates_thinking;
    let prompt = PromptReader::of(session, defaults.thinking).tokens(&order, stop)?;
    let request = Request {
        sampling: order.sampling.over(&defaults.sampling),
        speculation: defaults.speculation.clone(),
        max_tokens: order.max_tokens.or(defaults.max_tokens),
        continues: matches!(order.prompt, Prompt::Text(_)),
        stop: order.stop,
        ignore_end: order.ignore_end,
        owner: order.owner,
        logprobs: order.logprobs,
        constraint: order.grammar.map(|grammar| session.form().constrained(grammar)),
        ..Request::new(prompt)
    };
    let (request, calls) = match (&order.tools, session.form().as_ref()) {
        (Some(tools), Form::Chat(template)) => {
            let calls = (template.calls(), tools.tools.clone());
            (tools.constrained(session, template, request)?.0, Some(calls))
        }
        _ => {
            session.decoder.admit(&request)?;
            (request, None)
        }
    };
    let (tags, reasons) = session.reasoning(&request);
    let thinking = separates.then(|| ThinkingParser::new(tags, reasons));
    let tags = if separates { None } else { tags };
    let calls = calls.map(|(form, tools)| CallParser::new(form, tags, reasons).of_tools(&tools));
    Ok((request, ReplyParser::new(thinking, calls)))
}
