//! Models on this computer and on the hub: their paths, names and downloads, and the program's own
//! folders. The crate depends on neither the engine nor the window: it recognises a model by file
//! names alone and does not read the files. Only [`Hub`] and [`Downloads`] use the network.
//!
//! - [`Folders`]: the data folder with the database, the models and the logs
//! - [`Library`]: every installed model ([`Installed`]), and the lookup of a path by name
//! - `bundled.rs`: models that come with the program, [`SMOLLM2`], [`SMOLLM2_HEAD`], [`STARTER`]
//!   and [`STARTER_DRAFT`]
//! - `cache.rs`: downloads of this and other programs in the hub's cache
//! - [`Program`]: other programs, whose models are opened in place (`programs/`)
//! - `model_path.rs`: files and folders that look like a model
//! - [`catalogue()`]: known pairs and their repositories; [`pairs()`]: recommended ones
//! - [`Hub`]: contents of a repository, requested with the user's token
//! - [`Downloads`]: models being downloaded; `scheduler.rs` starts them, `job.rs` holds the state
//!   of one, `download.rs` runs one, `transfer.rs` fetches one file (`headers.rs`, `checksum.rs`),
//!   `records.rs` stores them
//! - [`fuzzing`]: parsers of the hub's responses, for fuzzing
//! - [`Secrets`]: keys of remote servers, in the system keyring or a file
//! - [`SavedStats`]: saved statistics of models and pairs
//! - [`Contexts`]: contexts of conversations; [`LastChat`]: the terminal's last conversation

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bundled;
mod cache;
mod catalogue;
mod checksum;
mod contexts;
mod disk;
mod download;
mod downloads;
mod error;
mod folders;
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod hub;
mod job;
mod json_file;
mod last_chat;
mod library;
mod listing;
mod model_path;
mod nearest;
mod pairs;
mod private;
mod programs;
mod records;
mod remove;
mod saved_stats;
mod scheduler;
mod search;
mod secrets;
mod size;
mod speed;
mod token;
mod token_source;
mod transfer;

pub use bundled::{SMOLLM2, SMOLLM2_HEAD, STARTER, STARTER_DRAFT};
pub use catalogue::{
    CatalogueFamily, CatalogueModel, KnownHead, MakersSampling, Use, active_share, catalogue, heads_for,
    is_known_pair, makers_sampling,
};
pub use contexts::{Contexts, ModelContexts};
pub use downloads::Downloads;
pub use error::{Error, Result};
pub use folders::Folders;
pub use hub::{Hub, RemoteFile, Repository};
pub use job::{Download, DownloadState};
pub use last_chat::LastChat;
pub use library::{Installed, Kind, Library};
pub use pairs::{Pair, Purpose, pairs};
pub use programs::Program;
pub use saved_stats::SavedStats;
pub use search::FoundRepository;
pub use secrets::Secrets;
pub use size::size;
pub use token_source::TokenSource;
