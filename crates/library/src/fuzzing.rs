//! Parsers of the hub's responses for fuzzing: the path of a download without the network.

use hf_hub::repository::{ModelInfo, RepoTreeEntry};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};

use crate::headers::{metadata, range_start, redirect, text};
use crate::hub::Contents;

/// Responses of the hub about a repository, its tree and a file; the last as header lines.
#[derive(Debug, Clone, Copy)]
pub struct Answers<'a> {
    pub repository: &'a str,
    pub tree: &'a str,
    pub headers: &'a str,
}

/// Results of parsing the responses.
#[derive(Debug, Default)]
pub struct Read {
    /// Paths of the files to write, below their folder.
    pub paths: Vec<String>,
    /// Name of the file in the cache.
    pub etag: Option<String>,
    /// Error message if the repository was refused.
    pub refusal: Option<String>,
}

/// Parses the hub's responses as a download does.
pub fn read(answers: &Answers<'_>) -> Read {
    let headers = headers(answers.headers);
    let url = Url::parse("https://hub.example/owner/name/resolve/main/a.gguf").ok();
    let next =
        url.zip(text(&headers, LOCATION.as_str())).and_then(|(url, location)| redirect(&url, location));
    debug_assert!(next.is_none_or(|next| next.host_str() == Some("hub.example")));
    range_start(&headers);
    let mut read = Read { etag: metadata(&headers).map(|file| file.etag), ..Read::default() };
    let parsed = serde_json::from_str::<ModelInfo>(answers.repository)
        .and_then(|info| Ok((info, serde_json::from_str::<Vec<RepoTreeEntry>>(answers.tree)?)));
    let Ok((info, tree)) = parsed else {
        read.refusal = Some("This is not JSON of a hub.".into());
        return read;
    };
    let contents = match Contents::new("owner/name", "0a1b".into(), &info, tree) {
        Ok(contents) => contents,
        Err(error) => return Read { refusal: Some(error.to_string()), ..read },
    };
    let files = contents.repository.files.iter().map(|file| Some(file.path.as_str()));
    for file in [None, Some("model")].into_iter().chain(files) {
        match contents.wanted(file) {
            Ok((_, entries)) => read.paths.extend(entries.into_iter().map(|entry| entry.path)),
            Err(error) => read.refusal = Some(error.to_string()),
        }
    }
    read
}

fn headers(lines: &str) -> HeaderMap {
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((HeaderName::try_from(name.trim()).ok()?, HeaderValue::try_from(value.trim()).ok()?))
    };
    lines.lines().filter_map(header).collect()
}
