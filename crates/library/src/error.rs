//! The library's errors: what was expected, what was found, what to do.

use std::path::PathBuf;

use crate::TokenSource;
use crate::size::size;

/// Everything that can go wrong when a model or a folder is looked for, downloaded or
/// removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "expected a home folder to keep conversations and models in, found none. Name a folder in FORETOKEN_DATA_DIR."
    )]
    NoHome,

    #[error("the folder {path} cannot be made: {source}. Make it by hand, or name another data folder in FORETOKEN_DATA_DIR.", path = path.display())]
    Folder { path: PathBuf, source: std::io::Error },

    #[error(
        "{path} is not a model: expected a .gguf file or a folder with config.json and .safetensors \
         files, found {found}.", path = path.display()
    )]
    NotAModel { path: PathBuf, found: String },

    #[error(
        "expected the name of an installed model, a .gguf file or a folder with safetensors, found \
         nothing called '{name}'. {hint}"
    )]
    Unknown { name: String, hint: String },

    #[error("'{name}' holds several models. Choose one: {}.", choices.join(", "))]
    Ambiguous { name: String, choices: Vec<String> },

    #[error(
        "the embedded starter pair is incomplete: expected {file} in {}. Install Foretoken again, or \
         name the folder in FORETOKEN_STARTER_DIR.",
        listed(places)
    )]
    NoStarter { file: &'static str, places: Vec<PathBuf> },

    #[error(
        "SmolLM2 is not here: expected {file} in {}. In Foretoken's source tree `make model` gets it; or name \
         the folder in FORETOKEN_SMOLLM2_DIR.",
        listed(places)
    )]
    NoSmolLm2 { file: &'static str, places: Vec<PathBuf> },

    #[error("'{0}' comes with Foretoken and cannot be removed.")]
    BundledStays(String),

    #[error("{path} is in use and cannot be removed. Choose another model, then remove it.", path = path.display())]
    InUse { path: PathBuf },

    #[error("{path} cannot be read or written: {source}. Check its permissions and the disk.", path = path.display())]
    Disk { path: PathBuf, source: std::io::Error },

    #[error("{what} needs {needed}, and {free} are free in {place}. Make room, or name another folder in HF_HUB_CACHE.",
        needed = size(*needed), free = size(*free), place = place.display())]
    NoSpace { what: String, needed: u64, free: u64, place: PathBuf },

    #[error(
        "the disk is full: {place} has no room for the rest. Make room and resume; what is here is kept.",
        place = place.display()
    )]
    DiskFull { place: PathBuf },

    #[error("the hub at {endpoint} could not be reached: {reason}. Check the connection, then try again.")]
    Unreachable { endpoint: String, reason: String },

    #[error(
        "expected a web address in HF_ENDPOINT, found '{0}'. Correct it, or remove it for the public hub."
    )]
    Endpoint(String),

    #[error("the hub's answer was not understood: {found}. Try again later.")]
    Hub { found: String },

    #[error("expected the name of a repository like owner/name, found '{0}'.")]
    RepositoryName(String),

    #[error("the hub has no repository '{name}' that may be seen{whom}. {hint}")]
    NoRepository { name: String, whom: &'static str, hint: String },

    #[error("{repository} is gated: accept its licence at {url}{and_token}.")]
    Gated { repository: String, url: String, and_token: &'static str },

    #[error("the hub refused the token from {0}. Set another one, or remove it.")]
    TokenRefused(TokenSource),

    #[error(
        "expected a token of letters, digits, '_' and '-', found something else. Copy it again from the hub's settings."
    )]
    TokenForm,

    #[error(
        "the token cannot be kept in the system's keyring: {0}. Unlock the keyring, or set HF_TOKEN instead."
    )]
    Keyring(String),

    #[error(
        "{repository} holds nothing that can be run: expected GGUF files, or config.json and safetensors. \
         Look for a repository with GGUF in its name."
    )]
    NoModels { repository: String },

    #[error("{repository} has no file '{file}' to run. {hint}")]
    NoFile { repository: String, file: String, hint: String },

    #[error("{file} arrived damaged: expected {expected}, found {found}. It was removed; download it again.")]
    Damaged { file: String, expected: String, found: String },

    #[error("expected the id of a download, found '{0}'. Begin it again.")]
    NoDownload(String),

    #[error("{0} is still on its way here. Cancel it instead.")]
    Unfinished(String),
}

pub type Result<T> = std::result::Result<T, Error>;

fn listed(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
}
