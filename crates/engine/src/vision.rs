//! Pictures in prompts: ids for their embeddings, and the tokens around them. The vision model that
//! computes embeddings is in `foretoken-senses`.

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_forward::{Embeddings, Media, MediaKey, PictureShape};
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{Detail, Picture, PlacedPicture, Special, Tokenizer};

/// Part of a prompt that stands for a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PicturePart {
    /// Text with special tokens.
    Text(String),
    /// The picture's next embeddings, row by row.
    Embeddings { rows: usize, columns: usize },
}

impl PicturePart {
    /// Embeddings per row, if it has any.
    fn columns(&self) -> Option<usize> {
        if let Self::Embeddings { columns, .. } = self { Some(*columns) } else { None }
    }

    /// Number of its embeddings.
    fn embeddings(&self) -> usize {
        match self {
            Self::Text(_) => 0,
            Self::Embeddings { rows, columns } => rows * columns,
        }
    }
}

/// Tokens of pictures in prompts, by the rules of a vision model. Computes no embeddings.
pub trait PictureLayout: Send + Sync {
    /// Special token that the chat template writes for a picture, and the whole text of which it is
    /// a part.
    fn placeholder(&self) -> (TokenId, &str);

    /// Token whose rows of embedding tables belong to embeddings of a picture.
    fn stand_in(&self) -> TokenId {
        self.placeholder().0
    }

    /// Parts that stand in the place of the placeholder's token, for a picture of `width` times
    /// `height` pixels.
    ///
    /// # Errors
    /// `Error::Picture` for a size that the model cannot see.
    fn parts(&self, width: usize, height: usize, detail: Detail) -> Result<Vec<PicturePart>>;

    /// Text that is another one for every other vision model.
    fn version(&self) -> &str;
}

/// Computes the embeddings of pictures.
pub trait VisionModel: Send {
    fn layout(&self) -> Arc<dyn PictureLayout>;

    /// All embeddings of a picture, as many as its layout says. `on_progress` receives the share
    /// that is done; `Break` ends the work.
    ///
    /// # Errors
    /// `Error::Picture` or `Error::Compute`; `Error::Cancelled` after `Break`.
    fn encode(
        &mut self,
        picture: &Picture,
        detail: Detail,
        on_progress: &mut dyn FnMut(f32) -> ControlFlow<()>,
    ) -> Result<Embeddings>;
}

/// Ids and tokens of pictures in prompts of a session.
#[derive(Clone)]
pub struct PictureIds {
    pub layout: Arc<dyn PictureLayout>,
    pub media: Arc<Media>,
}

impl PictureIds {
    /// Key of a picture's embeddings: its pixels, the vision model, and the detail.
    pub fn key(&self, placed: &PlacedPicture) -> MediaKey {
        let mut hasher = blake3::Hasher::new();
        let detail = format!("{:?} {}", placed.detail, self.layout.version());
        hasher.update(&placed.picture.hash()).update(detail.as_bytes());
        MediaKey(*hasher.finalize().as_bytes())
    }

    /// Returns true if a prompt has a placeholder for each of `count` pictures.
    pub fn has_all(&self, tokens: &[TokenId], count: usize) -> bool {
        let placeholder = self.layout.placeholder().0;
        tokens.iter().filter(|&&token| token == placeholder).count() == count
    }

    /// Replaces each placeholder among `tokens` by the tokens of the next picture.
    ///
    /// # Errors
    /// As [`PictureLayout::parts`] and [`Media::ids`].
    pub fn expanded<'a>(
        &self,
        tokens: &[TokenId],
        mut pictures: impl Iterator<Item = &'a PlacedPicture>,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<TokenId>> {
        let placeholder = self.layout.placeholder().0;
        let mut expanded = Vec::with_capacity(tokens.len());
        for &token in tokens {
            match (token == placeholder).then(|| pictures.next()).flatten() {
                Some(picture) => expanded.extend(self.tokens(picture, tokenizer)?),
                None => expanded.push(token),
            }
        }
        Ok(expanded)
    }

    /// Tokens that stand in the place of a picture's placeholder. Its embeddings have ids from now
    /// on.
    ///
    /// # Errors
    /// As [`PictureLayout::parts`] and [`Media::ids`].
    pub fn tokens(&self, placed: &PlacedPicture, tokenizer: &Tokenizer) -> Result<Vec<TokenId>> {
        let PlacedPicture { picture, detail, .. } = placed;
        let parts = self.layout.parts(picture.width(), picture.height(), *detail)?;
        let columns = parts.iter().find_map(PicturePart::columns).unwrap_or(1);
        let count = parts.iter().map(PicturePart::embeddings).sum();
        let shape = PictureShape { count, columns, placeholder: self.layout.stand_in() };
        let mut ids = self.media.ids(self.key(placed), shape)?;
        let mut tokens = Vec::new();
        for part in &parts {
            match part {
                PicturePart::Text(text) => tokens.extend(tokenizer.encode(text, Special::Parse)?),
                PicturePart::Embeddings { .. } => tokens.extend(ids.by_ref().take(part.embeddings())),
            }
        }
        Ok(tokens)
    }
}

/// Error for a picture in the prompt of a model without a vision model.
pub fn sees_nothing() -> Error {
    Error::Picture("this model cannot see pictures. Choose a model that can".to_owned())
}
