//! Models on this computer and on the hub: where they are, what they are called, how they get here, and
//! the program's own folders. Knows neither the engine nor the window: it tells a model from its file
//! names alone and leaves what is in them to others. Only [`Hub`] and [`Downloads`] touch the network.
//!
//! - [`Folders`]: the data folder with the database, the models and the logs
//! - [`Library`]: every installed model ([`Installed`]), and names turned into paths
//! - `bundled.rs`: the models that come with the program, [`SMOLLM2`], [`SMOLLM2_HEAD`], [`STARTER`] and
//!   [`STARTER_DRAFT`]
//! - `cache.rs`: what this and other programs downloaded into the hub's cache
//! - `model_path.rs`: which files and folders look like a model
//! - [`catalogue()`]: known pairs, and where the hub has them; [`pairs()`]: which of them to begin with
//! - [`Hub`]: what a repository holds, and with whose token that is asked
//! - [`Downloads`]: models on their way; `scheduler.rs` whose turn it is, `job.rs` how one stands,
//!   `download.rs` what it does, `transfer.rs` one file of it (`headers.rs`, `checksum.rs`), `records.rs` what
//!   is remembered of them
//! - [`fuzzing`]: a hub's answers without the network, for those who damage them
//! - [`Secrets`]: keys of servers elsewhere, in the system's keyring or a file
//! - [`Learned`]: what the engine learned about pairs of models
//! - [`Learned`]: what the engine learned about pairs of models, and how fast they wrote

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bundled;
mod cache;
mod catalogue;
mod checksum;
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
mod kept;
mod learned;
mod library;
mod model_path;
mod nearest;
mod pairs;
mod records;
mod remove;
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
    CatalogueFamily, CatalogueModel, MakersSampling, Use, catalogue, is_known_pair, makers_sampling,
};
pub use downloads::Downloads;
pub use error::{Error, Result};
pub use folders::Folders;
pub use hub::{Hub, RemoteFile, Repository};
pub use job::{Download, DownloadState};
pub use learned::Learned;
pub use library::{Installed, Kind, Library};
pub use pairs::{Pair, Purpose, pairs};
pub use search::FoundRepository;
pub use secrets::Secrets;
pub use size::size;
pub use token_source::TokenSource;
