//! Foretoken's application, without a window: what a person can do is a method of [`App`]. The desktop shell
//! passes the page's commands on to it.
//!
//! - [`ipc`]: every type that crosses to the page
//! - [`app`], [`reply`], [`proof`], [`settings`]: conversations, replies, checks and arenas, what is set
//! - [`presets`]: named values to write with; `setup`: what a conversation is written with
//! - [`attachments`]: files beside a question, and how a model reads them; `estimate`: tokens that are not counted
//! - `running`: the reply under way, for a page that is loaded meanwhile
//! - [`start`]: what is done about a start that fails
//! - [`room`]: conversations that outgrow the context; `unstored`: replies that could not be stored yet,
//!   `storing`: when they are
//! - [`exchange`]: conversations as files, exported and imported
//! - `title`: titles that a model writes; `naming`: which conversations get them
//! - [`cancel`]: ending a job, and one job at a time
//! - [`engine`]: the thread that owns the models; [`board`]: its status and who watches it
//! - [`replier`]: who replies, be it the engine or another; [`round`]: a round, turned into JSON once
//! - [`hub`]: what comes from the hub; [`remote`]: servers elsewhere that a person adds; `servers`: which of
//!   them is the target
//! - [`recommend`]: which models of the catalogue suit this computer; [`speeds`]: how fast models are on it
//! - [`models`]: the lists of targets and drafts; [`looking`]: a look into a file that fails by itself;
//!   [`drafts`]: which draft a target gets; [`memory`]: whether they fit
//! - `serving`: the local server; `view`: how the window looked last
//! - [`pace`]: events told no more often than they are shown; [`save`]: files for the person
//! - `learning`: where it is kept what was learned about models
//! - [`error`], `stored`: other crates' types as the page's; `shown`: what a page sees of the engine; `history`: stored messages as a conversation

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod app;
pub mod attachments;
pub mod board;
pub mod cancel;
pub mod devices;
mod drafts;
pub mod engine;
pub mod error;
mod estimate;
pub mod exchange;
mod facing;
mod history;
pub mod hub;
pub mod ipc;
mod learning;
mod lock;
pub mod looking;
pub mod memory;
pub mod models;
mod naming;
pub mod pace;
pub mod presets;
pub mod proof;
pub mod recommend;
pub mod remote;
pub mod replier;
pub mod reply;
pub mod room;
pub mod round;
mod running;
pub mod save;
mod servers;
mod serving;
pub mod settings;
mod setup;
mod shown;
pub mod speeds;
mod speedups;
pub mod start;
mod start_problem;
mod stored;
mod storing;
mod title;
mod unstored;
mod view;

pub use app::App;
