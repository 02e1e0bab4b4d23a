//! `serve`: replies to other programs by OpenAI's protocol, with a session on a thread of its own.

use std::sync::{Arc, mpsc};
use std::thread;

use foretoken_engine::Error as EngineError;
use foretoken_engine::model::ModelSource;
use foretoken_engine::sampling::Sampling;
use foretoken_engine::session::{Form, Session};
use foretoken_server::address::{DEFAULT_PORT, LOOPBACK};
use foretoken_server::session::write;
use foretoken_server::{Address, Defaults, Order, Server, Teller, Writer, model_name};

use crate::args::TalkArgs;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output;
use crate::ready::{Ready, ready};
use crate::session::form;

/// Where a key may be that is not to be seen in the list of processes.
const KEY_VARIABLE: &str = "FORETOKEN_SERVER_KEY";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The port to listen on; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PORT, allow_negative_numbers = true)]
    port: u16,
    /// The address to listen on; any but this computer's own needs a key
    #[arg(long, value_name = "HOST", default_value = LOOPBACK)]
    host: String,
    /// What clients must send as 'Authorization: Bearer KEY'; also from the environment as FORETOKEN_SERVER_KEY, which
    /// the list of processes does not show
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    // Last: what follows would be listed under its last heading.
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// The session's thread, as the server sees it.
struct SessionThread {
    model: String,
    orders: mpsc::Sender<(Order, Teller)>,
}

impl Writer for SessionThread {
    fn model(&self) -> Option<String> {
        Some(self.model.clone())
    }

    fn begin(&self, order: Order, teller: Teller) {
        // Where the thread is gone, so is the teller then, which says so.
        let _ = self.orders.send((order, teller));
    }
}

pub fn run(Args { talk, port, host, key }: &Args) -> Result<()> {
    // The protocol's own: nothing is cut off.
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
        "Model {model}, draft {draft}, on {}. Ctrl-C ends the server.",
        session.devices()
    ));
    let interrupt = Interrupt::listen();
    let (orders, ordered) = mpsc::channel();
    let server = Server::start(&address, Arc::new(SessionThread { model, orders }))?;
    let work = move || write_all(session, &defaults, ordered);
    thread::Builder::new().name("session".to_owned()).spawn(work)?;
    output::line(format_args!("Listening on {}", server.url()))?;
    interrupt.wait();
    output::note("Replies under way have a few seconds; Ctrl-C again ends them now.");
    server.finish();
    Ok(())
}

/// A model without a chat template goes on with texts all the same.
fn form_if_any(source: &ModelSource) -> Result<Form> {
    match form(source, false) {
        Err(Error::Engine(EngineError::NoTemplate { .. })) => Ok(Form::Raw),
        form => form,
    }
}

/// Writes one reply after the other until nobody can order any more.
fn write_all(mut session: Session, defaults: &Defaults, orders: mpsc::Receiver<(Order, Teller)>) {
    for (order, teller) in orders {
        let outcome = write(&mut session, order, defaults, &teller);
        if let Err(error) = &outcome {
            tracing::warn!("no reply: {error}");
        }
        teller.end(outcome.map_err(Into::into));
        session.keep_learned();
    }
}
