//! Writes a reply with an engine session.

use foretoken_engine::decoder::Progress;
use foretoken_engine::session::Session;
use foretoken_engine::trace::Summary;
use foretoken_model::error::Result;

use crate::order::{Defaults, Order};
use crate::writer::{Event, ReplySink};

/// Writes a reply and sends its text to `sink`, until it ends or the receiver is gone.
///
/// # Errors
/// Returns the engine's errors; the caller passes them to [`ReplySink::end`], perhaps with advice.
pub fn write(session: &mut Session, order: Order, defaults: &Defaults, sink: &ReplySink) -> Result<Summary> {
    let (request, mut parser) = order.request(session, defaults, &|| sink.flow().is_break())?;
    sink.send(Event::Started(request.prompt.len()));
    let reply = session.reply(&request, &mut |progress| {
        if let Progress::Round(round) = progress {
            let texts = round.emitted().map(|(_, text)| text);
            parser.push_tokens(texts).into_iter().for_each(|event| sink.send(event));
        }
        sink.flow()
    })?;
    let stop = reply.stop.map(Event::Stop);
    let ends =
        parser.finish().into_iter().chain([Event::ThinkingTokens(parser.thinking_tokens())]).chain(stop);
    ends.for_each(|event| sink.send(event));
    Ok(reply.summary)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
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
