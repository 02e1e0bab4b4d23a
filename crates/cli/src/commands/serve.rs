//! `serve`: the OpenAI API for other programs, with the session on a thread of its own.

use std::sync::{Arc, mpsc};
use std::thread;

use foretoken_engine::session::{Form, Session};
use foretoken_model::Error as EngineError;
use foretoken_model::ModelSource;
use foretoken_model::sampling::Sampling;
use foretoken_server::address::{DEFAULT_PORT, LOOPBACK};
use foretoken_server::session::write;
use foretoken_server::{Address, Defaults, Order, ReplySink, Server, Writer, model_name};

use crate::args::TalkArgs;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output;
use crate::ready::{Ready, ready};
use crate::session::form;

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
    /// Key that clients must send as 'Authorization: Bearer KEY'; can also be set in the
    /// environment variable FORETOKEN_SERVER_KEY, which the list of processes does not show
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    // The last field, since clap would list later options under its last heading.
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// Handle of the session's thread, as the server's writer.
struct SessionThread {
    model: String,
    orders: mpsc::Sender<(Order, ReplySink)>,
}

impl Writer for SessionThread {
    fn model(&self) -> Option<String> {
        Some(self.model.clone())
    }

    fn begin(&self, order: Order, sink: ReplySink) {
        // If the thread has ended, dropping the sink reports that to the client.
        let _ = self.orders.send((order, sink));
    }
}

pub fn run(Args { talk, port, host, key }: &Args) -> Result<()> {
    // The API's defaults: no sampling filter.
    let base = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
    let (sampling, speculation) = (talk.sampling.over(base)?, talk.speculation.speculation()?);
    let key = key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok()).unwrap_or_default();
    let address = Address { host: host.clone(), port: *port, key };
    let Ready { target, draft, session } = ready(talk, form_if_any)?;
    let thinking = talk.thinking.of(session.form());
    let defaults = Defaults { sampling, speculation, thinking, max_tokens: talk.max_tokens };
    let model = model_name(&target);
    session.remarks().chain(session.notes()).for_each(output::note);
    output::note(format_args!(
        "Model {model}, draft {draft}, on {}. Ctrl-C stops the server.",
        session.devices()
    ));
    let interrupt = Interrupt::listen();
    let (orders, ordered) = mpsc::channel();
    let server = Server::start(&address, Arc::new(SessionThread { model, orders }))?;
    let work = move || write_all(session, &defaults, ordered);
    thread::Builder::new().name("session".to_owned()).spawn(work)?;
    output::line(format_args!("Listening on {}", server.url()))?;
    interrupt.wait();
    output::note("Waiting a few seconds for running replies. Press Ctrl-C again to stop them now.");
    server.finish();
    Ok(())
}

/// The prompt format; text completion also works without a chat template.
fn form_if_any(source: &ModelSource) -> Result<Form> {
    match form(source, false) {
        Err(Error::Engine(EngineError::NoTemplate { .. })) => Ok(Form::Raw),
        form => form,
    }
}

/// Writes one reply after the other until the sender is dropped.
fn write_all(mut session: Session, defaults: &Defaults, orders: mpsc::Receiver<(Order, ReplySink)>) {
    for (order, sink) in orders {
        let outcome = write(&mut session, order, defaults, &sink);
        if let Err(error) = &outcome {
            tracing::warn!("no reply: {error}");
        }
        sink.end(outcome.map_err(Into::into));
        session.keep_learned();
    }
}
