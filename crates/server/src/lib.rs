//! The local server: OpenAI's protocol for programs on this computer, and with a key for others. Knows neither who
//! writes the replies, which is a [`Writer`]'s affair, nor a window, a terminal or a file.
//!
//! - [`server`]: a server that runs, its connections, its end; [`address`]: where it listens
//! - `routes`: what can be asked for; `guard`: who may ask
//! - `body`: what is asked, read from JSON; [`order`]: the same as a writer gets it
//! - [`log`]: the latest requests
//! - `queue`: one reply at a time, and how many may wait
//! - [`writer`]: who writes, and how it tells of it; [`session`]: by a session of the engine
//! - `answer`: replies as JSON; `stream`: while they are written
//! - [`refusal`]: errors in the protocol's form
//! - [`fuzzing`]: a request without a connection, for those who damage it

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod address;
mod answer;
mod body;
pub mod fuzzing;
mod guard;
pub mod log;
pub mod order;
mod queue;
pub mod refusal;
mod routes;
pub mod server;
pub mod session;
mod stream;
pub mod writer;

pub use address::{Address, StartError};
pub use log::ServerRequest;
pub use order::{Defaults, Order, Prompt, SamplingChoices};
pub use refusal::Refusal;
pub use server::Server;
pub use writer::{Event, Teller, Writer, model_name};
