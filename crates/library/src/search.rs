//! Searches the hub for repositories with GGUF files. What a repository holds is for `hub.rs` to list.

use crate::hub::{Hub, hub_error, is_gated, is_repository, licence};
use crate::{Error, Result};

/// Repositories that a search returns at most.
const MOST: usize = 20;

/// Tag of repositories with GGUF files.
const GGUF: &str = "gguf";

/// A repository that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRepository {
    /// `owner/name`
    pub id: String,
    /// Downloads in the last 30 days.
    pub downloads: u64,
    pub licence: Option<String>,
    /// Whether its licence has to be accepted on the hub before it can be downloaded.
    pub gated: bool,
}

impl Hub {
    /// Repositories with GGUF files whose names contain `words`, the most downloaded first.
    ///
    /// # Errors
    /// `Error::TokenRefused`; `Error::Unreachable`; `Error::Hub`.
    pub fn search(&self, words: &str) -> Result<Vec<FoundRepository>> {
        let found =
            self.client()?.list_models().search(words).filter(GGUF).sort("downloads").limit(MOST).send();
        let found = found.map_err(|error| match self.error(words, error) {
            // What is said of one repository says nothing of a search.
            Error::NoRepository { .. } | Error::Gated { .. } => hub_error("no answer to a search"),
            other => other,
        })?;
        let usable = found.into_iter().filter(|info| is_repository(&info.id));
        let found = usable.map(|info| FoundRepository {
            downloads: info.downloads.unwrap_or(0),
            licence: licence(&info),
            gated: is_gated(&info),
            id: info.id,
        });
        Ok(found.collect())
    }
}
