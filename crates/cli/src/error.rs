//! Errors of the terminal program, and the exit code of each.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use foretoken_model::Error as EngineError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] EngineError),

    #[error(transparent)]
    Library(#[from] foretoken_library::Error),

    #[error(transparent)]
    Server(#[from] foretoken_server::StartError),

    #[error(transparent)]
    Tools(#[from] foretoken_tools::Error),

    #[error(transparent)]
    Documents(#[from] foretoken_documents::IndexError),

    /// `chat --resume` before any chat was kept.
    #[error(
        "there is no earlier chat to resume: none was kept, or it cannot be read. Start one with 'foretoken-cli chat'."
    )]
    NoChat,

    /// Options that contradict each other.
    #[error("{0}")]
    Usage(String),

    #[error("{path} cannot be read: {source}.", path = path.display())]
    Read { path: PathBuf, source: io::Error },

    /// A file without text, or one of another format.
    #[error("{path} cannot be used: {reason}.", path = path.display())]
    Unread { path: PathBuf, reason: &'static str },

    #[error("{path} cannot be written: {source}.", path = path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error(
        "{path} needs {needed} bytes, but the disk has less space. Free some, or use another folder.",
        path = path.display()
    )]
    NoRoom { path: PathBuf, needed: u64 },

    /// No device of the requested kind; whole sentences.
    #[error("{0} To measure the CPU, use --device cpu.")]
    NoDevice(String),

    /// Kernels are timed on Foretoken's GPU engine alone; holds the label of another device.
    #[error("expected a GPU, found {0}. Choose one with --device gpu.")]
    Kernels(String),

    /// A text file does not contain what the command expects.
    #[error("{path}: expected {expected}, found {found}.", path = path.display())]
    Content { path: PathBuf, expected: &'static str, found: String },

    /// The engine panicked again while its model was loaded.
    #[error("the engine failed, and failed again while the model was reloaded; the messages above say why.")]
    Unrecovered,

    #[error("standard output cannot be written: {0}.")]
    Output(#[from] io::Error),
}

impl Error {
    pub fn exit_code(&self) -> ExitCode {
        match self {
            _ if self.is_closed_pipe() => ExitCode::SUCCESS,
            Self::Usage(_) | Self::Engine(EngineError::Setting { .. }) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// The reader of standard output closed it (`| head`), which is not a failure.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

pub type Result<T> = std::result::Result<T, Error>;
