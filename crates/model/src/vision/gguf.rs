//! Settings of a vision model in llama.cpp's mmproj files.

use super::config::{Projector, VisionConfig, fraction};
use super::options::VisionActivation;
use crate::error::{Error, Result};
use crate::gguf::Header;
use crate::tensors::Tensors;

/// Projectors that Foretoken runs, for messages.
pub(super) const SUPPORTED: &str = "the vision models of SmolVLM, Idefics 3, Qwen3-VL, Qwen3.5, \
                                    Gemma 4 E2B and E4B, and Mistral Small 3";

/// Embeddings of the smallest and the largest picture in Qwen's published files; mmproj files do
/// not have them.
const QWEN_EMBEDDINGS: [usize; 2] = [64, 16_384];

/// Embeddings of a picture in Gemma 4's published files, and merged patches per side.
pub(super) const GEMMA_DEFAULT: usize = 280;
pub(super) const GEMMA_MERGE: usize = 3;

/// Largest width of a Gemma 4 that reads a picture's embeddings in their order; wider models let
/// them attend to each other. mmproj files do not say so.
const CAUSAL_GEMMA_WIDTH: usize = 2560;

/// Name for a Gemma 4 whose language model lets embeddings of a picture attend to each other.
pub(super) const BIDIRECTIONAL: &str = "Gemma 4 whose pictures attend to themselves in both directions";

/// Reads the settings of an mmproj file, from its header and the shapes of its tensors.
///
/// # Errors
/// `Error::BadModel` for another kind of file and for missing settings; `Error::Architecture` for
/// an unsupported projector.
pub(super) fn config(header: &Header, tensors: &Tensors) -> Result<VisionConfig> {
    if header.string("general.architecture")? != Some("clip") {
        let found = header.string("general.architecture")?.unwrap_or("none").to_owned();
        return Err(header.bad("a vision file (mmproj), of the architecture 'clip'".to_owned(), found));
    }
    let settings = Settings { header, tensors };
    let (layers, epsilon) = (settings.size("block_count")?, settings.epsilon()?);
    let [mean, deviation] = [settings.channels("image_mean")?, settings.channels("image_std")?];
    let Kind { projector, merge, grid, deepstack } = settings.kind(epsilon)?;
    let is_gemma = matches!(projector, Projector::Gemma4 { .. });
    VisionConfig {
        projector,
        width: settings.size("embedding_length")?,
        intermediate: settings.size("feed_forward_length")?,
        layers,
        heads: settings.size("attention.head_count")?,
        activation: settings.activation(projector)?,
        epsilon,
        patch: settings.size("patch_size")?,
        grid,
        merge,
        output: settings.size("projection_dim")?,
        deepstack,
        clamps: is_gemma && settings.has("v.blk.0.attn_q.input_max"),
        standardised: is_gemma && settings.has("v.std_scale"),
        projector_biases: settings.has("mm.1.bias"),
        // Gemma 4's model moves pixels from 0 to 1 into -1 to 1 by itself.
        mean: if is_gemma { [0.5; 3] } else { mean },
        deviation: if is_gemma { [0.5; 3] } else { deviation },
    }
    .checked(header.path())
}

/// Settings that depend on the kind of projector.
struct Kind {
    projector: Projector,
    merge: usize,
    grid: usize,
    deepstack: Vec<usize>,
}

/// Settings and tensors of an mmproj file.
struct Settings<'a> {
    header: &'a Header,
    tensors: &'a Tensors,
}

impl Settings<'_> {
    fn has(&self, tensor: &str) -> bool {
        self.tensors.stored.contains_key(tensor)
    }

    fn optional(&self, key: &str) -> Result<Option<usize>> {
        let found = self.header.integer(&format!("clip.vision.{key}"))?;
        Ok(found.and_then(|size| usize::try_from(size).ok()))
    }

    fn size(&self, key: &str) -> Result<usize> {
        let missing = || self.header.bad(format!("the setting clip.vision.{key}"), "none".to_owned());
        self.optional(key)?.ok_or_else(missing)
    }

    fn epsilon(&self) -> Result<f64> {
        fraction(self.header.path(), self.header.number("clip.vision.attention.layer_norm_epsilon")?)
    }

    /// Activation function; files do not tell GELU from its approximation.
    fn activation(&self, projector: Projector) -> Result<VisionActivation> {
        let [gelu, silu] = ["clip.use_gelu", "clip.use_silu"].map(|key| self.header.boolean(key));
        match (projector, gelu?, silu?) {
            (Projector::Pixtral { .. }, _, Some(true)) => Ok(VisionActivation::Silu),
            (Projector::Pixtral { .. }, Some(true), _) => Ok(VisionActivation::Gelu),
            (Projector::Pixtral { .. }, ..) => {
                Err(self.header.bad("GELU or SiLU in the vision model".to_owned(), "neither".to_owned()))
            }
            _ => Ok(VisionActivation::GeluTanh),
        }
    }

    fn channels(&self, key: &str) -> Result<[f32; 3]> {
        let key = format!("clip.vision.{key}");
        let numbers = self.header.list(&key)?.and_then(|list| list.numbers());
        let three = numbers.and_then(|numbers| <[f64; 3]>::try_from(numbers).ok());
        let three =
            three.ok_or_else(|| self.header.bad(format!("three numbers for {key}"), "others".to_owned()))?;
        Ok(three.map(|number| number as f32))
    }

    fn kind(&self, epsilon: f64) -> Result<Kind> {
        let name = match self.header.string("clip.projector_type")? {
            Some(name) => name,
            None => self.header.string("clip.vision.projector_type")?.unwrap_or("none"),
        };
        let (image, patch) = (self.size("image_size")?, self.size("patch_size")?);
        let grid = image.checked_div(patch).unwrap_or(0);
        let deepstack = Vec::new();
        Ok(match name {
            "idefics3" => {
                let longest = self.optional("preproc_image_size")?.unwrap_or(image);
                let merge = self.size("projector.scale_factor")?;
                Kind { projector: Projector::Idefics3 { tile: image, longest }, merge, grid, deepstack }
            }
            "qwen3vl_merger" => {
                let merge = self.optional("spatial_merge_size")?.unwrap_or(2);
                let [least, most] = qwen_pixels(patch.saturating_mul(merge));
                let least = self.optional("image_min_pixels")?.unwrap_or(least);
                let most = self.optional("image_max_pixels")?.unwrap_or(most);
                let deepstack = self.deepstack()?;
                Kind { projector: Projector::Qwen3Vl { least, most }, merge, grid, deepstack }
            }
            "gemma4v" if self.size("projection_dim")? > CAUSAL_GEMMA_WIDTH => {
                return Err(self.unsupported(BIDIRECTIONAL));
            }
            "gemma4v" => {
                let merge = self.optional("projector.scale_factor")?.unwrap_or(GEMMA_MERGE);
                let grid = self.positions_per_axis()?;
                let embeddings = GEMMA_DEFAULT;
                Kind { projector: Projector::Gemma4 { embeddings }, merge, grid, deepstack }
            }
            "pixtral" => {
                let merge = self.optional("spatial_merge_size")?.unwrap_or(1);
                let projector = Projector::Pixtral { longest: image, epsilon };
                Kind { projector, merge, grid: 0, deepstack }
            }
            other => return Err(self.unsupported(other)),
        })
    }

    /// Rows of the tables of learned positions, `[2, rows, width]`.
    fn positions_per_axis(&self) -> Result<usize> {
        let stored = self.tensors.find("v.position_embd.weight")?;
        Ok(stored.shape.iter().rev().nth(1).copied().unwrap_or(0))
    }

    /// Layers whose states become further embeddings.
    fn deepstack(&self) -> Result<Vec<usize>> {
        let layers = self.header.list("clip.vision.is_deepstack_layers")?.and_then(|list| list.booleans());
        let layers = layers.unwrap_or_default();
        Ok(layers.iter().enumerate().filter(|(_, stacked)| **stacked).map(|(layer, _)| layer).collect())
    }

    fn unsupported(&self, kind: &str) -> Error {
        let path = self.header.path().to_owned();
        Error::Architecture { path, found: kind.to_owned(), supported: SUPPORTED }
    }
}

/// Pixels of the smallest and the largest picture of Qwen's, with `unit` pixels per side of an
/// embedding.
pub(super) fn qwen_pixels(unit: usize) -> [usize; 2] {
    QWEN_EMBEDDINGS.map(|embeddings| embeddings.saturating_mul(unit).saturating_mul(unit))
}
