//! Errors of the store: what was expected, what was found, what to do. SQLite codes that a person
//! can act on have variants of their own; the others keep SQLite's text.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Every error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the folder {path} could not be created: {source}. Create it by hand, or set FORETOKEN_DATA_DIR to another \
         folder.", path = path.display()
    )]
    Folder { path: PathBuf, source: std::io::Error },

    #[error("{path}: {source}", path = path.display())]
    Open { path: PathBuf, source: Box<Error> },

    #[error(
        "a newer Foretoken wrote this database: expected version {known} or older, found version {found}. Update \
         Foretoken, or set FORETOKEN_DATA_DIR to another folder."
    )]
    Newer { found: i64, known: i64 },

    /// A damaged file is not repaired or moved automatically: one that is only half synchronised,
    /// or separated from its write-ahead log, also reads as damaged and may still become readable.
    #[error(
        "this is not a Foretoken database, or it is damaged ({0}). Restore it from a backup, or rename it to start \
         with an empty one."
    )]
    Damaged(String),

    #[error("{path} could not be renamed: {source}. Quit other programs that use it, or rename it by hand.", path = path.display())]
    SetAside { path: PathBuf, source: std::io::Error },

    #[error("the database could not be opened ({0}). Check that you may read and write the file.")]
    CannotOpen(String),

    #[error("the database is read-only. Check that you may write to the file and its folder.")]
    ReadOnly,

    #[error(
        "the disk is full, so nothing more could be saved. What was saved before is safe. Free some space and try again."
    )]
    DiskFull,

    #[error(
        "another program is using the database and did not release it in time. Close other copies of Foretoken and try again."
    )]
    Busy,

    #[error("{what} {id} does not exist or was deleted.")]
    NotFound { what: &'static str, id: i64 },

    #[error("a folder needs a short name that no other folder has, and there cannot be very many.")]
    FolderName,

    #[error("the database reported an error: {0}")]
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
