//! Settings of a vision model in Hugging Face folders: config.json, and the settings of the picture
//! processor.

use serde_json::Value as Json;

use super::config::{Projector, VisionConfig, bad};
use super::gguf::{SUPPORTED, qwen_pixels};
use crate::error::{Error, Result};
use crate::folder::Folder;

/// Reads the settings of the vision model in `folder`.
///
/// # Errors
/// `Error::BadModel` for a folder without a vision model and for missing settings;
/// `Error::Architecture` for an unsupported kind.
pub(super) fn config(folder: &Folder) -> Result<VisionConfig> {
    let (whole, path) = (&folder.config, folder.path.as_path());
    let vision = &whole["vision_config"];
    if !vision.is_object() {
        return Err(bad(
            path,
            "a folder with a vision model".to_owned(),
            "a language model alone".to_owned(),
        ));
    }
    let processor = folder.processor()?;
    let kind = whole["model_type"].as_str().unwrap_or("none");
    let size = |from: &Json, key: &str| {
        let found = from[key].as_u64().and_then(|size| usize::try_from(size).ok());
        found.ok_or_else(|| bad(path, format!("a whole number for {key}"), from[key].to_string()))
    };
    let edge = |key: &str, part: &str| {
        let of = |from: &Json| from[key][part].as_u64().map(|size| size as usize);
        of(&processor).or_else(|| of(vision))
    };
    let (patch, language) = (size(vision, "patch_size")?, size(folder.language(), "hidden_size")?);
    let (projector, [layers, heads], grid, merge, output) = match kind {
        "idefics3" | "smolvlm" => {
            let image = size(vision, "image_size")?;
            let tile = edge("max_image_size", "longest_edge").unwrap_or(image);
            let longest = edge("size", "longest_edge").unwrap_or(4 * tile);
            let depth = [size(vision, "num_hidden_layers")?, size(vision, "num_attention_heads")?];
            let grid = image.checked_div(patch).unwrap_or(0);
            (Projector::Idefics3 { tile, longest }, depth, grid, size(whole, "scale_factor")?, language)
        }
        "qwen3_5" | "qwen3_5_moe" => {
            let merge = size(vision, "spatial_merge_size")?;
            let [least, most] = qwen_pixels(patch.saturating_mul(merge));
            let least = edge("size", "shortest_edge").unwrap_or(least);
            let most = edge("size", "longest_edge").unwrap_or(most);
            let depth = [size(vision, "depth")?, size(vision, "num_heads")?];
            let grid = size(vision, "num_position_embeddings")?.isqrt();
            let output = size(vision, "out_hidden_size")?;
            (Projector::Qwen3Vl { least, most }, depth, grid, merge, output)
        }
        other => {
            let (path, found) = (path.to_owned(), other.to_owned());
            return Err(Error::Architecture { path, found, supported: SUPPORTED });
        }
    };
    VisionConfig {
        projector,
        width: size(vision, "hidden_size")?,
        intermediate: size(vision, "intermediate_size")?,
        layers,
        heads,
        epsilon: vision["layer_norm_eps"].as_f64().unwrap_or(1e-6),
        patch,
        grid,
        merge,
        output,
        mean: channels(&processor, "image_mean"),
        deviation: channels(&processor, "image_std"),
    }
    .checked(path)
}

/// Three numbers of the picture processor; 0.5 each by default.
fn channels(processor: &Json, key: &str) -> [f32; 3] {
    let number = |channel: usize| processor[key][channel].as_f64().map(|number| number as f32);
    [0, 1, 2].map(|channel| number(channel).unwrap_or(0.5))
}
