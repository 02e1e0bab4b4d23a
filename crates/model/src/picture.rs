//! Decoded pictures. Reading picture files is left to `foretoken-senses`.

use std::fmt;

use crate::error::{Error, Result};

/// Bytes of a pixel: red, green and blue.
const CHANNELS: usize = 3;

/// A picture in 8-bit RGB, row by row. Two pictures are equal if their hashes are.
#[derive(Clone, Default)]
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    hash: [u8; 32],
}

impl Picture {
    /// Picture of `width` times `height` pixels.
    ///
    /// # Errors
    /// `Error::Picture` if a side is 0 or there are not as many pixels.
    pub fn new(width: usize, height: usize, pixels: Vec<u8>) -> Result<Self> {
        let size = width.checked_mul(height).and_then(|size| size.checked_mul(CHANNELS));
        if size != Some(pixels.len()) || pixels.is_empty() {
            return Err(Error::Picture(format!(
                "it has {} bytes for {width} x {height} pixels",
                pixels.len()
            )));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(width as u64).to_le_bytes()).update(&pixels);
        Ok(Self { width, height, hash: *hasher.finalize().as_bytes(), pixels })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// Bytes of all pixels, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// Hash of size and pixels.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }
}

/// How closely a picture is looked at: more embeddings take longer and show smaller things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Detail {
    /// About 100 embeddings.
    Low,
    /// About 256 embeddings.
    #[default]
    Normal,
    /// As many as the model was trained with.
    High,
}

impl PartialEq for Picture {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Picture {}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture({} x {})", self.width, self.height)
    }
}
