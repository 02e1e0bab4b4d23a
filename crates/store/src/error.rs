//! The store's errors: what was expected, what was found, what to do. SQLite's codes a person can
//! act on become variants of their own; the rest keep SQLite's words.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Everything that can go wrong in the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the folder {path} cannot be made: {source}. Make it by hand, or name another data folder \
         in FORETOKEN_DATA_DIR.", path = path.display()
    )]
    Folder { path: PathBuf, source: std::io::Error },

    #[error("{path}: {source}", path = path.display())]
    Open { path: PathBuf, source: Box<Error> },

    #[error(
        "expected a database of version {known} or older, found version {found}, written by a newer \
         Foretoken. Update Foretoken, or name another data folder in FORETOKEN_DATA_DIR."
    )]
    Newer { found: i64, known: i64 },

    /// Nothing is repaired or moved away on its own: a file that is only half synchronised, or parted
    /// from its write-ahead log, reads as damaged too and may still become whole.
    #[error(
        "expected Foretoken's database, found a file that is damaged or something else ({0}). Restore \
         it from a backup, or rename it to start with an empty one."
    )]
    Damaged(String),

    #[error("the database cannot be opened ({0}). Expected a file that you may read and write.")]
    CannotOpen(String),

    #[error(
        "the database is read-only. Expected a file and a folder that you may write to: check their permissions."
    )]
    ReadOnly,

    #[error(
        "the disk is full, so nothing more could be stored. What was stored before is safe. Free some space and try again."
    )]
    DiskFull,

    #[error(
        "another program is using the database and did not let go of it in time. Close other copies of Foretoken and try again."
    )]
    Busy,

    #[error("expected {what} {id}, found none: it was deleted.")]
    NotFound { what: &'static str, id: i64 },

    #[error("the database refused: {0}")]
    Database(rusqlite::Error),
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::CannotOpen(error.to_string()),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Database(error),
        }
    }
}
