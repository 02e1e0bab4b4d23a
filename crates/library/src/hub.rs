//! The hub as it is asked over the network: what is in a repository, and with whose permission.

use crate::{Folders, Result, TokenSource};

/// A GGUF file of a repository; of a split one the first part, with the size of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// The path in the repository.
    pub path: String,
    /// All parts together.
    pub bytes: u64,
    /// Of the first part, in lower-case hex, where the hub's listing says so.
    pub sha256: Option<String>,
}

/// A repository of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// `owner/name`
    pub id: String,
    /// The commit that `main` is at.
    pub revision: String,
    pub licence: Option<String>,
    pub gated: bool,
    /// Its GGUF files, in order of their paths.
    pub files: Vec<RemoteFile>,
    /// Bytes of the whole as a folder model, where it is one: `config.json` and safetensors.
    pub safetensors: Option<u64>,
}

/// A way to the hub. Clones share the token. Makes no connection before it is asked something.
#[derive(Debug, Clone)]
pub struct Hub {}

impl Hub {
    /// The hub HF_ENDPOINT names, or else the public one.
    pub fn new(_folders: &Folders) -> Result<Self> {
        Ok(Self {})
    }

    /// What `owner/name` holds.
    pub fn repository(&self, _name: &str) -> Result<Repository> {
        unimplemented!()
    }

    /// Where the token comes from.
    pub fn token_source(&self) -> TokenSource {
        TokenSource::None
    }

    /// Keeps a token in the system's keyring, or with `None` removes it from there.
    pub fn set_token(&self, _token: Option<&str>) -> Result<()> {
        unimplemented!()
    }
}
