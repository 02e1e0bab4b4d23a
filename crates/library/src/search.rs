//! Searches the hub for repositories with GGUF files. `hub.rs` lists the contents of one.

use crate::hub::{Hub, hub_error, is_gated, is_repository, licence};
use crate::{Error, Result};

/// Most repositories that a search returns.
const MAX_RESULTS: usize = 20;

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
    /// `true` if the licence must be accepted on the hub before the download.
    pub gated: bool,
}

impl Hub {
    /// Returns repositories with GGUF files whose names contain `words`, the most downloaded first.
    ///
    /// # Errors
    /// `Error::TokenRefused`; `Error::Unreachable`; `Error::Hub`.
    pub fn search(&self, words: &str) -> Result<Vec<FoundRepository>> {
        let found = self
            .client()?
            .list_models()
            .search(words)
            .filter(GGUF)
            .sort("downloads")
            .limit(MAX_RESULTS)
            .send();
        let found = found.map_err(|error| match self.error(words, error) {
            // Errors about one repository cannot come from a search.
            Error::NoRepository { .. } | Error::Gated { .. } => {
                hub_error("an error about a single repository")
            }
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
