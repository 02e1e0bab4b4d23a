//! Foretoken's application without a window: every user action is a method of [`App`]. The desktop
//! shell forwards the page's commands to it.
//!
//! - [`ipc`]: every type that crosses to the page; [`error`]: errors of other crates, converted for
//!   the page
//! - [`app`]: the application; [`start`]: problems of a failed start and their remedies
//! - [`conversations`]: messages, replies, and the settings of each conversation
//! - [`models`]: lists of targets and drafts, the hub, remote servers
//! - [`settings`]: defaults and limits, presets
//! - [`engine`]: the thread that owns the models, and its status
//! - [`exchange`]: export and import of conversations
//! - `serving`: the local server; `embedding`: the embedding model
//! - `view`: view state of the window and unsent texts; `save`: files for the user
//! - [`cancel`]: cancellation, and one job at a time
//! - [`observable`]: values with watchers; [`pace`]: events sent no more often than the page paints

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod app;
pub mod cancel;
pub mod conversations;
mod embedding;
pub mod engine;
pub mod error;
pub mod exchange;
pub mod ipc;
mod lock;
pub mod models;
pub mod observable;
pub mod pace;
mod save;
mod serving;
pub mod settings;
pub mod start;
mod tools;
mod view;

pub use app::App;
