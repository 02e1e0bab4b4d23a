//! Settings of a vision model in Hugging Face folders: config.json, and the settings of the picture
//! processor.

use serde_json::Value as Json;

use super::config::{Projector, VisionConfig, bad};
use super::gguf::{BIDIRECTIONAL, GEMMA_DEFAULT, GEMMA_MERGE, SUPPORTED, qwen_pixels};
use super::options::VisionActivation;
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
    let settings = Settings { folder, whole, vision, processor: folder.processor()? };
    match whole["model_type"].as_str().unwrap_or("none") {
        "idefics3" | "smolvlm" => settings.idefics3(),
        "qwen3_5" | "qwen3_5_moe" | "qwen3_vl" => settings.qwen3vl(),
        "gemma4" => settings.gemma4(),
        "mistral3" => settings.pixtral(),
        other => Err(settings.unsupported(other)),
    }?
    .checked(path)
}

/// Documents of a folder.
struct Settings<'a> {
    folder: &'a Folder,
    /// config.json
    whole: &'a Json,
    vision: &'a Json,
    processor: Json,
}

impl Settings<'_> {
    fn size(&self, from: &Json, key: &str) -> Result<usize> {
        let found = from[key].as_u64().and_then(|size| usize::try_from(size).ok());
        let path = self.folder.path.as_path();
        found.ok_or_else(|| bad(path, format!("a whole number for {key}"), from[key].to_string()))
    }

    fn size_or(&self, from: &Json, key: &str, default: usize) -> Result<usize> {
        if from[key].is_null() { Ok(default) } else { self.size(from, key) }
    }

    /// Length of an edge that the processor's settings or the vision model's give.
    fn edge(&self, key: &str, part: &str) -> Option<usize> {
        let of = |from: &Json| from[key][part].as_u64().map(|size| size as usize);
        of(&self.processor).or_else(|| of(self.vision))
    }

    fn unsupported(&self, found: &str) -> Error {
        let (path, found) = (self.folder.path.clone(), found.to_owned());
        Error::Architecture { path, found, supported: SUPPORTED }
    }

    /// Three numbers of the picture processor.
    fn channels(&self, key: &str, default: [f32; 3]) -> [f32; 3] {
        let number = |channel: usize| self.processor[key][channel].as_f64().map(|number| number as f32);
        [0, 1, 2].map(|channel| number(channel).unwrap_or(default[channel]))
    }

    fn activation(&self, projector: Projector) -> Result<VisionActivation> {
        let key = if self.vision["hidden_act"].is_null() { "hidden_activation" } else { "hidden_act" };
        match (self.vision[key].as_str(), projector) {
            (None, Projector::Pixtral { .. }) | (Some("gelu"), _) => Ok(VisionActivation::Gelu),
            (None | Some("gelu_pytorch_tanh"), _) => Ok(VisionActivation::GeluTanh),
            (Some("silu"), _) => Ok(VisionActivation::Silu),
            (Some(other), _) => {
                let expected = "GELU or SiLU in the vision model".to_owned();
                Err(bad(&self.folder.path, expected, other.to_owned()))
            }
        }
    }

    /// Checks the base of the frequencies of two-dimensional RoPE.
    fn check_rotation(&self, projector: Projector) -> Result<()> {
        let Some(rotation) = projector.options().rotation else { return Ok(()) };
        let bases = [&self.vision["rope_theta"], &self.vision["rope_parameters"]["rope_theta"]];
        match bases.into_iter().filter_map(Json::as_f64).find(|&base| base as f32 != rotation.base) {
            None => Ok(()),
            Some(found) => {
                let expected = format!("{} for rope_theta of the vision model", rotation.base);
                Err(bad(&self.folder.path, expected, found.to_string()))
            }
        }
    }

    /// Settings that the families name alike; `layers` and `heads` are the keys of these numbers.
    fn common(&self, projector: Projector, layers: &str, heads: &str) -> Result<VisionConfig> {
        self.check_rotation(projector)?;
        Ok(VisionConfig {
            projector,
            width: self.size(self.vision, "hidden_size")?,
            intermediate: self.size(self.vision, "intermediate_size")?,
            layers: self.size(self.vision, layers)?,
            heads: self.size(self.vision, heads)?,
            activation: self.activation(projector)?,
            epsilon: self.vision["layer_norm_eps"].as_f64().unwrap_or(1e-6),
            patch: self.size(self.vision, "patch_size")?,
            grid: 0,
            merge: 1,
            output: self.size(self.folder.language(), "hidden_size")?,
            deepstack: Vec::new(),
            clamps: false,
            standardised: false,
            projector_biases: false,
            mean: self.channels("image_mean", [0.5; 3]),
            deviation: self.channels("image_std", [0.5; 3]),
        })
    }

    fn idefics3(&self) -> Result<VisionConfig> {
        let image = self.size(self.vision, "image_size")?;
        let tile = self.edge("max_image_size", "longest_edge").unwrap_or(image);
        let longest = self.edge("size", "longest_edge").unwrap_or(4 * tile);
        let projector = Projector::Idefics3 { tile, longest };
        let common = self.common(projector, "num_hidden_layers", "num_attention_heads")?;
        let grid = image.checked_div(common.patch).unwrap_or(0);
        Ok(VisionConfig { grid, merge: self.size(self.whole, "scale_factor")?, ..common })
    }

    fn qwen3vl(&self) -> Result<VisionConfig> {
        let merge = self.size(self.vision, "spatial_merge_size")?;
        let [least, most] = qwen_pixels(self.size(self.vision, "patch_size")?.saturating_mul(merge));
        let least = self.edge("size", "shortest_edge").unwrap_or(least);
        let most = self.edge("size", "longest_edge").unwrap_or(most);
        let stacked = self.vision["deepstack_visual_indexes"].as_array();
        let layer = |layer: &Json| layer.as_u64().map_or(usize::MAX, |layer| layer as usize);
        Ok(VisionConfig {
            grid: self.size(self.vision, "num_position_embeddings")?.isqrt(),
            merge,
            output: self.size(self.vision, "out_hidden_size")?,
            deepstack: stacked.map_or_else(Vec::new, |layers| layers.iter().map(layer).collect()),
            ..self.common(Projector::Qwen3Vl { least, most }, "depth", "num_heads")?
        })
    }

    fn gemma4(&self) -> Result<VisionConfig> {
        if !self.folder.language()["use_bidirectional_attention"].is_null() {
            return Err(self.unsupported(BIDIRECTIONAL));
        }
        let embeddings = self.size_or(&self.processor, "max_soft_tokens", GEMMA_DEFAULT)?;
        let projector = Projector::Gemma4 { embeddings };
        let common = self.common(projector, "num_hidden_layers", "num_attention_heads")?;
        for (key, expected) in
            [("num_key_value_heads", common.heads), ("head_dim", common.width / common.heads.max(1))]
        {
            let found = self.size_or(self.vision, key, expected)?;
            if found != expected {
                let expected = format!("{expected} for {key} of the vision model");
                return Err(bad(&self.folder.path, expected, found.to_string()));
            }
        }
        Ok(VisionConfig {
            epsilon: self.vision["rms_norm_eps"].as_f64().unwrap_or(1e-6),
            grid: self.size_or(self.vision, "position_embedding_size", 10 * 1024)?,
            merge: self.size_or(self.vision, "pooling_kernel_size", GEMMA_MERGE)?,
            clamps: self.vision["use_clipped_linears"] == true,
            standardised: self.vision["standardize"] == true,
            // Pixels are in 0 to 1; the model moves them into -1 to 1.
            mean: [0.5; 3],
            deviation: [0.5; 3],
            ..common
        })
    }

    fn pixtral(&self) -> Result<VisionConfig> {
        let path = &self.folder.path;
        if self.vision["model_type"] != "pixtral" {
            return Err(self.unsupported(&self.vision["model_type"].to_string()));
        }
        for (from, key, expected) in
            [(self.whole, "projector_hidden_act", "\"gelu\""), (self.whole, "vision_feature_layer", "-1")]
        {
            let found = from[key].to_string();
            if !["null", expected].contains(&found.as_str()) {
                return Err(bad(path, format!("{expected} for {key}"), found));
            }
        }
        let longest = self.edge("size", "longest_edge").unwrap_or(self.size(self.vision, "image_size")?);
        let epsilon = self.folder.language()["rms_norm_eps"].as_f64().unwrap_or(1e-5);
        let projector = Projector::Pixtral { longest, epsilon };
        Ok(VisionConfig {
            epsilon: 1e-5,
            merge: self.size_or(self.whole, "spatial_merge_size", 2)?,
            projector_biases: self.whole["multimodal_projector_bias"] == true,
            mean: self.channels("image_mean", [0.481_454_66, 0.457_827_5, 0.408_210_73]),
            deviation: self.channels("image_std", [0.268_629_54, 0.261_302_6, 0.275_777_1]),
            ..self.common(projector, "num_hidden_layers", "num_attention_heads")?
        })
    }
}
