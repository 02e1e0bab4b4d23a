//! Kinds of reasons why a model cannot be used.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Kind of reason why a model cannot be used. Displays as a few words in English.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum ProblemKind {
    NotFound,
    CannotBeRead,
    /// Reading the file takes too long, as on a disk or network that does not answer.
    DoesNotAnswer,
    /// Inspecting the file took too much memory.
    TooMuchMemory,
    /// Inspecting the file took too long.
    TooLong,
    EmptyFile,
    IncompleteFile,
    DamagedFile,
    /// A Git LFS pointer in the place of the file.
    LfsPointer,
    UnsupportedFormat,
    UnsupportedArchitecture,
    NoTemplate,
    UnsupportedTemplate,
    UnsupportedTokenizer,
    /// As a draft: its vocabulary is not the target's.
    OtherVocabulary,
    /// A draft head for another target.
    OtherTarget,
    /// As a draft: it is larger than the target.
    LargerThanTarget,
    /// As a target: it is a draft head.
    DraftHead,
    /// As a target: it is an embedding model.
    EmbeddingModel,
    /// The file holds no draft head.
    NotInFile,
    CannotBeLoaded,
    CannotBeUsed,
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "not found",
            Self::CannotBeRead => "cannot be read",
            Self::DoesNotAnswer => "does not answer",
            Self::TooMuchMemory => "inspecting it took more than 512 MB",
            Self::TooLong => "inspecting it took longer than 5 s",
            Self::EmptyFile => "empty file",
            Self::IncompleteFile => "incomplete file",
            Self::DamagedFile => "damaged file",
            Self::LfsPointer => "Git LFS pointer",
            Self::UnsupportedFormat => "unsupported format",
            Self::UnsupportedArchitecture => "unsupported architecture",
            Self::NoTemplate => "no chat template",
            Self::UnsupportedTemplate => "unsupported chat template",
            Self::UnsupportedTokenizer => "unsupported tokenizer",
            Self::OtherVocabulary => "other vocabulary",
            Self::OtherTarget => "made for another model",
            Self::LargerThanTarget => "larger than the target",
            Self::DraftHead => "draft head",
            Self::EmbeddingModel => "embedding model",
            Self::NotInFile => "not in this file",
            Self::CannotBeLoaded => "cannot be loaded",
            Self::CannotBeUsed => "cannot be used",
        })
    }
}
