//! The library's errors: what was expected, what was found, what to do.

use std::path::PathBuf;

/// Everything that can go wrong when a model or a folder is looked for.
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
}

pub type Result<T> = std::result::Result<T, Error>;

fn listed(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" or ")
}
