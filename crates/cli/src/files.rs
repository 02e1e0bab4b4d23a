//! Files whose text commands put before a question.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use foretoken_documents::{DocumentReader, MAX_BYTES, block};
use foretoken_model::child::Program;

use crate::error::{Error, Result};

/// Reads a document, or a text in UTF-8, as it stands in a prompt.
///
/// # Errors
/// `Error::Read`, `Error::Unread`.
pub fn read(path: &Path) -> Result<String> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    let text = DocumentReader::new(Some(&Program::This)).read_any(&bytes);
    let text = text.map_err(|unread| Error::Unread { path: path.to_owned(), reason: unread.reason() })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(block(&name, &text))
}

/// Joins files and the text that follows them.
///
/// # Errors
/// As [`read`].
pub fn before(paths: &[PathBuf], text: String) -> Result<String> {
    let mut parts = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    parts.push(text);
    Ok(parts.join("\n\n"))
}
