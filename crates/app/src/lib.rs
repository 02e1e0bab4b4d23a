//! Foretoken's application without a window: every user action is a method of [`App`]. The desktop
//! shell forwards the page's commands to it.
//!
//! - [`ipc`]: every type that crosses to the page
//! - [`app`], [`reply`], [`proof`], [`settings`]: conversations, replies, checks and arenas,
//!   settings
//! - [`presets`]: named values for replies; `setup`: a conversation's own settings
//! - [`attachments`]: attachments and their place in the prompt; `estimate`: estimated token counts
//! - `running`: the running reply, for a page that is loaded meanwhile
//! - [`start`]: recovery from a failed start
//! - [`room`]: conversations that exceed the context; `unstored`: replies that could not be stored
//!   yet, `storing`: retries
//! - [`exchange`]: export and import of conversations
//! - `title`: titles written by a model; `naming`: which conversations get one
//! - [`cancel`]: cancellation, and one job at a time
//! - [`engine`]: the thread that owns the models; [`observable`]: its status and the watchers
//! - [`replier`]: interface of reply writers; [`round`]: a round, converted to JSON once
//! - [`hub`]: models of the hub; [`remote`]: adding remote servers; `servers`: the chosen one
//! - [`recommend`]: models of the catalogue that suit this computer; [`speeds`]: measured and
//!   estimated speeds
//! - [`models`]: lists of targets and drafts; [`inspection`]: reading untrusted files; [`drafts`]:
//!   ranking of drafts; [`memory`]: memory use
//! - `serving`: the local server; `view`: view state of the window
//! - [`pace`]: events sent no more often than the page paints; [`save`]: files for the user
//! - `stats_file`: storage for the engine's statistics
//! - [`error`], `stored`: types of other crates, converted for the page; `page_status`: the
//!   engine's status for the page; `history`: stored messages as a chat

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod app;
pub mod attachments;
pub mod cancel;
pub mod devices;
mod drafts;
pub mod engine;
pub mod error;
pub mod exchange;
mod history;
pub mod hub;
pub mod inspection;
pub mod ipc;
mod lock;
pub mod memory;
pub mod models;
mod naming;
pub mod observable;
mod open_conversation;
pub mod pace;
mod page_status;
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
pub mod speeds;
mod speedups;
pub mod start;
mod start_problem;
mod stats_file;
mod stored;
mod storing;
mod title;
mod unstored;
mod view;

pub use app::App;
