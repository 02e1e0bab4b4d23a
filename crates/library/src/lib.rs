//! Models on this computer: where they are, what they are called, and the program's own folders.
//! Knows neither the engine nor the window: it tells a model from its file names alone and leaves
//! what is in them to others. It does not touch the network.
//!
//! - [`Folders`]: the data folder with the database, the models and the logs
//! - [`Library`]: every installed model ([`Installed`]), and names turned into paths
//! - `starter.rs`: the embedded pair, [`STARTER`] and [`STARTER_DRAFT`]
//! - `hub.rs`: what this and other programs downloaded into the hub's cache
//! - `model_path.rs`: which files and folders look like a model

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod cache;
mod catalogue;
mod downloads;
mod error;
mod folders;
mod hub;
mod library;
mod model_path;
mod nearest;
mod starter;
mod token;

pub use catalogue::{CatalogueFamily, CatalogueModel, catalogue};
pub use downloads::{Download, DownloadState, Downloads};
pub use error::{Error, Result};
pub use folders::Folders;
pub use hub::{Hub, RemoteFile, Repository};
pub use library::{Installed, Kind, Library};
pub use starter::{STARTER, STARTER_DRAFT};
pub use token::TokenSource;
