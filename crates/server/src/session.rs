//! Writes a reply with an engine session.

use std::sync::Arc;

use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::session::Session;
use foretoken_engine::trace::{Finish, Round, Speedup, Summary};
use foretoken_model::error::{Error, Result};
use foretoken_model::sampling::Sampling;
use foretoken_model::{Conversation, Tokenizer};

use crate::logprob::Logprob;
use crate::order::{Defaults, Order};
use crate::reply_parser::ReplyParser;
use crate::request::request;
use crate::writer::{Event, ReplySink};

/// Odd number that spreads the seeds of an order's replies (2^32 over the golden ratio).
const SEED_STEP: u32 = 0x9E37_79B9;

/// Writes the replies of an order and sends their text to `sink`, until they end or the receiver is
/// gone. The prompt is read once. Returns the end of the last one, with tokens and times of all.
///
/// # Errors
/// Returns the engine's errors; the caller passes them to [`ReplySink::end`], perhaps with advice.
pub fn write(session: &mut Session, order: Order, defaults: &Defaults, sink: &ReplySink) -> Result<Summary> {
    let choices = order.choices;
    let shown = order.with_pictures();
    let (request, parser) = request(order, session, defaults, &|| sink.flow().is_break())?;
    let conversation = Conversation { messages: &shown, tools: &[], thinking: None };
    session.see(&conversation, &mut |_| sink.flow())?;
    sink.send(Event::Started(request.prompt.len()));
    let replies = write_choices(session, &request, &parser, choices, sink)?;
    replies.into_iter().reduce(sum).ok_or(Error::Cancelled)
}

/// Writes this many replies; returns the end of each.
fn write_choices(
    session: &mut Session,
    request: &Request,
    parser: &ReplyParser,
    choices: usize,
    sink: &ReplySink,
) -> Result<Vec<Summary>> {
    let mut replies: Vec<Summary> = Vec::with_capacity(choices);
    for choice in 0..choices {
        match replies.last() {
            Some(last) if last.finish == Finish::Cancelled => break,
            Some(last) => sink.send(Event::Next(last.finish)),
            None => {}
        }
        replies.push(write_one(session, &of_choice(request, choice as u32), parser.clone(), sink)?);
    }
    Ok(replies)
}

/// The request for reply number `choice`, whose seed is made from that of the first.
fn of_choice(request: &Request, choice: u32) -> Request {
    let seed = request.sampling.seed.map(|seed| seed.wrapping_add(choice.wrapping_mul(SEED_STEP)));
    Request { sampling: Sampling { seed, ..request.sampling.clone() }, ..request.clone() }
}

fn write_one(
    session: &mut Session,
    request: &Request,
    mut parser: ReplyParser,
    sink: &ReplySink,
) -> Result<Summary> {
    let tokenizer = Arc::clone(session.tokenizer());
    let reply = session.reply(request, &mut |progress| {
        if let Progress::Round(round) = progress {
            if !round.logprobs.is_empty() {
                write_with_logprobs(round, &tokenizer, &mut parser, sink);
                return sink.flow();
            }
            parser.push_tokens(round.emitted()).into_iter().for_each(|event| sink.send(event));
        }
        sink.flow()
    })?;
    let stop = reply.stop.map(Event::Stop);
    let thinking = Event::ThinkingTokens(parser.thinking_tokens());
    parser.finish().into_iter().chain([thinking]).chain(stop).for_each(|event| sink.send(event));
    Ok(reply.summary)
}

/// Sends a round's tokens one by one, each after its log probability if it is no reasoning.
fn write_with_logprobs(round: &Round, tokenizer: &Tokenizer, parser: &mut ReplyParser, sink: &ReplySink) {
    let mut logprobs = round.logprobs.iter().peekable();
    for (token, text) in round.emitted() {
        let found = logprobs.next_if(|found| found.token == token);
        let was_thinking = parser.is_thinking();
        let events = parser.push_tokens(std::iter::once((token, text)));
        let is_text = !was_thinking && !parser.is_thinking();
        let logprob = found.filter(|_| is_text).and_then(|found| Logprob::of_text(found, tokenizer));
        logprob.into_iter().for_each(|logprob| sink.send(Event::Logprobs(vec![logprob])));
        events.into_iter().for_each(|event| sink.send(event));
    }
}

/// Summary of replies to one prompt, which ended as `next` did.
fn sum(total: Summary, next: Summary) -> Summary {
    let tokens = total.tokens + next.tokens;
    let rounds = total.rounds + next.rounds;
    let (judged, accepted) = (total.judged + next.judged, total.accepted + next.accepted);
    let speedup = match (total.speedup, next.speedup) {
        (Some(one), Some(other)) => Speedup::new(
            one.plain_ms + other.plain_ms,
            one.elapsed_ms + other.elapsed_ms,
            one.replies + other.replies,
        ),
        (one, other) => one.or(other),
    };
    let elapsed_ms = total.elapsed_ms + next.elapsed_ms;
    let later_ms = elapsed_ms - total.ttft_ms;
    Summary {
        finish: next.finish,
        tokens,
        rounds,
        drafted: total.drafted + next.drafted,
        judged,
        accepted,
        acceptance_rate: (judged > 0).then(|| f64::from(accepted) / f64::from(judged)),
        tokens_per_round: f64::from(tokens) / f64::from(rounds.max(1)),
        tokens_per_second: (later_ms > 0.0).then(|| f64::from(tokens) * 1e3 / later_ms),
        elapsed_ms,
        speedup,
        ..total
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use foretoken_engine::session::{Form, Host, ThisComputer, whole_text};
    use foretoken_forward::device::DeviceChoice;
    use foretoken_model::{ModelSource, Renderer};
    use foretoken_tests::write_starter_folder;

    use super::*;
    use crate::order::Prompt;
    use crate::queue::Queue;

    /// Loads a model with a context of eight million tokens.
    fn long_session() -> Session {
        let folder = tempfile::tempdir().unwrap();
        write_starter_folder("starter-draft", folder.path());
        let config = folder.path().join("config.json");
        let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
        json["max_position_embeddings"] = 8_000_000.into();
        std::fs::write(&config, json.to_string()).unwrap();
        let host =
            Host { hardware: Arc::new(ThisComputer), learning: None, renderer: Renderer::in_this_process() };
        let source = ModelSource::open(folder.path()).unwrap();
        Session::load(&host, &source, Form::Raw, DeviceChoice::Cpu).unwrap()
    }

    fn sink() -> (ReplySink, tokio::sync::mpsc::UnboundedReceiver<Event>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        ReplySink::new(runtime.block_on(Queue::new(1).acquire()).unwrap())
    }

    #[test]
    fn the_prompt_of_several_replies_is_read_once() {
        let mut session = long_session();
        let (sink, _events) = sink();
        let prompt = Prompt::Text("Once upon a time, there was a fox. ".repeat(20));
        let order = Order { max_tokens: Some(3), ..Order::new(prompt) };
        let (request, parser) = request(order, &session, &Defaults::default(), &|| false).unwrap();
        let replies = write_choices(&mut session, &request, &parser, 3, &sink).unwrap();
        let read: Vec<u32> = replies.iter().map(|reply| reply.prompt_tokens - reply.reused_tokens).collect();
        assert_eq!(
            (read[0] as usize, &read[1..]),
            (request.prompt.len(), &[1, 1][..]),
            "the last token runs again"
        );
    }

    #[test]
    fn a_prompt_whose_client_left_is_not_encoded_to_its_end() {
        let mut session = long_session();
        let text = "Once upon a time, 1234 foxes. ".repeat(100_000);
        let begun = Instant::now();
        whole_text(session.tokenizer(), &text, usize::MAX, &|| false).unwrap();
        let whole = begun.elapsed();

        let (sink, events) = sink();
        let order = Order { max_tokens: Some(1), ..Order::new(Prompt::Text(text)) };
        let client = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            drop(events);
        });
        let begun = Instant::now();
        let left = write(&mut session, order, &Defaults::default(), &sink);
        assert!(matches!(left, Err(Error::Cancelled)));
        assert!(begun.elapsed() < whole / 2, "{:?} of {whole:?}", begun.elapsed());
        client.join().unwrap();
    }
}
