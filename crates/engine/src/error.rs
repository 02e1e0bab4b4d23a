//! The engine's errors: what was expected, what was found, what to do. Cancelling a reply is an outcome,
//! not an error; a model whose loading is cancelled is not there, which is one.

use std::path::PathBuf;

/// Everything that can go wrong in the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },

    /// The file is not what its name or place promises.
    #[error("{path} is not a model Foretoken can read: expected {expected}, found {found}. {hint}", path = path.display())]
    BadModel { path: PathBuf, expected: String, found: String, hint: &'static str },

    #[error(
        "{path} holds a model of architecture '{found}', which Foretoken does not run yet: \
         expected one of {supported}. Choose another model.", path = path.display()
    )]
    Architecture { path: PathBuf, found: String, supported: &'static str },

    #[error(
        "{path} has no chat template, so a conversation cannot be put into the model's form. \
         Choose an instruction-tuned model, or use raw text in the terminal (--raw).", path = path.display()
    )]
    NoTemplate { path: PathBuf },

    #[error("the chat template of {path} failed: {reason}. Choose another model, or use raw text in the terminal (--raw).", path = path.display())]
    Template { path: PathBuf, reason: String },

    #[error("the tokenizer of {path} cannot be used: {reason}. Choose another model.", path = path.display())]
    Tokenizer { path: PathBuf, reason: String },

    #[error("{name}: expected {expected}, found {found}.")]
    Setting { name: &'static str, expected: &'static str, found: String },

    #[error("the prompt is empty: expected at least one token. Write something first.")]
    EmptyPrompt,

    #[error(
        "the prompt is too long: it has {found} tokens and the model's context holds {limit}, one of \
         them for the reply. Shorten it, or start a new conversation."
    )]
    PromptTooLong { found: usize, limit: usize },

    #[error("token {token} does not exist: the model's vocabulary has {vocabulary} tokens.")]
    UnknownToken { token: u32, vocabulary: usize },

    #[error("the draft cannot be used: {0}")]
    Incompatible(String),

    #[error("the loading was cancelled.")]
    Cancelled,

    #[error("the computation failed: {0}")]
    Compute(#[from] candle_core::Error),
}

pub type Result<T> = std::result::Result<T, Error>;
