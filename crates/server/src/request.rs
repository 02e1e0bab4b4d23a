//! The engine's request for an order.

use foretoken_engine::constraint::Constraint;
use foretoken_engine::decoder::Request;
use foretoken_engine::session::{Form, Session};
use foretoken_model::ThinkingParser;
use foretoken_model::error::Result;

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
    mut order: Order,
    session: &Session,
    defaults: &Defaults,
    stop: &dyn Fn() -> bool,
) -> Result<(Request, ReplyParser)> {
    if defaults.tool_first {
        order.begin_with_call();
    }
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
        constraint: order.grammar.map(|grammar| match order.prompt {
            Prompt::Conversation(_) => session.form().constrained(grammar),
            // A text that goes on does not begin with reasoning.
            Prompt::Text(_) => Constraint { grammar, thinking: None },
        }),
        ..Request::new(prompt)
    };
    let (request, calls) = match (&order.tools, session.form().as_ref()) {
        (Some(tools), Form::Chat(template)) => {
            let (request, calls) = tools.constrained(session, template, request)?;
            (request, Some(if separates { calls.after_thinking() } else { calls }))
        }
        _ => {
            session.decoder.admit(&request)?;
            (request, None)
        }
    };
    let (tags, reasons) = session.reasoning(&request);
    let thinking = separates.then(|| ThinkingParser::new(tags, reasons));
    Ok((request, ReplyParser::new(thinking, calls)))
}
