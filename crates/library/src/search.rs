//! Searches the hub for repositories with GGUF files. `hub.rs` lists the contents of one.

use crate::hub::{Hub, hub_error, is_gated, is_repository, licence};
use crate::listing::{LIMITS, Listing, wait, within};
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
        self.search_unless(words, &|| false)
    }

    /// Searches like [`Self::search`], unless `stop` returns `true` meanwhile.
    ///
    /// # Errors
    /// Same as [`Self::search`]; `Error::Stopped`.
    pub fn search_unless(
        &self,
        words: &str,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<FoundRepository>> {
        let most = MAX_RESULTS.to_string();
        let query = [("search", words), ("filter", GGUF), ("sort", "downloads"), ("limit", &most)];
        let found = async { Listing::new(self, words, LIMITS)?.search(&query).await };
        let found = wait(stop, within(self, LIMITS.time, found)).map_err(|error| match error {
            // Errors about one repository cannot come from a search.
            Error::NoRepository { .. } | Error::Gated { .. } => {
                hub_error("an error about a single repository")
            }
            other => other,
        })?;
        let usable = found.into_iter().take(MAX_RESULTS).filter(|info| is_repository(&info.id));
        let found = usable.map(|info| FoundRepository {
            downloads: info.downloads.unwrap_or(0),
            licence: licence(&info),
            gated: is_gated(&info),
            id: info.id,
        });
        Ok(found.collect())
    }
}
