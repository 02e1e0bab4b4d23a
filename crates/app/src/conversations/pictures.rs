//! Pictures of questions: data URLs from the page and the store become pixels for the model.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_model::child::Program;
use foretoken_model::error::{Error, Result};
use foretoken_model::{Detail, Picture};
use foretoken_senses::picture::PictureReader;

/// Decoded pictures that are kept for the next reply.
const KEPT: usize = 8;

/// Reader of pictures, with those that were read last.
pub(crate) struct Pictures {
    reader: Arc<PictureReader>,
    /// Hash of each data URL, and its picture.
    read: Mutex<VecDeque<([u8; 32], Arc<Picture>)>>,
}

impl Pictures {
    /// Reads in a child process of `program`, or in this process without one.
    pub(crate) fn new(program: Option<&Program>) -> Self {
        Self { reader: PictureReader::new(program), read: Mutex::default() }
    }

    pub(crate) fn reader(&self) -> &Arc<PictureReader> {
        &self.reader
    }

    /// Reads the picture in a data URL.
    ///
    /// # Errors
    /// `Error::Picture` for another URL, and as [`PictureReader::read`].
    pub(crate) fn read(&self, url: &str) -> Result<Arc<Picture>> {
        let key = *blake3::hash(url.as_bytes()).as_bytes();
        let kept = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, picture)) = kept().iter().find(|(hash, _)| *hash == key) {
            return Ok(Arc::clone(picture));
        }
        let picture = Arc::new(self.reader.read(&bytes(url)?)?);
        let mut kept = kept();
        kept.push_back((key, Arc::clone(&picture)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(picture)
    }
}

/// Detail of all pictures in the window.
pub(crate) const DETAIL: Detail = Detail::Normal;

/// Bytes of the file in a data URL.
fn bytes(url: &str) -> Result<Vec<u8>> {
    let encoded = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let (_, encoded) = encoded.ok_or_else(|| Error::Picture("it is no data URL".to_owned()))?;
    STANDARD.decode(encoded).map_err(|error| Error::Picture(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_read_once_and_other_urls_are_refused() {
        let pictures = Pictures::new(None);
        // A red pixel.
        let url = "data:image/bmp;base64,Qk06AAAAAAAAADYAAAAoAAAAAQAAAAEAAAABABgAAAAAAAQAAAATCwAAEwsAAAAAAAAAAAAAAAD/AA==";
        let first = pictures.read(url).unwrap();
        assert_eq!((first.width(), first.height(), first.pixels()), (1, 1, &[255, 0, 0][..]));
        assert!(Arc::ptr_eq(&first, &pictures.read(url).unwrap()));
        for refused in
            ["", "https://example.org/a.png", "data:text/plain;base64,QQ==", "data:image/png;base64,%%"]
        {
            assert!(pictures.read(refused).is_err(), "{refused}");
        }
    }
}
