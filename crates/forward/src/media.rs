//! Embeddings of pictures, a second embedding table of a model: each has an id above every
//! vocabulary, so caches and texts compare pictures as they compare tokens. [`MediaRows`] are those
//! of one pass.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use foretoken_model::error::{Error, Result};
use foretoken_model::token::{MEDIA_IDS, TokenId, is_media};
use half::f16;

use crate::tree::TokenTree;

/// Maximum bytes of embeddings; those used least recently are dropped first.
const MAX_BYTES: usize = 256 << 20;

/// Hash of a picture's pixels, of the tower that encodes it and of its options.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MediaKey(pub [u8; 32]);

impl fmt::Debug for MediaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MediaKey({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

/// Embeddings of a picture in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureShape {
    pub count: usize,
    /// Embeddings per row of the picture.
    pub columns: usize,
    /// Token that stands for them in the model's vocabulary.
    pub placeholder: TokenId,
}

/// Embeddings of a picture, `[count, levels * width]`. The first level enters the model; the others
/// are added to its states after the first layers (DeepStack). Half precision, so that embeddings
/// have the same bits when they are read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    numbers: Vec<f16>,
    /// Numbers of a level.
    width: usize,
    /// Numbers of all levels.
    stride: usize,
}

impl Embeddings {
    /// Rounds `numbers`, rows of `stride` with levels of `width`, to half precision.
    ///
    /// # Errors
    /// `Error::Picture` if a number is too large for it or not a number.
    pub fn new(numbers: &[f32], width: usize, stride: usize) -> Result<Self> {
        Self::of(numbers.iter().map(|&number| f16::from_f32(number)).collect(), width, stride)
    }

    /// Embeddings from their [`Self::bytes`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn read(bytes: &[u8], width: usize, stride: usize) -> Result<Self> {
        let words = bytes.as_chunks().0.iter();
        Self::of(words.map(|&word| f16::from_le_bytes(word)).collect(), width, stride)
    }

    fn of(numbers: Vec<f16>, width: usize, stride: usize) -> Result<Self> {
        if width == 0
            || stride == 0
            || !stride.is_multiple_of(width)
            || !numbers.len().is_multiple_of(stride)
            || !numbers.iter().all(|number| number.is_finite())
        {
            return Err(Error::Picture("the vision model returned numbers that are out of range".to_owned()));
        }
        Ok(Self { numbers, width, stride })
    }

    /// Bytes of all numbers, row by row.
    pub fn bytes(&self) -> Vec<u8> {
        self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Numbers of a level of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Numbers of all levels of a row.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.numbers.len() / self.stride
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    fn row(&self, row: usize, level: usize) -> Option<&[f16]> {
        self.numbers[row * self.stride..][..self.stride].chunks(self.width).nth(level)
    }

    fn levels(&self) -> usize {
        self.stride / self.width
    }

    fn size(&self) -> usize {
        self.numbers.len() * size_of::<f16>()
    }
}

/// A picture in the table.
#[derive(Debug, Clone)]
pub struct MediaPicture {
    pub key: MediaKey,
    /// Ids of its embeddings.
    pub ids: Range<TokenId>,
    pub shape: PictureShape,
    /// `None` if they were dropped, or not computed yet.
    pub embeddings: Option<Arc<Embeddings>>,
}

/// Pictures in the order of their ids, which are never used again.
#[derive(Debug, Default)]
struct Table {
    pictures: Vec<MediaPicture>,
    /// Indices of pictures with embeddings, the most recently used last.
    used: Vec<usize>,
}

/// Table of pictures, shared by the models of a session.
#[derive(Debug, Default)]
pub struct Media {
    table: RwLock<Table>,
}

impl Media {
    /// Ids of the embeddings of the picture `key`, new ones for a picture that is not in the table.
    ///
    /// # Errors
    /// `Error::Picture` when no ids are left.
    pub fn ids(&self, key: MediaKey, shape: PictureShape) -> Result<Range<TokenId>> {
        let mut table = self.write();
        if let Some(picture) = table.find(key).map(|index| &table.pictures[index])
            && picture.shape == shape
        {
            return Ok(picture.ids.clone());
        }
        let first = table.pictures.last().map_or(MEDIA_IDS, |last| last.ids.end);
        let end = TokenId::try_from(shape.count).ok().and_then(|count| first.checked_add(count));
        let Some(end) = end else {
            return Err(Error::Picture("there were too many; load the model again".to_owned()));
        };
        table.pictures.push(MediaPicture { key, ids: first..end, shape, embeddings: None });
        Ok(first..end)
    }

    /// Returns true if the embeddings of the picture `key` are in the table, and counts this as a
    /// use.
    pub fn has(&self, key: MediaKey) -> bool {
        let mut table = self.write();
        let found = table.find(key).filter(|&index| table.pictures[index].embeddings.is_some());
        found.inspect(|&index| table.touch(index)).is_some()
    }

    /// Adds the embeddings of the picture `key`, which has ids for as many.
    ///
    /// # Errors
    /// `Error::Picture` if it has none.
    pub fn insert(&self, key: MediaKey, embeddings: Embeddings) -> Result<()> {
        let mut table = self.write();
        let fits = |&index: &usize| table.pictures[index].ids.len() == embeddings.len();
        let Some(index) = table.find(key).filter(fits) else {
            let reason =
                format!("the vision model returned {} embeddings, not as many as expected", embeddings.len());
            return Err(Error::Picture(reason));
        };
        table.pictures[index].embeddings = Some(Arc::new(embeddings));
        table.touch(index);
        table.shrink();
        Ok(())
    }

    /// Returns true if `token` is the id of a picture whose embeddings are in the table.
    pub fn contains(&self, token: TokenId) -> bool {
        self.read().of(token).is_some()
    }

    /// Picture with `token` among its ids.
    pub fn picture(&self, token: TokenId) -> Option<MediaPicture> {
        self.read().picture(token).cloned()
    }

    /// Shape of the picture whose first embedding `token` is; `None` for all other tokens.
    pub(crate) fn begins(&self, token: TokenId) -> Option<PictureShape> {
        if !is_media(token) {
            return None;
        }
        let table = self.read();
        let picture = table.picture(token).filter(|picture| picture.ids.start == token)?;
        Some(picture.shape)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Index of a picture; its latest ids if it has had several numbers of embeddings.
    fn find(&self, key: MediaKey) -> Option<usize> {
        self.pictures.iter().rposition(|picture| picture.key == key)
    }

    /// Picture of an id.
    fn picture(&self, token: TokenId) -> Option<&MediaPicture> {
        let index = self.pictures.partition_point(|picture| picture.ids.end <= token);
        self.pictures.get(index).filter(|picture| picture.ids.contains(&token))
    }

    /// Picture of an id, and its embeddings.
    fn of(&self, token: TokenId) -> Option<(&MediaPicture, &Arc<Embeddings>)> {
        let picture = self.picture(token)?;
        Some((picture, picture.embeddings.as_ref()?))
    }

    fn touch(&mut self, index: usize) {
        self.used.retain(|&used| used != index);
        self.used.push(index);
    }

    fn shrink(&mut self) {
        let bytes =
            |picture: &MediaPicture| picture.embeddings.as_ref().map_or(0, |embeddings| embeddings.size());
        let mut total: usize = self.pictures.iter().map(bytes).sum();
        while total > MAX_BYTES && self.used.len() > 1 {
            let picture = &mut self.pictures[self.used.remove(0)];
            total -= bytes(picture);
            picture.embeddings = None;
        }
    }
}

/// Embeddings of pictures among the nodes of a pass.
#[derive(Debug, Clone, Default)]
pub struct MediaRows {
    /// Row of each node of the tree; empty if none is a picture's.
    rows: Vec<Option<(Arc<Embeddings>, usize)>>,
}

impl MediaRows {
    /// Rows of a pass without pictures.
    pub const fn none() -> Self {
        Self { rows: Vec::new() }
    }

    /// Rows of `tree`, and the tree with placeholders instead of their ids; `None` without
    /// pictures.
    ///
    /// # Errors
    /// `Error::Picture` for an id whose embeddings are not in the table.
    pub fn of(tree: &TokenTree, media: &Media) -> Result<Option<(TokenTree, Self)>> {
        if !tree.tokens().any(is_media) {
            return Ok(None);
        }
        let table = media.read();
        let (mut rows, mut tokens) = (Vec::with_capacity(tree.len()), Vec::with_capacity(tree.len()));
        for token in tree.tokens() {
            if !is_media(token) {
                rows.push(None);
                tokens.push(token);
                continue;
            }
            let Some((picture, embeddings)) = table.of(token) else {
                return Err(Error::Picture("its embeddings are not in memory any more".to_owned()));
            };
            rows.push(Some((Arc::clone(embeddings), (token - picture.ids.start) as usize)));
            tokens.push(picture.shape.placeholder);
        }
        Ok(Some((tree.with_tokens(&tokens), Self { rows })))
    }

    /// Embedding of a node; `None` if it is a token.
    pub fn row(&self, node: usize) -> Option<&[f16]> {
        self.level(node, 0)
    }

    /// Numbers that are added to the state of a node after layer number `layer` (DeepStack); `None`
    /// for a token.
    pub fn added(&self, node: usize, layer: usize) -> Option<&[f16]> {
        self.level(node, layer + 1)
    }

    /// Returns true if numbers are added to states after layer number `layer`.
    pub fn adds(&self, layer: usize) -> bool {
        self.rows.iter().flatten().any(|(embeddings, _)| embeddings.levels() > layer + 1)
    }

    fn level(&self, node: usize, level: usize) -> Option<&[f16]> {
        let (embeddings, row) = self.rows.get(node)?.as_ref()?;
        embeddings.row(*row, level)
    }

    /// Returns true if no node is a picture's.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> MediaKey {
        MediaKey([byte; 32])
    }

    fn shape(count: usize) -> PictureShape {
        PictureShape { count, columns: 1, placeholder: 7 }
    }

    fn embeddings(count: usize) -> Embeddings {
        Embeddings::new(&vec![0.5; count * 2], 2, 2).unwrap()
    }

    #[test]
    fn a_picture_keeps_its_ids_and_another_one_gets_others() {
        let media = Media::default();
        let first = media.ids(key(1), shape(3)).unwrap();
        assert_eq!(first, MEDIA_IDS..MEDIA_IDS + 3);
        assert_eq!(media.ids(key(2), shape(2)).unwrap(), MEDIA_IDS + 3..MEDIA_IDS + 5);
        assert_eq!(media.ids(key(1), shape(3)).unwrap(), first);
        assert_eq!(media.ids(key(1), shape(4)).unwrap(), MEDIA_IDS + 5..MEDIA_IDS + 9, "with another number");
        assert!(!media.has(key(1)) && !media.contains(first.start));
        media.insert(key(1), embeddings(4)).unwrap();
        assert!(media.has(key(1)) && media.contains(MEDIA_IDS + 5) && !media.contains(first.start));
        assert!(media.insert(key(2), embeddings(3)).is_err(), "not as many as it has ids");
    }

    #[test]
    fn a_tree_with_pictures_has_placeholders_and_rows() {
        let media = Media::default();
        let ids = media.ids(key(1), shape(2)).unwrap();
        let tree = TokenTree::chain([1].into_iter().chain(ids).chain([2]));
        assert!(MediaRows::of(&tree, &media).is_err(), "without embeddings");
        media.insert(key(1), Embeddings::new(&[1.0, 2.0, 3.0, 4.0], 2, 2).unwrap()).unwrap();
        let (placeholders, rows) = MediaRows::of(&tree, &media).unwrap().unwrap();
        assert_eq!(placeholders.tokens().collect::<Vec<_>>(), [1, 7, 7, 2]);
        assert_eq!(rows.row(2).unwrap(), [3.0, 4.0].map(f16::from_f32));
        assert!(rows.row(0).is_none() && rows.row(3).is_none());
        assert!(MediaRows::of(&TokenTree::chain([1, 2]), &media).unwrap().is_none());
    }

    #[test]
    fn further_levels_of_an_embedding_are_added_after_the_first_layers() {
        let media = Media::default();
        let ids = media.ids(key(1), shape(1)).unwrap();
        media.insert(key(1), Embeddings::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 6).unwrap()).unwrap();
        let tree = TokenTree::chain([1].into_iter().chain(ids));
        let (_, rows) = MediaRows::of(&tree, &media).unwrap().unwrap();
        assert_eq!(rows.row(1).unwrap(), [1.0, 2.0].map(f16::from_f32));
        let added = |node, layer| rows.added(node, layer).map(<[f16]>::to_vec);
        assert_eq!(added(1, 0), Some([3.0, 4.0].map(f16::from_f32).to_vec()));
        assert_eq!(added(1, 1), Some([5.0, 6.0].map(f16::from_f32).to_vec()));
        assert_eq!((added(1, 2), added(0, 0)), (None, None));
        assert_eq!([0, 1, 2].map(|layer| rows.adds(layer)), [true, true, false]);
    }

    #[test]
    fn the_least_recently_used_embeddings_are_dropped() {
        let media = Media::default();
        let half = MAX_BYTES / 4 / 2;
        for byte in 1..=3 {
            media.ids(key(byte), shape(half)).unwrap();
        }
        media.insert(key(1), embeddings(half)).unwrap();
        media.insert(key(2), embeddings(half)).unwrap();
        assert!(media.has(key(1)));
        media.insert(key(3), embeddings(half)).unwrap();
        assert_eq!([1, 2, 3].map(|byte| media.has(key(byte))), [true, false, true]);
    }

    #[test]
    fn numbers_out_of_half_precisions_range_are_refused() {
        for number in [1e6, f32::NAN, f32::NEG_INFINITY] {
            assert!(Embeddings::new(&[number, 0.0], 2, 2).is_err(), "{number}");
        }
    }
}
