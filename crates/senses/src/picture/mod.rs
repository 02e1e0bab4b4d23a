//! Reads picture files, which come from strangers: in a child process with bounded memory and time.
//! Formats are told apart by content.
//!
//! - [`PictureReader`]: the parent's side; `decode`: the work
//! - [`jpeg`]: a picture for a remote server

mod decode;
mod encode;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_model::Picture;
use foretoken_model::child::{Child, Failure, Handler, Program, Task};
use foretoken_model::error::{Error, Result};
use serde::{Deserialize, Serialize};

pub use encode::jpeg;

/// Longest file, in bytes.
pub const MAX_BYTES: usize = 20_000_000;

/// Reading of a picture file as a task of the child process.
pub const TASK: Task = Task { name: "picture", memory: 640_000_000, time: Duration::from_secs(10), start };

/// A decoded picture on its way from the child process.
#[derive(Serialize, Deserialize)]
struct Decoded {
    width: usize,
    height: usize,
    /// Pixels in Base64.
    pixels: String,
}

type Answer = std::result::Result<Decoded, String>;

/// Reader of picture files, one at a time.
pub struct PictureReader(Option<Child>);

impl PictureReader {
    /// Reads in a child process of `program`, or in this process without one, for tests with their
    /// own pictures.
    pub fn new(program: Option<&Program>) -> Arc<Self> {
        Arc::new(Self(program.cloned().map(Child::of)))
    }

    /// Reads a picture file: PNG, JPEG, WebP, GIF (its first picture) or BMP.
    ///
    /// # Errors
    /// `Error::Picture` for another kind of file, a damaged one, and one that is too large.
    pub fn read(&self, bytes: &[u8]) -> Result<Picture> {
        if bytes.len() > MAX_BYTES {
            let (size, most) = (bytes.len() / 1_000_000, MAX_BYTES / 1_000_000);
            return Err(Error::Picture(format!("the file has {size} MB, and at most {most} MB are read")));
        }
        let Some(child) = &self.0 else {
            return decode::decoded(bytes).map_err(Error::Picture);
        };
        let answer = child.answer(&TASK, STANDARD.encode(bytes).as_bytes()).map_err(failed)?;
        let answer: Answer =
            serde_json::from_slice(&answer).map_err(|error| Error::Picture(error.to_string()))?;
        let Decoded { width, height, pixels } = answer.map_err(Error::Picture)?;
        let pixels = STANDARD.decode(pixels).map_err(|error| Error::Picture(error.to_string()))?;
        Picture::new(width, height, pixels)
    }
}

fn failed(failure: Failure) -> Error {
    Error::Picture(match failure {
        Failure::NotStarted(error) => format!("what reads it cannot be started: {error}"),
        Failure::TooLong => "reading it takes too long".to_owned(),
        Failure::TooMuchMemory => "reading it takes too much memory".to_owned(),
        Failure::Ended => "it is damaged".to_owned(),
    })
}

/// Returns the function that answers requests in the child process.
fn start() -> Handler {
    Box::new(|input| {
        let read = |bytes: &[u8]| {
            let picture = decode::decoded(bytes)?;
            let pixels = STANDARD.encode(picture.pixels());
            Ok(Decoded { width: picture.width(), height: picture.height(), pixels })
        };
        let answer: Answer =
            STANDARD.decode(input).map_err(|error| error.to_string()).and_then(|bytes| read(&bytes));
        serde_json::to_vec(&answer).unwrap_or_default()
    })
}
