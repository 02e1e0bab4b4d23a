//! Settings of a vision model in llama.cpp's mmproj files.

use super::config::{Projector, VisionConfig, bad};
use crate::error::{Error, Result};
use crate::gguf::Header;

/// Projectors that Foretoken runs, for messages.
pub(super) const SUPPORTED: &str = "the vision models of SmolVLM, Idefics 3 and Qwen3.5";

/// Embeddings of the smallest and the largest picture in Qwen's published files; mmproj files do
/// not have them.
const QWEN_EMBEDDINGS: [usize; 2] = [64, 16_384];

/// Reads the settings from the header of an mmproj file.
///
/// # Errors
/// `Error::BadModel` for another kind of file and for missing settings; `Error::Architecture` for
/// an unsupported projector.
pub(super) fn config(header: &Header) -> Result<VisionConfig> {
    if header.string("general.architecture")? != Some("clip") {
        let found = header.string("general.architecture")?.unwrap_or("none").to_owned();
        return Err(header.bad("a vision file (mmproj), of the architecture 'clip'".to_owned(), found));
    }
    let size = |key: &str| -> Result<usize> {
        let key = format!("clip.vision.{key}");
        let found = header.integer(&key)?.and_then(|size| usize::try_from(size).ok());
        found.ok_or_else(|| header.bad(format!("the setting {key}"), "none".to_owned()))
    };
    let optional =
        |key: &str| Ok::<_, Error>(header.integer(&format!("clip.vision.{key}"))?.map(|size| size as usize));
    let channels = |key: &str| -> Result<[f32; 3]> {
        let key = format!("clip.vision.{key}");
        let numbers = header.list(&key)?.and_then(|list| list.numbers());
        let three = numbers.and_then(|numbers| <[f64; 3]>::try_from(numbers).ok());
        let three =
            three.ok_or_else(|| header.bad(format!("three numbers for {key}"), "others".to_owned()))?;
        Ok(three.map(|number| number as f32))
    };
    let kind = match header.string("clip.projector_type")? {
        Some(kind) => kind,
        None => header.string("clip.vision.projector_type")?.unwrap_or("none"),
    };
    let (image, patch) = (size("image_size")?, size("patch_size")?);
    let grid = image.checked_div(patch).unwrap_or(0);
    let (projector, merge) = match kind {
        "idefics3" => {
            let longest = optional("preproc_image_size")?.unwrap_or(image);
            (Projector::Idefics3 { tile: image, longest }, size("projector.scale_factor")?)
        }
        "qwen3vl_merger" => {
            if deepstack(header)? {
                return Err(unsupported(header, "qwen3vl_merger with deepstack layers"));
            }
            let merge = optional("spatial_merge_size")?.unwrap_or(2);
            let [least, most] = qwen_pixels(patch.saturating_mul(merge));
            (Projector::Qwen3Vl { least, most }, merge)
        }
        other => return Err(unsupported(header, other)),
    };
    let epsilon = header.number("clip.vision.attention.layer_norm_epsilon")?;
    VisionConfig {
        projector,
        width: size("embedding_length")?,
        intermediate: size("feed_forward_length")?,
        layers: size("block_count")?,
        heads: size("attention.head_count")?,
        epsilon: epsilon.filter(|epsilon| *epsilon > 0.0 && *epsilon < 1.0).ok_or_else(|| {
            bad(header.path(), "an epsilon between 0 and 1".to_owned(), format!("{epsilon:?}"))
        })?,
        patch,
        grid,
        merge,
        output: size("projection_dim")?,
        mean: channels("image_mean")?,
        deviation: channels("image_std")?,
    }
    .checked(header.path())
}

/// Pixels of the smallest and the largest picture of Qwen's, with `unit` pixels per side of an
/// embedding.
pub(super) fn qwen_pixels(unit: usize) -> [usize; 2] {
    QWEN_EMBEDDINGS.map(|embeddings| embeddings.saturating_mul(unit).saturating_mul(unit))
}

/// Returns true if embeddings of inner layers are added in the language model too.
fn deepstack(header: &Header) -> Result<bool> {
    let layers = header.list("clip.vision.is_deepstack_layers")?.and_then(|list| list.booleans());
    Ok(layers.is_some_and(|layers| layers.contains(&true)))
}

fn unsupported(header: &Header, kind: &str) -> Error {
    Error::Architecture { path: header.path().to_owned(), found: kind.to_owned(), supported: SUPPORTED }
}
