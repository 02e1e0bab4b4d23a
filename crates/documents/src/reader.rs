//! Parent's side of reading documents: a request to the child process for each file.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_model::child::{Child, Failure, Handler, Program, Task};

use crate::{DocumentText, MAX_BYTES, MAX_TEXT, Unread, text_of};

/// Reading of a document as a task of the child process.
pub const TASK: Task = Task { name: "document", memory: 640_000_000, time: Duration::from_secs(20), start };

/// Reader of documents, one at a time.
pub struct DocumentReader(Option<Child>);

impl DocumentReader {
    /// Reads in a child process of `program`, or in this process without one, for tests with their
    /// own documents.
    pub fn new(program: Option<&Program>) -> Self {
        Self(program.cloned().map(Child::of))
    }

    /// Reads a document, or a text in UTF-8 as it stands.
    ///
    /// # Errors
    /// Every [`Unread`].
    pub fn read_any(&self, bytes: &[u8]) -> Result<String, Unread> {
        match self.read(bytes) {
            Err(Unread::Unknown) => plain(bytes),
            read => read,
        }
    }

    /// Reads a document.
    ///
    /// # Errors
    /// Every [`Unread`].
    pub fn read(&self, bytes: &[u8]) -> Result<String, Unread> {
        self.read_encoded(&STANDARD.encode(bytes))
    }

    /// Reads a document in Base64.
    ///
    /// # Errors
    /// Every [`Unread`]; `Damaged` for another text.
    pub fn read_encoded(&self, document: &str) -> Result<String, Unread> {
        if document.len() > MAX_BYTES.div_ceil(3) * 4 {
            return Err(Unread::TooLong);
        }
        let Some(child) = &self.0 else { return decoded(document.as_bytes()) };
        let answer = child.answer(&TASK, document.as_bytes());
        // The memory of a large file is not needed any longer.
        child.rest();
        let answer = answer.map_err(|failure| match failure {
            Failure::TooLong => Unread::Slow,
            Failure::TooMuchMemory => Unread::UnpacksTooLarge,
            Failure::NotStarted(_) | Failure::Ended => Unread::Damaged,
        })?;
        match serde_json::from_slice(&answer) {
            Ok(DocumentText::Text(text)) => Ok(text),
            Ok(DocumentText::Unread(unread)) => Err(unread),
            Err(_) => Err(Unread::Damaged),
        }
    }
}

/// Returns a text in UTF-8.
fn plain(bytes: &[u8]) -> Result<String, Unread> {
    if bytes.len() > MAX_TEXT {
        return Err(Unread::TooLong);
    }
    match str::from_utf8(bytes) {
        Err(_) => Err(Unread::Unknown),
        Ok(text) if text.contains('\0') => Err(Unread::Unknown),
        Ok(text) if text.trim().is_empty() => Err(Unread::Empty),
        Ok(text) => Ok(text.to_owned()),
    }
}

/// Returns the function that answers requests in the child process.
fn start() -> Handler {
    Box::new(|input| serde_json::to_vec(&DocumentText::from(decoded(input))).unwrap_or_default())
}

/// Returns the text of a document in Base64.
fn decoded(document: &[u8]) -> Result<String, Unread> {
    text_of(&STANDARD.decode(document).map_err(|_| Unread::Damaged)?)
}
