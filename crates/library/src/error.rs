//! Errors of the library: what was expected, what was found, what to do.

use std::path::PathBuf;

use crate::TokenSource;
use crate::size::size;

/// Every error of finding, downloading or removing models and folders.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no home folder was found for conversations and models. Set FORETOKEN_DATA_DIR to a folder.")]
    NoHome,

    #[error("the folder {path} could not be created: {source}. Create it by hand, or set FORETOKEN_DATA_DIR to another folder.", path = path.display())]
    Folder { path: PathBuf, source: std::io::Error },

    #[error(
        "{path} is not a model: expected a .gguf file or a folder with config.json and .safetensors \
         files, found {found}.", path = path.display()
    )]
    NotAModel { path: PathBuf, found: String },

    #[error(
        "no model called '{name}': expected the name of an installed model, a .gguf file or a folder with \
         safetensors. {hint}"
    )]
    Unknown { name: String, hint: String },

    #[error("'{name}' contains several models. Choose one: {}.", choices.join(", "))]
    Ambiguous { name: String, choices: Vec<String> },

    #[error(
        "the bundled starter pair is incomplete: expected {file} in {}. Reinstall Foretoken, or set \
         FORETOKEN_STARTER_DIR to the folder that has it.",
        listed(places)
    )]
    NoStarter { file: &'static str, places: Vec<PathBuf> },

    #[error(
        "SmolLM2 is not installed: expected {file} in {}. In Foretoken's source tree, `make model` downloads it; \
         or set FORETOKEN_SMOLLM2_DIR to the folder that has it.",
        listed(places)
    )]
    NoSmolLm2 { file: &'static str, places: Vec<PathBuf> },

    #[error(
        "the draft head of SmolLM2 is missing: expected {file} in {}. Reinstall Foretoken, or set \
         FORETOKEN_SMOLLM2_DIR to the folder that has it.",
        listed(places)
    )]
    NoHead { file: &'static str, places: Vec<PathBuf> },

    #[error("'{0}' comes with Foretoken and cannot be removed.")]
    BundledStays(String),

    #[error("'{name}' belongs to {program} and can be removed only there.")]
    OfProgram { name: String, program: &'static str },

    #[error("{path} is in use and cannot be removed. Switch to another model, then remove it.", path = path.display())]
    InUse { path: PathBuf },

    #[error("{path} cannot be read or written: {source}. Check its permissions and the disk.", path = path.display())]
    Disk { path: PathBuf, source: std::io::Error },

    #[error("{what} needs {needed}, but {place} has only {free} free. Free some space, or set HF_HUB_CACHE to another folder.",
        needed = size(*needed), free = size(*free), place = place.display())]
    NoSpace { what: String, needed: u64, free: u64, place: PathBuf },

    #[error(
        "the disk is full: {place} has no space for the rest. Free some space and resume; what was downloaded is kept.",
        place = place.display()
    )]
    DiskFull { place: PathBuf },

    #[error("the hub at {endpoint} could not be reached: {reason}. Check the connection and try again.")]
    Unreachable { endpoint: String, reason: String },

    #[error(
        "expected a web address in HF_ENDPOINT, found '{0}'. Correct it, or unset it to use the public hub."
    )]
    Endpoint(String),
    #[error("'{0}' is not the address of a hub. Enter one like https://hub.example.com.")]
    Address(String),

    #[error("the request was stopped.")]
    Stopped,

    #[error("the hub's response could not be understood: {found}. Try again later.")]
    Hub { found: String },

    #[error("'{0}' is not a repository. Enter it as owner/name, for example Qwen/Qwen3-4B-GGUF.")]
    RepositoryName(String),

    #[error("the hub has no {public}repository '{name}'{access}. {hint}",
        public = if *with_token { "" } else { "public " },
        access = if *with_token { " that your token can access" } else { "" })]
    NoRepository { name: String, with_token: bool, hint: String },

    #[error("{repository} is gated: accept its licence at {url}{and_token}.")]
    Gated { repository: String, url: String, and_token: &'static str },

    #[error("the hub refused the token from {0}. Set another one, or remove it.")]
    TokenRefused(TokenSource),

    #[error(
        "this isn't an access token: expected only letters, digits, '_' and '-'. Copy it again from the hub's settings."
    )]
    TokenForm,

    #[error(
        "the token could not be saved in the system keyring: {0}. Unlock the keyring, or set HF_TOKEN instead."
    )]
    Keyring(String),

    #[error(
        "the key '{name}' could not be removed from the system keyring: {reason}. Unlock the keyring and remove the key there."
    )]
    SecretStays { name: String, reason: String },

    #[error(
        "{repository} has no model that Foretoken can run: expected GGUF files, or config.json and safetensors. \
         Look for a repository with GGUF in its name."
    )]
    NoModels { repository: String },

    #[error("{repository} has no model file '{file}'. {hint}")]
    NoFile { repository: String, file: String, hint: String },

    #[error("{file} arrived damaged: expected {expected}, found {found}. It was removed; download it again.")]
    Damaged { file: String, expected: String, found: String },

    #[error(
        "{repository} has a file that is not downloaded because of its name: '{file}'. Names with device names, dots \
         or spaces at their end, ':' or invisible characters can do harm. Choose another repository."
    )]
    FileName { repository: String, file: String },

    #[error("{path} is a link to a place outside {folder}, so nothing was removed. Delete the model there.", path = path.display(), folder = folder.display())]
    Outside { path: PathBuf, folder: PathBuf },

    #[error("there is no download '{0}'. Start it again.")]
    NoDownload(String),

    #[error("{0} is still downloading. Cancel the download instead.")]
    Unfinished(String),
}

pub type Result<T> = std::result::Result<T, Error>;

fn listed(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
}
