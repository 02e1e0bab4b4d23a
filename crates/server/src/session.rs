//! Writes a reply with an engine session.

use std::sync::Arc;

use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::session::Session;
use foretoken_engine::trace::{Finish, Speedup, Summary};
use foretoken_model::error::Result;
use foretoken_model::sampling::Sampling;

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
    let (request, parser) = request(order, session, defaults, &|| sink.flow().is_break())?;
    sink.send(Event::Started(request.prompt.len()));
    let mut total = write_one(session, &request, parser.clone(), sink)?;
    for choice in 1..choices {
        if total.finish == Finish::Cancelled {
            break;
        }
        sink.send(Event::Next(total.finish));
        let next = write_one(session, &of_choice(&request, choice as u32), parser.clone(), sink)?;
        total = sum(total, next);
    }
    Ok(total)
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
                sink.send(Event::Logprobs(Logprob::all(&round.logprobs, &tokenizer)));
            }
            let texts = round.emitted().map(|(_, text)| text);
            parser.push_tokens(texts).into_iter().for_each(|event| sink.send(event));
        }
        sink.flow()
    })?;
    let stop = reply.stop.map(Event::Stop);
    let thinking = Event::ThinkingTokens(parser.thinking_tokens());
    parser.finish().into_iter().chain([thinking]).chain(stop).for_each(|event| sink.send(event));
    Ok(reply.summary)
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
    use foretoken_model::{Error, ModelSource, Renderer};
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

    #[test]
    fn a_prompt_whose_client_left_is_not_encoded_to_its_end() {
        let mut session = long_session();
        let text = "Once upon a time, 1234 foxes. ".repeat(100_000);
        let begun = Instant::now();
        whole_text(session.tokenizer(), &text, usize::MAX, &|| false).unwrap();
        let whole = begun.elapsed();

        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sink, events) = ReplySink::new(runtime.block_on(Queue::new(1).acquire()).unwrap());
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
