//! `serve`: the APIs of OpenAI and Anthropic for other programs, with the session on a thread of
//! its own. After a panic or a failed GPU the session is loaded again; if that fails, the program
//! ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use foretoken_engine::session::{Form, Remedy, Session, TextBudget};
use foretoken_engine::trace::Summary;
use foretoken_model::Error as EngineError;
use foretoken_model::ModelSource;
use foretoken_model::error::Result as EngineResult;
use foretoken_model::sampling::Sampling;
use foretoken_server::address::{DEFAULT_PORT, LOOPBACK};
use foretoken_server::session::write;
use foretoken_server::{
    Address, Defaults, Order, PromptReader, Refusal, ReplySink, Server, Writer, model_name,
};

use crate::args::{DraftChoice, TalkArgs};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output;
use crate::ready::{Ready, ready};
use crate::session::{choose_draft, draft_on_cpu, form};

/// Environment variable with the key, which keeps it out of the list of processes.
const KEY_VARIABLE: &str = "FORETOKEN_SERVER_KEY";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Port to listen on; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PORT, allow_negative_numbers = true)]
    port: u16,
    /// Address to listen on; addresses that other computers can reach need a key
    #[arg(long, value_name = "HOST", default_value = LOOPBACK)]
    host: String,
    /// Key that clients must send as 'Authorization: Bearer KEY' or 'x-api-key: KEY'; can also be
    /// set in the environment variable FORETOKEN_SERVER_KEY, which the list of processes does not
    /// show
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Memory for contexts of earlier requests in MB, 0 for none [default: a quarter of the free
    /// memory]
    #[arg(long, value_name = "MB")]
    context_memory: Option<u32>,
    // The last field, since clap would list later options under its last heading.
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// Handle of the session's thread, as the server's writer.
struct SessionThread {
    model: String,
    /// `false` while the session is loaded again, and after that failed.
    ready: Arc<AtomicBool>,
    orders: mpsc::Sender<(Order, ReplySink)>,
    /// Counts the tokens of prompts; the target stays the same.
    count: Count,
}

type Count = Box<dyn Fn(&Order) -> std::result::Result<usize, Refusal> + Send + Sync>;

impl Writer for SessionThread {
    fn model(&self) -> Option<String> {
        self.ready.load(Ordering::Relaxed).then(|| self.model.clone())
    }

    fn begin(&self, order: Order, sink: ReplySink) {
        // If the thread has ended, dropping the sink reports that to the client.
        let _ = self.orders.send((order, sink));
    }

    fn count(&self, order: Order) -> std::result::Result<usize, Refusal> {
        (self.count)(&order)
    }
}

pub fn run(Args { talk, port, host, key, context_memory }: &Args) -> Result<()> {
    // The API's defaults: no sampling filter.
    let base = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
    let (sampling, speculation) = (talk.sampling.over(base)?, talk.speculation.speculation()?);
    let key = key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok()).unwrap_or_default();
    let address = Address { host: host.clone(), port: *port, key };
    let budget = TextBudget::of_megabytes(*context_memory);
    let Ready { target, draft, mut session } = load(talk)?;
    session.keep_texts(budget);
    let thinking = talk.thinking.of(session.form());
    let defaults = Defaults { sampling, speculation, thinking, max_tokens: talk.max_tokens };
    let model = model_name(&target);
    session.device_sentences().for_each(output::note);
    output::note(format_args!(
        "Model {model}, draft {draft}, on {}. Ctrl-C stops the server.",
        session.devices()
    ));
    let interrupt = Interrupt::listen();
    let (orders, ordered) = mpsc::channel();
    let ready = Arc::new(AtomicBool::new(true));
    let prompts = PromptReader::of(&session, thinking);
    let count: Count = Box::new(move |order| prompts.count(order));
    let writer = SessionThread { model, ready: Arc::clone(&ready), orders, count };
    let server = Server::start(&address, Arc::new(writer))?;
    let loaded = Loaded { talk: talk.clone(), draft, defaults, budget, session };
    let work = move || write_all(loaded, &ready, ordered);
    let session = thread::Builder::new().name("session".to_owned()).spawn(work)?;
    output::line(format_args!("Listening on {}", server.url()))?;
    interrupt.wait_unless(|| session.is_finished());
    if session.is_finished() {
        server.finish();
        return session.join().unwrap_or(Err(Error::Unrecovered));
    }
    output::note("Waiting a few seconds for running replies. Press Ctrl-C again to stop them now.");
    server.finish();
    Ok(())
}

fn load(talk: &TalkArgs) -> Result<Ready> {
    ready(talk, form_if_any)
}

/// The prompt format; text completion also works without a chat template.
fn form_if_any(source: &ModelSource) -> Result<Form> {
    match form(source, false) {
        Err(Error::Engine(EngineError::NoTemplate { .. })) => Ok(Form::Raw),
        form => form,
    }
}

/// Reason to load the session again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Panic,
    Gpu(Remedy),
}

/// A loaded model, which may have to be loaded again.
trait Replying: Sized {
    /// Writes a reply and sends its text to `sink`.
    fn write(&mut self, order: Order, sink: &ReplySink) -> EngineResult<Summary>;

    /// Returns whether the draft failed on a GPU in the last reply.
    fn draft_failed(&self) -> bool;

    /// Loads a draft that failed on a GPU onto the CPU; without it, replies go on.
    fn recover_draft(&mut self);

    /// Returns the recovery after an error, if one is necessary.
    fn remedy(&self, error: &EngineError) -> Option<Remedy>;

    /// Loads the model again.
    ///
    /// # Errors
    /// Those of opening and loading models.
    fn recover(self, failure: Failure) -> Result<Self>;
}

/// The session and the options it was loaded with.
struct Loaded {
    talk: TalkArgs,
    draft: DraftChoice,
    defaults: Defaults,
    budget: TextBudget,
    session: Session,
}

impl Replying for Loaded {
    fn write(&mut self, order: Order, sink: &ReplySink) -> EngineResult<Summary> {
        let outcome = write(&mut self.session, order, &self.defaults, sink);
        self.session.save_stats();
        outcome
    }

    fn draft_failed(&self) -> bool {
        self.session.draft.failed_on_gpu()
    }

    fn recover_draft(&mut self) {
        let Self { talk, draft, session, .. } = self;
        let stage = talk.speculation.stage.as_deref();
        match draft_on_cpu(session, draft, stage, &talk.device) {
            Ok(()) => output::note("The draft runs on the CPU because it failed on the GPU."),
            Err(error) => tracing::warn!("the draft could not be loaded again: {error}"),
        }
    }

    fn remedy(&self, error: &EngineError) -> Option<Remedy> {
        self.session.remedy(error)
    }

    fn recover(self, failure: Failure) -> Result<Self> {
        let Self { talk, draft, defaults, budget, session } = self;
        let mut session = match failure {
            Failure::Panic => {
                // Two models may not fit in memory.
                drop(session);
                load(&talk)?.session
            }
            Failure::Gpu(remedy) => {
                let mut session = session.recover(remedy, |source| source)?;
                let stage = talk.speculation.stage.as_deref();
                // Replies go on without a draft that fails as well.
                match choose_draft(&mut session, &draft, stage, &talk.device) {
                    Ok(_) if !talk.speculation.cold => session.prepare(),
                    Ok(_) => {}
                    Err(error) => tracing::warn!("the draft could not be loaded again: {error}"),
                }
                session
            }
        };
        session.keep_texts(budget);
        Ok(Self { talk, draft, defaults, budget, session })
    }
}

/// Writes one reply after the other until the sender is dropped. After a failure of the engine the
/// model is loaded again, and `ready` is `false` meanwhile.
///
/// # Errors
/// Returns the reason why the model could not be loaded again.
fn write_all<R: Replying>(
    mut model: R,
    ready: &AtomicBool,
    orders: mpsc::Receiver<(Order, ReplySink)>,
) -> Result<()> {
    for (order, sink) in orders {
        let outcome = catch_unwind(AssertUnwindSafe(|| model.write(order, &sink)));
        let failure = match &outcome {
            Err(_) => Some(Failure::Panic),
            Ok(Err(error)) => {
                tracing::warn!("no reply: {error}");
                model.remedy(error).map(Failure::Gpu)
            }
            Ok(Ok(_)) => None,
        };
        // The end of the reply starts the next request.
        ready.store(failure.is_none(), Ordering::Relaxed);
        let failed =
            || Refusal::failed("The engine failed on this request; the server's log has the reason.");
        sink.end(outcome.map_or_else(|_| Err(failed()), |outcome| outcome.map_err(Into::into)));
        if failure.is_none() && model.draft_failed() {
            // A panic discards the session.
            if catch_unwind(AssertUnwindSafe(|| model.recover_draft())).is_err() {
                ready.store(false, Ordering::Relaxed);
                model = recover(model, Failure::Panic)?;
                ready.store(true, Ordering::Relaxed);
            }
        }
        if let Some(failure) = failure {
            model = recover(model, failure)?;
            ready.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Loads the model again. A panic while it is loaded would recur.
fn recover<R: Replying>(model: R, failure: Failure) -> Result<R> {
    output::note("The engine failed; reloading the model.");
    catch_unwind(AssertUnwindSafe(|| model.recover(failure))).unwrap_or(Err(Error::Unrecovered))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::{Duration, Instant};

    use foretoken_engine::trace::Finish;
    use foretoken_server::Event;
    use foretoken_tests::client::{Answer, get, post};

    use super::*;

    /// A model that fails on requests by their text, and whose reload takes a moment.
    #[derive(Default)]
    struct Scripted {
        reloads: u32,
        /// Times that the draft was loaded again.
        drafts: u32,
        draft_failed: bool,
    }

    impl Replying for Scripted {
        fn write(&mut self, order: Order, sink: &ReplySink) -> EngineResult<Summary> {
            let foretoken_server::Prompt::Text(text) = order.prompt else { panic!() };
            match text.as_str() {
                "panic" => panic!("a scripted panic"),
                "gpu" => Err(EngineError::EmptyPrompt),
                text => {
                    self.draft_failed = text == "draft";
                    sink.send(Event::Started(9));
                    let drafts = if self.drafts == 0 { "" } else { ", another draft" };
                    sink.send(Event::Text(format!("{} reloads{drafts}", self.reloads)));
                    Ok(Summary::of(&[], Finish::Stop, 9, 4, 20.0))
                }
            }
        }

        fn draft_failed(&self) -> bool {
            self.draft_failed
        }

        fn recover_draft(&mut self) {
            (self.drafts, self.draft_failed) = (self.drafts + 1, false);
        }

        fn remedy(&self, error: &EngineError) -> Option<Remedy> {
            matches!(error, EngineError::EmptyPrompt).then_some(Remedy::Cpu)
        }

        fn recover(self, failure: Failure) -> Result<Self> {
            thread::sleep(Duration::from_millis(300));
            match (self.reloads, failure) {
                (2, _) => panic!("a scripted panic while loading"),
                (reloads, _) => Ok(Self { reloads: reloads + 1, ..Self::default() }),
            }
        }
    }

    fn ask(at: SocketAddr, text: &str) -> Answer {
        post(at, "/v1/completions", &serde_json::json!({ "prompt": text }).to_string())
    }

    #[test]
    fn a_failed_session_is_loaded_again_and_health_says_so_meanwhile() {
        let (orders, ordered) = mpsc::channel();
        let ready = Arc::new(AtomicBool::new(true));
        let count: Count = Box::new(|_| Ok(7));
        let writer = SessionThread { model: "fox".to_owned(), ready: Arc::clone(&ready), orders, count };
        let address = Address { host: LOOPBACK.to_owned(), port: 0, key: String::new() };
        let server = Server::start(&address, Arc::new(writer)).unwrap();
        let session = thread::spawn(move || write_all(Scripted::default(), &ready, ordered));
        let at = server.address();
        let health = || get(at, "/health").status;
        let until = |status: u16| {
            let begun = Instant::now();
            while health() != status {
                assert!(begun.elapsed() < Duration::from_secs(10), "/health is not {status}");
            }
        };
        assert_eq!((health(), ask(at, "a").json()["choices"][0]["text"].as_str()), (200, Some("0 reloads")));
        // A draft that failed on its GPU is loaded again after the reply, and nothing else.
        assert_eq!((ask(at, "draft").status, health()), (200, 200));
        assert_eq!(ask(at, "a").json()["choices"][0]["text"], "0 reloads, another draft");
        assert_eq!((ask(at, "panic").status, health()), (500, 503));
        assert_eq!(ask(at, "a").status, 503, "no request waits for a model that is gone");
        until(200);
        assert_eq!(ask(at, "a").json()["choices"][0]["text"], "1 reloads");
        assert_eq!(ask(at, "gpu").status, 400);
        until(200);
        assert_eq!(ask(at, "a").json()["choices"][0]["text"], "2 reloads");
        // The model cannot be loaded again, so the session ends and nothing claims to be well.
        assert_eq!(ask(at, "panic").status, 500);
        assert!(matches!(session.join().unwrap(), Err(Error::Unrecovered)));
        assert_eq!((health(), ask(at, "a").status), (503, 503));
        server.finish();
    }
}
