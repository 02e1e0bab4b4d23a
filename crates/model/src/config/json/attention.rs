//! Attention of a config.json: windows, head sizes and layers without positions.

use serde_json::{Value as Json, json};

use super::layers::is_recurrent;
use super::{ConfigJson, Settings};
use crate::config::size;
use crate::error::Result;
use crate::family::{HeadFamily, NoRope, Windowed};

/// Default of `max_window_layers` in Qwen's configurations: leading layers without a window.
const WINDOWLESS_LAYERS: u64 = 28;

/// Key of the layers with a window, and its usual name in config.json.
const PATTERN: &str = "attention.sliding_window_pattern";
const LAYER_TYPES: &str = "layer_types";

impl ConfigJson<'_> {
    /// Adds the layers with a window, those without positions, and head sizes that depend on them.
    pub fn rename_attention(&self, settings: &mut Settings) -> Result<()> {
        let windowed = self.windowed(self.layers()?)?;
        settings.set(PATTERN, LAYER_TYPES, json!(windowed));
        if self.windows_all() && !self.json["dflash_config"]["swa_window_size"].is_null() {
            let found = self.json["dflash_config"]["swa_window_size"].clone();
            settings.set("attention.sliding_window", "swa_window_size", found);
        }
        self.rename_rotated(settings, windowed.len())?;
        if self.family.latent {
            self.rename_latent(settings)?;
        }
        if self.family.has_global_heads() {
            self.rename_global_heads(settings, &windowed)?;
        }
        Ok(())
    }

    fn rename_latent(&self, settings: &mut Settings) -> Result<()> {
        let (plain, rotated) = (self.size("qk_nope_head_dim")?, self.size("qk_rope_head_dim")?);
        for name in ["kv_lora_rank", "v_head_dim"] {
            self.size(name)?;
        }
        settings.set("attention.key_length_mla", "qk_nope_head_dim", json!(plain + rotated));
        settings.set("rope.dimension_count", "qk_rope_head_dim", json!(rotated));
        Ok(())
    }

    /// Adds the head sizes and numbers of key heads of Gemma 4, whose layers with full attention
    /// have others than those with a window. The newest files list deviating sizes per layer.
    fn rename_global_heads(&self, settings: &mut Settings, windowed: &[bool]) -> Result<()> {
        let first = windowed.iter().position(|windowed| !windowed).unwrap_or_default();
        let own = &self.json["per_layer_config"][first.to_string()];
        let number = |key: &'static str, global: &'static str, default: usize| match own[key].as_u64() {
            Some(found) => size(self.path, key, found),
            None => self.size_or(global, default),
        };
        let heads = self.size("num_attention_heads")?;
        let count = self.size_or("num_key_value_heads", heads)?;
        let are_values = self.json["attention_k_eq_v"] == true;
        let global = if are_values { "num_global_key_value_heads" } else { "num_key_value_heads" };
        let global_count = number("num_key_value_heads", global, count)?;
        let counts: Vec<usize> =
            windowed.iter().map(|&windowed| if windowed { count } else { global_count }).collect();
        settings.set("attention.head_count_kv", "num_key_value_heads", json!(counts));
        let size = self.size_or("head_dim", self.size("hidden_size")? / heads)?;
        settings.set("attention.key_length_swa", "head_dim", json!(size));
        let global_size = number("head_dim", "global_head_dim", 0)?;
        settings.set("attention.key_length", "global_head_dim", json!(global_size));
        Ok(())
    }

    /// Returns whether a block head declares a window for all of its layers.
    fn windows_all(&self) -> bool {
        self.family.head == Some(HeadFamily::Block) && self.json["dflash_config"]["use_swa"] == true
    }

    /// Returns for each layer whether it has the sliding window, if there is one.
    fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        if self.windows_all() { Ok(vec![true; layers]) } else { self.sliding(layers) }
    }

    /// Returns for each layer whether it is of the sliding-window kind.
    pub fn sliding(&self, layers: usize) -> Result<Vec<bool>> {
        if let Some(listed) = self.json[LAYER_TYPES].as_array() {
            let recurrent = |kind: &Json| self.family.recurrent.is_some() && is_recurrent(kind);
            let listed: Option<Vec<bool>> = listed
                .iter()
                .map(|kind| if recurrent(kind) { Some(false) } else { is_windowed(kind) })
                .collect();
            return listed.filter(|listed| listed.len() == layers).ok_or_else(|| {
                let expected = "layer_types for every layer, full_attention or sliding_attention,";
                self.bad(expected, "others".into())
            });
        }
        Ok(match self.family.windowed {
            Windowed::All => vec![true; layers],
            Windowed::Listed => vec![false; layers],
            Windowed::InClass(class) => vec![self.is_class(class); layers],
            Windowed::Last => {
                let used = self.json["use_sliding_window"].as_bool().unwrap_or(false);
                let first = self.json["max_window_layers"].as_u64().unwrap_or(WINDOWLESS_LAYERS);
                (0..layers as u64).map(|layer| used && layer >= first).collect()
            }
            Windowed::AllButEvery(every) => {
                let every = self.size_or("sliding_window_pattern", every)?;
                (1..=layers).map(|layer| !layer.is_multiple_of(every)).collect()
            }
        })
    }

    /// Adds the layers whose queries and keys are rotated, if the file lists them.
    fn rename_rotated(&self, settings: &mut Settings, layers: usize) -> Result<()> {
        // Despite the name, 1 in `no_rope_layers` marks a layer with rotary positions.
        let name = match self.family.no_rope {
            NoRope::None => return Ok(()),
            NoRope::Every(_) => "no_rope_layers",
            NoRope::Windowless => "layer_rope_theta",
            NoRope::Stated(class) => {
                const NAME: &str = "position_embedding_type";
                let rotated = !self.is_class(class) || self.json[NAME].as_str() == Some("rope");
                settings.set("rope.scaling.finetuned", NAME, json!(rotated));
                return Ok(());
            }
        };
        let Some(listed) = self.json[name].as_array() else { return Ok(()) };
        let rotated: Option<Vec<bool>> = listed.iter().map(|layer| Some(layer.as_f64()? != 0.0)).collect();
        let Some(rotated) = rotated.filter(|rotated| rotated.len() >= layers) else {
            return Err(self.bad(&format!("a number for every layer in {name}"), "others".into()));
        };
        settings.set("rope.layers", name, json!(rotated[..layers]));
        Ok(())
    }
}

fn is_windowed(kind: &Json) -> Option<bool> {
    match kind.as_str() {
        Some("full_attention" | "attention") => Some(false),
        Some("sliding_attention") => Some(true),
        _ => None,
    }
}
