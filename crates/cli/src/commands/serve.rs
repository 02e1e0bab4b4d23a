//! `serve`: the APIs of OpenAI and Anthropic for other programs, with the session on a thread of
//! its own. If a model that failed cannot be loaded again, the program ends.

mod models;
mod session_thread;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use foretoken_engine::session::TextBudget;
use foretoken_model::child::Program;
use foretoken_model::sampling::Sampling;
use foretoken_senses::picture::PictureReader;
use foretoken_server::address::{DEFAULT_PORT, LOOPBACK};
use foretoken_server::{Address, Defaults, Server};

use self::models::ServedModels;
use self::session_thread::{Count, Loader, SessionLoader, SessionThread, Slot, Status, write_all};
use crate::args::TalkArgs;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::output;
use crate::ready::target_name;

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
    /// Let requests name any model on this computer; it is loaded in place of the one before, with
    /// its own draft. --draft, --stage, --vision and --context apply to the target alone
    #[arg(long)]
    all_models: bool,
    /// Unload the model after N minutes without a request; the next request loads it again
    /// [default: never]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    idle_minutes: Option<NonZeroU32>,
    /// Let the reply to a question with tools begin with a call, for small models that forget their
    /// tools
    #[arg(long)]
    tool_first: bool,
    // The last field, since clap would list later options under its last heading.
    #[command(flatten)]
    pub talk: TalkArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let Args { talk, port, host, key, context_memory, all_models, idle_minutes, tool_first } = args;
    // The API's defaults: no sampling filter.
    let base = Sampling { temperature: 1.0, top_p: 1.0, ..Sampling::default() };
    let (sampling, speculation) = (talk.sampling.over(base)?, talk.speculation.speculation()?);
    let key = key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok()).unwrap_or_default();
    let address = Address { host: host.clone(), port: *port, key };
    let models = Arc::new(ServedModels::new(talk, &target_name(talk)?, *all_models)?);
    let (max_tokens, tool_first) = (talk.max_tokens, *tool_first);
    let defaults = Defaults { sampling, speculation, thinking: None, max_tokens, tool_first };
    let budget = TextBudget::of_megabytes(*context_memory);
    let loader = SessionLoader { models: Arc::clone(&models), defaults, budget };
    let name = models.first().to_owned();
    let loaded = loader.load(&name)?;
    let (sees, loaded) = (loaded.sees(), Some(loaded));
    let embedder = talk.embedding.load()?;
    let interrupt = Interrupt::listen();
    let status = Arc::new(Status::of(&name));
    let (jobs, received) = mpsc::channel();
    let names = models.names();
    let count: Count = Box::new(move |model, order| models.count(model, order));
    let pictures = PictureReader::new(Some(&Program::This));
    let status_of = Arc::clone(&status);
    let writer = SessionThread { names, count, status: status_of, jobs, embedder, pictures, sees };
    let server = Server::start(&address, Arc::new(writer))?;
    let slot = Slot { loader, name, loaded };
    let idle = idle_minutes.map(|minutes| Duration::from_secs(60 * u64::from(minutes.get())));
    let work = move || write_all(slot, &status, received, idle);
    let session = thread::Builder::new().name("session".to_owned()).spawn(work)?;
    output::note("Ctrl-C stops the server.");
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
