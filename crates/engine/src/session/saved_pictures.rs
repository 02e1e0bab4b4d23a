//! Pictures of saved texts. Ids of pictures are those of a session, so a file lists its pictures
//! and has ids of its own for them, and pages are named by the pictures' keys.

use std::ops::Range;
use std::sync::Arc;

use foretoken_forward::{Embeddings, MediaKey, MediaPicture, PictureShape};
use foretoken_model::token::{MEDIA_IDS, TokenId, is_media};

use super::saved_text::{Hash, next};

/// Pictures of a text, in the order of their ids in its file.
#[derive(Default)]
pub(super) struct SavedPictures(Vec<SavedPicture>);

struct SavedPicture {
    picture: MediaPicture,
    /// Ids in the file.
    saved: Range<TokenId>,
}

impl SavedPictures {
    /// Adds a picture of the session; `None` if no ids are left for it.
    pub fn add(&mut self, picture: MediaPicture) -> Option<()> {
        let first = self.0.last().map_or(MEDIA_IDS, |last| last.saved.end);
        let end = first.checked_add(picture.ids.end - picture.ids.start)?;
        self.0.push(SavedPicture { picture, saved: first..end });
        Some(())
    }

    /// Id in the file of a session's token; `None` for an unknown picture.
    pub fn saved(&self, token: TokenId) -> Option<TokenId> {
        if !is_media(token) {
            return Some(token);
        }
        self.of(token).map(|(picture, row)| picture.saved.start + row)
    }

    /// Token of the session for an id in the file; `None` for an unknown picture.
    pub fn loaded(&self, token: TokenId) -> Option<TokenId> {
        if !is_media(token) {
            return Some(token);
        }
        let picture = self.0.iter().find(|picture| picture.saved.contains(&token))?;
        Some(picture.picture.ids.start + (token - picture.saved.start))
    }

    /// Appends bytes that stand for a session's token in the name of a page: a picture's key and
    /// the number of the embedding in place of its id.
    pub fn name(&self, token: TokenId, bytes: &mut Vec<u8>) {
        match self.of(token) {
            None => bytes.extend(token.to_le_bytes()),
            Some((SavedPicture { picture, .. }, row)) => {
                bytes.extend(MEDIA_IDS.to_le_bytes());
                bytes.extend(picture.key.0);
                bytes.extend(row.to_le_bytes());
            }
        }
    }

    /// Descriptions of all pictures.
    pub fn descriptions(&self) -> Vec<Description> {
        self.0.iter().map(|SavedPicture { picture, .. }| Description::of(picture)).collect()
    }

    /// Names of files with embeddings, and the embeddings.
    pub fn embeddings(&self) -> impl Iterator<Item = (Hash, Arc<Embeddings>)> {
        self.0.iter().filter_map(|SavedPicture { picture, .. }| {
            Some((embeddings_name(picture.key), Arc::clone(picture.embeddings.as_ref()?)))
        })
    }

    /// Picture of a session's token, and the number of the embedding.
    fn of(&self, token: TokenId) -> Option<(&SavedPicture, TokenId)> {
        let picture = self.0.iter().find(|picture| picture.picture.ids.contains(&token))?;
        Some((picture, token - picture.picture.ids.start))
    }
}

/// Name of the file with a picture's embeddings.
fn embeddings_name(key: MediaKey) -> Hash {
    next(&key.0, b"embeddings")
}

/// Description of a picture in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Description {
    pub key: MediaKey,
    pub shape: PictureShape,
    /// Numbers of a level of an embedding; 0 without embeddings.
    pub width: usize,
    /// Numbers of an embedding.
    pub stride: usize,
}

impl Description {
    /// Bytes of a description.
    pub const BYTES: usize = 32 + 5 * 8;

    fn of(picture: &MediaPicture) -> Self {
        let embeddings = picture.embeddings.as_ref();
        let (width, stride) = embeddings.map_or((0, 0), |found| (found.width(), found.stride()));
        Self { key: picture.key, shape: picture.shape, width, stride }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let PictureShape { count, columns, placeholder } = self.shape;
        let numbers = [count, columns, placeholder as usize, self.width, self.stride];
        let numbers = numbers.iter().flat_map(|&number| (number as u64).to_le_bytes());
        self.key.0.into_iter().chain(numbers).collect()
    }

    /// Reads a description; `None` for numbers that none has.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (key, numbers) = bytes.split_first_chunk()?;
        let numbers = numbers.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes));
        let numbers: Vec<usize> =
            numbers.map(|number| usize::try_from(number).ok()).collect::<Option<_>>()?;
        let [count, columns, placeholder, width, stride] = numbers[..] else { return None };
        let placeholder = TokenId::try_from(placeholder).ok().filter(|&token| !is_media(token))?;
        let shape = PictureShape { count, columns, placeholder };
        (columns > 0).then_some(Self { key: MediaKey(*key), shape, width, stride })
    }

    /// Name and length of the file with the embeddings; `None` without embeddings.
    pub fn embeddings_file(&self) -> Option<(Hash, usize)> {
        let numbers = self.shape.count.checked_mul(self.stride).filter(|_| self.width > 0)?;
        Some((embeddings_name(self.key), numbers.checked_mul(2)?))
    }
}
