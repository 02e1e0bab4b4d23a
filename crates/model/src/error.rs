//! Errors of the engine: what was expected, what was found, what to do. Cancelling a reply is an
//! outcome and not an error; cancelled loading and cancelled checks return [`Error::Cancelled`].

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::problem_kind::ProblemKind;

/// Hints for incomplete or damaged files.
pub(crate) const DOWNLOAD_AGAIN: &str = "Download it again, or choose another model.";
pub(crate) const DOWNLOAD_PART: &str = "Download the missing part.";

/// Error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", io_sentence(path, source))]
    Io { path: PathBuf, source: io::Error },

    #[error("{} is empty. Download it again.", file_name(.0))]
    Empty(PathBuf),

    /// The file is shorter than expected; sizes in bytes.
    #[error("{} is incomplete ({}). Download it again.", file_name(path), amount(*found, *expected))]
    Incomplete { path: PathBuf, expected: u64, found: u64 },

    /// The file's content does not match its name or location.
    #[error("{path} is not a model Foretoken can read: expected {expected}, found {found}. {hint}", path = path.display(), expected = sentence(expected), found = sentence(found))]
    BadModel { path: PathBuf, expected: String, found: String, hint: &'static str },

    #[error(
        "{path} uses the architecture '{found}', which Foretoken does not support yet. It supports {supported}. \
         Choose another model.", path = path.display(), found = sentence(found)
    )]
    Architecture { path: PathBuf, found: String, supported: &'static str },

    #[error(
        "{path} has no chat template, so it cannot be used for chat. Choose an instruction-tuned \
         model, or use raw text in the terminal (--raw).", path = path.display()
    )]
    NoTemplate { path: PathBuf },

    #[error("the chat template of {path} failed: {reason}. Choose another model, or use raw text in the terminal (--raw).", path = path.display(), reason = sentence(reason))]
    Template { path: PathBuf, reason: String },

    #[error("the tokenizer of {path} cannot be used: {reason}. Choose another model.", path = path.display(), reason = sentence(reason))]
    Tokenizer { path: PathBuf, reason: String },

    /// A grammar that a reply cannot follow; `kind` names it, such as "JSON schema".
    #[error("the {kind} cannot be used: {reason}.", reason = sentence(reason))]
    Grammar { kind: &'static str, reason: String },

    /// A picture that cannot be shown to the model.
    #[error("the picture cannot be used: {reason}.", reason = sentence(.0))]
    Picture(String),

    #[error("{name}: expected {expected}, found {found}.")]
    Setting { name: &'static str, expected: &'static str, found: String },

    #[error("the prompt is empty: expected at least one token. Write something first.")]
    EmptyPrompt,

    #[error(
        "the prompt is too long: {found} tokens, and the model's context window holds {limit}, including one for \
         the reply. Shorten it, or start a new conversation."
    )]
    PromptTooLong { found: usize, limit: usize },

    #[error(
        "this computer has too little memory left for a longer text: {needed} MB more are needed, and {free} MB are \
         free. Close other programs, start a new conversation, or choose a smaller model.",
        needed = needed / 1_000_000 + 1, free = free / 1_000_000
    )]
    NoMemory { needed: u64, free: u64 },

    #[error("token {token} does not exist: the model's vocabulary has {vocabulary} tokens.")]
    UnknownToken { token: u32, vocabulary: usize },

    #[error("the draft cannot be used: {reason}.", reason = sentence(.0))]
    Incompatible(String),

    #[error("the draft head cannot be used: {reason}.", reason = sentence(.0))]
    OtherTarget(String),

    #[error(
        "{path} is a draft head: it drafts for the model it was made for and writes no text by itself. Choose that \
         model as the target, and this file as its draft.", path = .path.display()
    )]
    HeadAlone { path: PathBuf },

    #[error(
        "{path} is an embedding model: it finds texts of similar meaning and writes no text. Use it for the search \
         in documents (--embedding-model), and choose another model as the target.", path = .path.display()
    )]
    OnlyEmbeddings { path: PathBuf },

    #[error(
        "{path} is no embedding model that Foretoken runs: found {found}, expected {supported}. Choose an embedding \
         model such as multilingual-e5-small.", path = .path.display(), found = sentence(found)
    )]
    NoEmbeddings { path: PathBuf, found: String, supported: &'static str },

    #[error(
        "{path} contains no MTP head. Choose another draft, or a file of this model that has one.",
        path = .path.display()
    )]
    NoMtp { path: PathBuf },

    /// Unsupported feature, worded to follow "run".
    #[error("Foretoken's GPU engine cannot run {0} yet.")]
    NotOnGpu(&'static str),

    /// A row of logits without a finite value, from which no token can be chosen.
    #[error(
        "the model computed no usable score for any token, so no next token can be chosen. Its file may be damaged: \
         download it again, or choose another model."
    )]
    NotFinite,

    #[error("an internal error stopped the draft. The log has the cause.")]
    DraftPanicked,

    /// A file that Git LFS left in the place of the real one.
    #[error("{} is a Git LFS pointer, which only names a file. Run \"git lfs pull\" in its folder, or download it again.", file_name(.0))]
    LfsPointer(PathBuf),

    #[error("cancelled before it finished.")]
    Cancelled,

    // A captured backtrace follows the first line.
    #[error("the computation failed: {reason}.", reason = sentence(.0.to_string().lines().next().unwrap_or_default()))]
    Compute(#[from] candle_core::Error),
}

impl Error {
    /// Kind of problem of a model, for lists.
    pub fn kind(&self) -> ProblemKind {
        match self {
            Self::Io { .. } => ProblemKind::CannotBeRead,
            Self::Empty(_) => ProblemKind::EmptyFile,
            Self::Incomplete { .. } => ProblemKind::IncompleteFile,
            Self::LfsPointer(_) => ProblemKind::LfsPointer,
            Self::BadModel { hint: DOWNLOAD_AGAIN | DOWNLOAD_PART, .. } => ProblemKind::DamagedFile,
            Self::BadModel { .. } => ProblemKind::UnsupportedFormat,
            Self::Architecture { .. } => ProblemKind::UnsupportedArchitecture,
            Self::NoTemplate { .. } => ProblemKind::NoTemplate,
            Self::Template { .. } => ProblemKind::UnsupportedTemplate,
            Self::Tokenizer { .. } => ProblemKind::UnsupportedTokenizer,
            Self::Incompatible(_) => ProblemKind::OtherVocabulary,
            Self::OtherTarget(_) => ProblemKind::OtherTarget,
            Self::HeadAlone { .. } => ProblemKind::DraftHead,
            Self::NoMtp { .. } => ProblemKind::NotInFile,
            Self::OnlyEmbeddings { .. } => ProblemKind::EmbeddingModel,
            _ => ProblemKind::CannotBeUsed,
        }
    }

    /// Returns true for out of memory on a device, by the library's message, since candle has no
    /// error kind for it.
    pub fn is_out_of_memory(&self) -> bool {
        /// Messages of CUDA's driver, cuBLAS, Metal's command buffers, candle's Metal buffers, and
        /// wgpu.
        const SIGNS: [&str; 6] = [
            "out of memory",
            "out_of_memory",
            "alloc_failed",
            "insufficient memory",
            "not enough memory",
            "failed to create metal resource: buffer",
        ];
        let Self::Compute(error) = self else { return false };
        let words = error.to_string().to_lowercase();
        SIGNS.iter().any(|sign| words.contains(sign))
    }
}

/// Sentence for a failed access to `path`, without system error numbers.
fn io_sentence(path: &Path, source: &io::Error) -> String {
    let path = path.display();
    match source.kind() {
        io::ErrorKind::NotFound => format!("there is no file at {path}."),
        io::ErrorKind::PermissionDenied => {
            format!("you have no permission to read {path}. Change its permissions, or choose another file.")
        }
        _ => format!("{path} cannot be read: {}.", sentence(&source.to_string())),
    }
}

fn file_name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
}

/// Size of an incomplete file such as "60 of 98 MB", in the unit of the whole, or in bytes if
/// rounding hides the difference.
fn amount(found: u64, expected: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let (unit, name) = units.into_iter().find(|&(unit, _)| expected >= 10 * unit).unwrap_or((1, "bytes"));
    let [some, whole] = [found, expected].map(|bytes| (bytes as f64 / unit as f64).round());
    if some == whole { format!("{found} of {expected} bytes") } else { format!("{some} of {whole} {name}") }
}

/// Makes text that may come from a file fit for a sentence: one line, limited length.
fn sentence(words: &str) -> Cow<'_, str> {
    const LONGEST: usize = 400;
    let mut fit = Cow::Borrowed(words.trim_end().trim_end_matches('.'));
    if fit.contains(char::is_control) {
        let spaced = fit.split(char::is_control).filter(|part| !part.is_empty());
        fit = Cow::Owned(spaced.collect::<Vec<_>>().join(" "));
    }
    match fit.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{} ...", &fit[..end])),
        None => fit,
    }
}

pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_whole_is_told_from_one_of_an_unknown_kind() {
        let bad = |hint| {
            let (expected, found) = (String::new(), String::new());
            Error::BadModel { path: PathBuf::new(), expected, found, hint }
        };
        assert_eq!(bad(DOWNLOAD_AGAIN).kind(), ProblemKind::DamagedFile);
        assert_eq!(bad("Choose another file.").kind(), ProblemKind::UnsupportedFormat);
    }

    #[test]
    fn an_incomplete_file_says_how_much_of_it_there_is() {
        let incomplete = |found, expected| {
            Error::Incomplete { path: "/models/a.gguf".into(), expected, found }.to_string()
        };
        assert_eq!(
            incomplete(60_000_000, 98_362_432),
            "a.gguf is incomplete (60 of 98 MB). Download it again."
        );
        assert!(incomplete(98_362_431, 98_362_432).contains("(98362431 of 98362432 bytes)"));
        assert!(incomplete(3_000_000_000, 18_600_000_000).contains("(3 of 19 GB)"));
        assert!(incomplete(5, 900).contains("(5 of 900 bytes)"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_explained_without_the_systems_error_numbers() {
        let error =
            |kind: io::ErrorKind| Error::Io { path: "/a.gguf".into(), source: kind.into() }.to_string();
        assert_eq!(error(io::ErrorKind::NotFound), "there is no file at /a.gguf.");
        assert!(
            error(io::ErrorKind::PermissionDenied).starts_with("you have no permission to read /a.gguf.")
        );
        assert!(error(io::ErrorKind::OutOfMemory).starts_with("/a.gguf cannot be read: "));
    }

    #[test]
    fn a_device_without_memory_is_known_by_its_words() {
        let of = |words: &str| Error::Compute(candle_core::Error::Msg(words.to_owned())).is_out_of_memory();
        assert!(of("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")"));
        assert!(of("CublasError(CUBLAS_STATUS_ALLOC_FAILED)"));
        assert!(of("Failed to create metal resource: Buffer"));
        assert!(of("Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"));
        assert!(!of("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access was encountered\")"));
        assert!(!of("Failed to create metal resource: CommandQueue"));
        assert!(!Error::EmptyPrompt.is_out_of_memory());
    }
}
