//! Texts on disk: the loaded text is written after a reply and restored when its conversation is
//! opened. Pages of keys and values are files of their own, named by a hash of the model and all
//! tokens up to their end, so texts that begin alike share them. So are embeddings of pictures. The
//! client provides the files.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use foretoken_forward::cpu::PAGE;
use foretoken_forward::{Embeddings, Media, ORDER_OF_SUMS, Parked};
use foretoken_model::ModelSource;
use foretoken_model::token::TokenId;

use super::saved_pictures::{Description, SavedPictures};
use super::shelf::Text;
use crate::draft::{ParkedDrafter, ParkedHead};

/// Hash of a model, of the text up to the end of a page, or of a picture.
pub type Hash = [u8; 32];

/// Version of a saved text's format.
const FORMAT: u32 = 2;

/// Files with the contexts of one model.
pub trait ContextFiles {
    /// Saves a text under `name`: those of `pages` that have no file yet, of which `bytes_of`
    /// returns the bytes, then `text`.
    ///
    /// # Errors
    /// The reason why saving failed.
    fn save(
        &self,
        name: &str,
        pages: &[Hash],
        bytes_of: &mut dyn FnMut(usize) -> Vec<u8>,
        text: &[u8],
    ) -> io::Result<()>;

    /// Bytes of a text, as they were saved.
    ///
    /// # Errors
    /// `ErrorKind::NotFound` if there is none; the reason why it cannot be used.
    fn text(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Bytes of a page, as they were saved; there are `length` of them.
    ///
    /// # Errors
    /// As [`Self::text`].
    fn page(&self, page: &Hash, length: usize) -> io::Result<Vec<u8>>;
}

/// Hash of models as they are loaded: the versions of their files, and of the program that computes
/// with them. That of a draft depends on its target's.
pub(super) fn identity(sources: &[&ModelSource], target: Option<&Hash>) -> Hash {
    let mut hasher = blake3::Hasher::new();
    let program = [env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH];
    hasher.update(format!("{FORMAT} {ORDER_OF_SUMS} {program:?}").as_bytes());
    hasher.update(target.map_or(&[], |target| target));
    for source in sources {
        hasher.update(source.version().as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// A text to be saved, by any thread.
pub struct TextToSave {
    pub(super) text: Text,
    pub(super) target: Hash,
    /// Hash of the draft model; `None` to save no drafter's caches.
    pub(super) draft: Option<Hash>,
    /// Pictures of the session.
    pub(super) media: Arc<Media>,
}

impl TextToSave {
    /// Hash of the target, whose files are meant.
    pub fn target(&self) -> Hash {
        self.target
    }

    /// Saves the text under `name`.
    ///
    /// # Errors
    /// As [`ContextFiles::save`].
    pub fn save(&mut self, name: &str, files: &dyn ContextFiles) -> io::Result<()> {
        let mut saved = SavedText::new(&self.media);
        saved.part(&self.text.target, self.target);
        saved.bytes.extend_from_slice(&self.draft.unwrap_or_default());
        let drafters = if self.draft.is_some() { &self.text.drafters[..] } else { &[] };
        saved.number(drafters.len());
        for drafter in drafters {
            saved.drafter(drafter.as_ref(), self.draft.unwrap_or_default());
        }
        saved.embeddings();
        let bytes = [saved.descriptions(), std::mem::take(&mut saved.bytes)].concat();
        let SavedText { pages, contents, parts, .. } = &mut saved;
        let mut bytes_of = |page: usize| match &contents[page] {
            Content::Page { part, number } => parts[*part].page(*number),
            Content::Picture(embeddings) => embeddings.bytes(),
        };
        files.save(name, pages, &mut bytes_of, &bytes)
    }
}

/// Content of a page's file.
enum Content {
    /// Keys and values of a part, and the page's number there.
    Page { part: usize, number: usize },
    /// Embeddings of a picture.
    Picture(Arc<Embeddings>),
}

/// A text as it is saved.
struct SavedText<'a> {
    media: &'a Media,
    pages: Vec<Hash>,
    contents: Vec<Content>,
    /// Caches of the target and of drafters' models.
    parts: Vec<Parked>,
    pictures: SavedPictures,
    bytes: Vec<u8>,
}

impl<'a> SavedText<'a> {
    fn new(media: &'a Media) -> Self {
        Self {
            media,
            pages: Vec::new(),
            contents: Vec::new(),
            parts: Vec::new(),
            pictures: SavedPictures::default(),
            bytes: Vec::new(),
        }
    }

    /// Descriptions of the pictures, with which the file begins.
    fn descriptions(&self) -> Vec<u8> {
        let descriptions = self.pictures.descriptions();
        let count = (descriptions.len() as u64).to_le_bytes().to_vec();
        std::iter::once(count).chain(descriptions.iter().map(Description::bytes)).flatten().collect()
    }

    /// Adds a file for each picture's embeddings.
    fn embeddings(&mut self) {
        for (name, embeddings) in self.pictures.embeddings() {
            self.pages.push(name);
            self.contents.push(Content::Picture(embeddings));
        }
    }

    fn number(&mut self, number: usize) {
        self.bytes.extend_from_slice(&(number as u64).to_le_bytes());
    }

    fn block(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds tokens; ids of pictures become those of the file.
    fn tokens(&mut self, tokens: &[TokenId]) {
        for &token in tokens {
            if self.pictures.saved(token).is_none() {
                self.media.picture(token).and_then(|picture| self.pictures.add(picture));
            }
        }
        let saved = tokens.iter().map(|&token| self.pictures.saved(token).unwrap_or(token));
        let bytes: Vec<u8> = saved.flat_map(TokenId::to_le_bytes).collect();
        self.block(&bytes);
    }

    fn floats(&mut self, numbers: &[f32]) {
        self.block(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
    }

    /// Adds the caches of a model: full pages by their hashes, everything else as it is.
    fn part(&mut self, parked: &Parked, model: Hash) {
        let mut parked = parked.clone();
        let tokens = parked.tokens().to_vec();
        self.tokens(&tokens);
        self.number(parked.is_long().into());
        self.block(&parked.states());
        let pages = page_hashes(&tokens, parked.is_long(), model, &self.pictures);
        let part = self.parts.len();
        self.contents.extend((0..pages.len()).map(|number| Content::Page { part, number }));
        let rest = if parked.pages() > pages.len() { parked.page(pages.len()) } else { Vec::new() };
        self.block(&rest);
        self.pages.extend(pages);
        self.parts.push(parked);
    }

    fn drafter(&mut self, drafter: Option<&ParkedDrafter>, model: Hash) {
        match drafter {
            None => self.number(0),
            Some(ParkedDrafter::Model { model: parked, stage }) => {
                self.number(1);
                self.part(parked, model);
                self.drafter(stage.as_deref(), next(&model, b"stage"));
            }
            Some(ParkedDrafter::Head(head)) => {
                self.number(2);
                self.part(&head.model, model);
                self.tokens(&head.observed);
                self.floats(&head.waiting);
                self.floats(&head.state);
            }
        }
    }
}

/// Hashes of a text's full pages, in which a picture stands by its key.
fn page_hashes(tokens: &[TokenId], long: bool, model: Hash, pictures: &SavedPictures) -> Vec<Hash> {
    let mut hash = next(&model, &[long.into()]);
    let pages = tokens.as_chunks::<PAGE>().0.iter().map(|tokens| {
        let mut bytes = Vec::new();
        tokens.iter().for_each(|&token| pictures.name(token, &mut bytes));
        hash = next(&hash, &bytes);
        hash
    });
    pages.collect()
}

pub(super) fn next(hash: &Hash, bytes: &[u8]) -> Hash {
    *blake3::Hasher::new().update(hash).update(bytes).finalize().as_bytes()
}

/// Reader of a saved text.
pub(super) struct Reader<'a> {
    pub bytes: &'a [u8],
    pub files: &'a dyn ContextFiles,
    /// Called between pages; `false` ends reading.
    pub go_on: &'a dyn Fn() -> bool,
    /// Pictures read so far.
    pub pictures: SavedPictures,
}

impl<'a> Reader<'a> {
    /// Reads the pictures, with which a file begins, into the session's table. Embeddings whose
    /// file is missing are computed again when a reply needs them.
    ///
    /// # Errors
    /// `ErrorKind::InvalidData`.
    pub fn pictures(&mut self, media: &Media) -> io::Result<()> {
        for _ in 0..self.number()? {
            let picture = Description::read(self.take(Description::BYTES)?).ok_or_else(malformed)?;
            let ids = media.ids(picture.key, picture.shape).map_err(|_| malformed())?;
            if !media.has(picture.key)
                && let Some(embeddings) = self.embeddings(&picture)
            {
                media.insert(picture.key, embeddings).map_err(|_| malformed())?;
            }
            let picture = media.picture(ids.start).ok_or_else(malformed)?;
            self.pictures.add(picture).ok_or_else(malformed)?;
        }
        Ok(())
    }

    fn embeddings(&self, picture: &Description) -> Option<Embeddings> {
        let (name, length) = picture.embeddings_file()?;
        let bytes = self.files.page(&name, length).ok()?;
        Embeddings::read(&bytes, picture.width, picture.stride).ok()
    }

    /// Reads the text's caches into the layout of `like`, a text of the same session. Those of
    /// another draft are left out.
    ///
    /// # Errors
    /// As [`ContextFiles::text`]; `ErrorKind::Interrupted` once `go_on` returned `false`.
    pub fn text(&mut self, like: &TextToSave) -> io::Result<Text> {
        let target = self.part(&like.text.target, like.target)?;
        let draft: Hash = self.take(32)?.try_into().map_err(|_| malformed())?;
        let mut drafters = Vec::new();
        if self.number()? == like.text.drafters.len() && like.draft == Some(draft) {
            for like in &like.text.drafters {
                drafters.push(self.drafter(like.as_ref(), draft)?);
            }
        }
        Ok(Text { target, drafters, ..like.text.clone() })
    }

    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        self.bytes.split_off(..length).ok_or_else(malformed)
    }

    fn number(&mut self) -> io::Result<usize> {
        let (words, _) = self.take(8)?.as_chunks();
        usize::try_from(u64::from_le_bytes(words[0])).map_err(|_| malformed())
    }

    fn block(&mut self) -> io::Result<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    /// Reads tokens, with which a part begins.
    ///
    /// # Errors
    /// `ErrorKind::InvalidData`.
    pub fn tokens(&mut self) -> io::Result<Vec<TokenId>> {
        let words = self.block()?.as_chunks().0.iter();
        let tokens = words.map(|&word| self.pictures.loaded(TokenId::from_le_bytes(word)));
        tokens.collect::<Option<_>>().ok_or_else(malformed)
    }

    fn floats(&mut self) -> io::Result<Vec<f32>> {
        Ok(self.block()?.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect())
    }

    fn part(&mut self, like: &Parked, model: Hash) -> io::Result<Parked> {
        let tokens = self.tokens()?;
        let (long, states) = (self.number()? == 1, self.block()?);
        let mut pages = Vec::new();
        for page in page_hashes(&tokens, long, model, &self.pictures) {
            if !(self.go_on)() {
                return Err(ErrorKind::Interrupted.into());
            }
            pages.push(self.files.page(&page, like.page_bytes())?);
        }
        let rest = self.block()?;
        pages.extend((!rest.is_empty()).then(|| rest.to_vec()));
        like.read(&tokens, long, &pages, states).ok_or_else(malformed)
    }

    fn drafter(&mut self, like: Option<&ParkedDrafter>, model: Hash) -> io::Result<Option<ParkedDrafter>> {
        Ok(match (self.number()?, like) {
            (0, _) => None,
            (1, Some(ParkedDrafter::Model { model: like, stage })) => {
                let parked = self.part(like, model)?;
                let stage = self.drafter(stage.as_deref(), next(&model, b"stage"))?.map(Box::new);
                Some(ParkedDrafter::Model { model: parked, stage })
            }
            (2, Some(ParkedDrafter::Head(like))) => {
                let model = self.part(&like.model, model)?;
                let (observed, waiting, state) = (self.tokens()?, self.floats()?, self.floats()?);
                Some(ParkedDrafter::Head(ParkedHead { model, observed, waiting, state }))
            }
            _ => return Err(malformed()),
        })
    }
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it does not describe a text of this model")
}
