//! Tokens around the embeddings of a picture, by the rules of transformers' processors.

use foretoken_engine::vision::{PictureLayout, PicturePart};
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{Detail, Projector, Special, Tokenizer, VisionConfig, VisionSource};

use super::sizes::Tiling;

/// Layout of the pictures of a vision model.
pub(super) struct Layout {
    config: VisionConfig,
    version: String,
    token: TokenId,
    stand_in: TokenId,
    names: Names,
}

/// Special tokens of a family.
struct Names {
    /// Token that stands for a picture in prompts.
    placeholder: &'static str,
    /// What templates write for a picture, with the placeholder.
    whole: &'static str,
    /// Token whose rows of tables belong to embeddings.
    stand_in: &'static str,
}

impl Names {
    /// Names of a family whose placeholder is the only token that templates write.
    const fn plain(placeholder: &'static str) -> Self {
        Self { placeholder, whole: placeholder, stand_in: placeholder }
    }
}

/// Token before each tile, and after the last.
const FAKE: &str = "<fake_token_around_image>";

impl Layout {
    /// Finds the special tokens in the language model's vocabulary.
    ///
    /// # Errors
    /// `Error::BadModel` if it does not have them.
    pub fn new(source: &VisionSource, tokenizer: &Tokenizer) -> Result<Self> {
        let names = match source.config().projector {
            Projector::Idefics3 { .. } => Names::plain("<image>"),
            Projector::Qwen3Vl { .. } => Names {
                whole: "<|vision_start|><|image_pad|><|vision_end|>",
                ..Names::plain("<|image_pad|>")
            },
            // Per-layer inputs of embeddings are those of the padding.
            Projector::Gemma4 { .. } => Names { stand_in: "<pad>", ..Names::plain("<|image|>") },
            Projector::Pixtral { .. } => Names::plain("[IMG]"),
        };
        let token = |name: &str| match tokenizer.encode(name, Special::Parse)?[..] {
            [token] => Ok(token),
            _ => Err(Error::BadModel {
                path: source.path().to_owned(),
                expected: format!("a language model with the token {name}"),
                found: "one without".to_owned(),
                hint: "Choose the vision file (mmproj) of this model.",
            }),
        };
        let (token, stand_in) = (token(names.placeholder)?, token(names.stand_in)?);
        Ok(Self { config: source.config().clone(), version: source.version(), token, stand_in, names })
    }
}

impl Layout {
    /// Parts of a picture that is encoded whole.
    fn whole(&self, rows: usize, columns: usize) -> Vec<PicturePart> {
        let text = |text: &str| PicturePart::Text(text.to_owned());
        match self.config.projector {
            Projector::Gemma4 { .. } => {
                vec![text("<|image>"), PicturePart::Embeddings { rows, columns }, text("<image|>")]
            }
            Projector::Pixtral { .. } => (1..=rows)
                .flat_map(|row| {
                    let end = if row < rows { "[IMG_BREAK]" } else { "[IMG_END]" };
                    [PicturePart::Embeddings { rows: 1, columns }, text(end)]
                })
                .collect(),
            Projector::Idefics3 { .. } | Projector::Qwen3Vl { .. } => {
                vec![PicturePart::Embeddings { rows, columns }]
            }
        }
    }
}

impl PictureLayout for Layout {
    fn placeholder(&self) -> (TokenId, &str) {
        (self.token, self.names.whole)
    }

    fn stand_in(&self) -> TokenId {
        self.stand_in
    }

    fn parts(&self, width: usize, height: usize, detail: Detail) -> Result<Vec<PicturePart>> {
        let unit = self.config.unit();
        let square = |tile: usize| PicturePart::Embeddings { rows: tile / unit, columns: tile / unit };
        let text = |text: String| PicturePart::Text(text);
        Ok(match Tiling::of(&self.config, width, height, detail)? {
            Tiling::Whole { width, height } => self.whole(height / unit, width / unit),
            Tiling::Square { tile, .. } => {
                vec![text(format!("{FAKE}<global-img>")), square(tile), text(FAKE.to_owned())]
            }
            Tiling::Tiles { rows, columns, tile, .. } => {
                let mut parts = Vec::new();
                for row in 1..=rows {
                    for column in 1..=columns {
                        let end = if column == 1 && row > 1 { "\n" } else { "" };
                        parts.push(text(format!("{end}{FAKE}<row_{row}_col_{column}>")));
                        parts.push(square(tile));
                    }
                }
                parts.push(text(format!("\n\n{FAKE}<global-img>")));
                parts.extend([square(tile), text(FAKE.to_owned())]);
                parts
            }
        })
    }

    fn version(&self) -> &str {
        &self.version
    }
}
