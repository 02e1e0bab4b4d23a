//! Pictures of questions: data URLs from the page and the store become pixels for the model.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use foretoken_model::child::Program;
use foretoken_model::error::{Error, Result};
use foretoken_model::{Detail, Picture};
use foretoken_senses::picture::PictureReader;

/// A picture of a question.
#[derive(Debug, Clone)]
pub(crate) struct AskedPicture {
    pub(crate) picture: Arc<Picture>,
    pub(crate) detail: Detail,
}

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
    pub(crate) fn read(&self, url: &str) -> Result<AskedPicture> {
        let (detail, encoded) = parts(url)?;
        Ok(AskedPicture { picture: self.decoded(encoded)?, detail })
    }

    fn decoded(&self, encoded: &str) -> Result<Arc<Picture>> {
        let key = *blake3::hash(encoded.as_bytes()).as_bytes();
        let kept = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, picture)) = kept().iter().find(|(hash, _)| *hash == key) {
            return Ok(Arc::clone(picture));
        }
        let file = STANDARD.decode(encoded).map_err(|error| Error::Picture(error.to_string()))?;
        let picture = Arc::new(self.reader.read(&file)?);
        let mut kept = kept();
        kept.push_back((key, Arc::clone(&picture)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(picture)
    }
}

/// Returns the detail and the Base64 of a data URL: `data:image/png;detail=high;base64,…`. The
/// page writes the detail as a parameter of the media type, so that it stays with the picture in
/// the store, in branches and in exports.
fn parts(url: &str) -> Result<(Detail, &str)> {
    let parts = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    let (media_type, encoded) = parts.ok_or_else(|| Error::Picture("it is no data URL".to_owned()))?;
    let is_high = media_type.split(';').any(|parameter| parameter == "detail=high");
    Ok((if is_high { Detail::High } else { Detail::Normal }, encoded))
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
        let picture = &first.picture;
        assert_eq!((picture.width(), picture.height(), picture.pixels()), (1, 1, &[255, 0, 0][..]));
        assert_eq!(first.detail, Detail::Normal);
        let high = pictures.read(&url.replace("bmp;", "bmp;detail=high;")).unwrap();
        assert_eq!(high.detail, Detail::High);
        assert!(Arc::ptr_eq(picture, &high.picture));
        for refused in
            ["", "https://example.org/a.png", "data:text/plain;base64,QQ==", "data:image/png;base64,%%"]
        {
            assert!(pictures.read(refused).is_err(), "{refused}");
        }
    }
}
