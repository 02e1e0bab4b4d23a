//! Searches the hub for repositories with GGUF files. `hub.rs` lists the contents of one.

use std::cmp::Reverse;

use hf_hub::repository::ModelInfo;

use crate::catalogue::quantisation_of;
use crate::hub::{Hub, hub_error, is_gated, is_repository, licence, names_a_model};
use crate::listing::{LIMITS, Listing, wait, within};
use crate::{Error, Result};

/// Most repositories that a search returns.
const MAX_RESULTS: usize = 20;

/// Tag of repositories with GGUF files, and the field with facts from one of their headers.
const GGUF: &str = "gguf";

/// Fields of a result, which the hub leaves out otherwise.
const FIELDS: [&str; 5] = ["downloads", "tags", "gated", "siblings", GGUF];

/// Most quantisations of a repository, and the longest name of an architecture in bytes.
const MAX_QUANTISATIONS: usize = 40;
const MAX_ARCHITECTURE_BYTES: usize = 40;

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
    /// Number of parameters and `general.architecture` of a GGUF file; `None` if the hub has not
    /// read one.
    pub parameters: Option<u64>,
    pub architecture: Option<String>,
    /// Quantisations of the GGUF files by their names, the largest first.
    pub quantisations: Vec<String>,
}

impl FoundRepository {
    fn new(info: ModelInfo) -> Self {
        let fact = |name| info.gguf.as_ref().and_then(|facts| facts.get(name));
        let plain = |name: &&str| {
            name.len() <= MAX_ARCHITECTURE_BYTES
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let architecture = fact("architecture").and_then(|name| name.as_str()).filter(plain);
        Self {
            parameters: fact("total").and_then(serde_json::Value::as_u64).filter(|number| *number > 0),
            architecture: architecture.map(str::to_owned),
            quantisations: quantisations(&info),
            downloads: info.downloads.unwrap_or(0),
            licence: licence(&info),
            gated: is_gated(&info),
            id: info.id,
        }
    }
}

/// Returns the quantisations of a repository's models, those with more bits first.
fn quantisations(info: &ModelInfo) -> Vec<String> {
    let files = info.siblings.iter().flatten().map(|file| &*file.rfilename);
    let mut found: Vec<_> = files.filter(|file| names_a_model(file)).filter_map(quantisation_of).collect();
    let bits = |name: &String| {
        let digits: String = name.chars().filter(char::is_ascii_digit).take(2).collect();
        match &*digits {
            "16" | "32" => digits.parse().unwrap_or(0),
            _ => digits.chars().next().and_then(|first| first.to_digit(10)).unwrap_or(0),
        }
    };
    found.sort_by(|a, b| Reverse(bits(a)).cmp(&Reverse(bits(b))).then_with(|| a.cmp(b)));
    found.dedup();
    found.truncate(MAX_QUANTISATIONS);
    found
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
        let mut query = vec![("search", words), ("filter", GGUF), ("sort", "downloads"), ("limit", &most)];
        query.extend(FIELDS.map(|field| ("expand[]", field)));
        let found = async { Listing::new(self, words, LIMITS)?.search(&query).await };
        let found = wait(stop, within(self, LIMITS.time, found)).map_err(|error| match error {
            // Errors about one repository cannot come from a search.
            Error::NoRepository { .. } | Error::Gated { .. } => {
                hub_error("an error about a single repository")
            }
            other => other,
        })?;
        let usable = found.into_iter().take(MAX_RESULTS).filter(|info| is_repository(&info.id));
        Ok(usable.map(FoundRepository::new).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(info: serde_json::Value) -> FoundRepository {
        FoundRepository::new(serde_json::from_value(info).unwrap())
    }

    #[test]
    fn a_result_has_the_quantisations_of_its_models_and_the_facts_of_a_header() {
        let files = [
            "m-Q4_K_M.gguf",
            "m-Q8_0.gguf",
            "m-BF16-00001-of-00002.gguf",
            "m-BF16-00002-of-00002.gguf",
            "m-IQ2_XXS.gguf",
            "mmproj-F16.gguf",
            "README.md",
            "m-Q4_K_M-00001-of-00003.gguf",
            "odd.gguf",
        ];
        let files: Vec<_> = files.iter().map(|name| json!({ "rfilename": name })).collect();
        let gguf = json!({ "total": 8_190_000_000_u64, "architecture": "qwen3", "context_length": 40_960 });
        let found = found(json!({ "id": "a/b", "siblings": files, "gguf": gguf }));
        assert_eq!(found.quantisations, ["BF16", "Q8_0", "Q4_K_M", "IQ2_XXS"]);
        assert_eq!((found.parameters, found.architecture.as_deref()), (Some(8_190_000_000), Some("qwen3")));
    }

    #[test]
    fn a_result_with_fewer_or_odd_fields_has_fewer_facts() {
        let bare = found(json!({ "id": "a/b" }));
        assert_eq!((bare.parameters, bare.architecture, bare.quantisations.len()), (None, None, 0));
        for gguf in [
            json!({ "total": -1, "architecture": "a\u{202e}b" }),
            json!({ "total": "8", "architecture": "a".repeat(41) }),
            json!([1]),
            json!({ "total": 0, "architecture": 7 }),
        ] {
            let odd = found(json!({ "id": "a/b", "gguf": gguf }));
            assert_eq!((odd.parameters, odd.architecture), (None, None));
        }
        let many: Vec<_> = (0..500).map(|n| json!({ "rfilename": format!("m-q{n}.gguf") })).collect();
        assert_eq!(found(json!({ "id": "a/b", "siblings": many })).quantisations.len(), MAX_QUANTISATIONS);
    }
}
