//! Layers of a config.json: their kinds, recurrent heads and feed-forward widths.

use serde_json::{Value as Json, json};

use super::{ConfigJson, Settings};
use crate::config::{layers, size};
use crate::error::Result;
use crate::family::RecurrentKind;

impl ConfigJson<'_> {
    pub fn layers(&self) -> Result<usize> {
        layers(self.path, self.size("num_hidden_layers")?)
    }

    /// Adds the feed-forward width of layers and the settings of recurrent layers.
    pub fn rename_layers(&self, settings: &mut Settings) -> Result<()> {
        self.rename_feed_forward(settings)?;
        match self.family.recurrent {
            None => return Ok(()),
            Some(RecurrentKind::ShortConv) => self.refuse_set("conv_bias", "no biases in convolutions")?,
            Some(RecurrentKind::Delta) => {
                let (values, size) =
                    (self.size("linear_num_value_heads")?, self.size("linear_value_head_dim")?);
                settings.set("ssm.inner_size", "linear_value_head_dim", json!(values * size));
            }
            Some(RecurrentKind::Mamba) => self.rename_mamba(settings)?,
        }
        self.rename_recurrent(settings)
    }

    /// Adds for each layer whether it is recurrent, if the file lists them.
    fn rename_recurrent(&self, settings: &mut Settings) -> Result<()> {
        if let Some(listed) = self.json["layer_types"].as_array() {
            let recurrent: Vec<bool> = listed.iter().map(is_recurrent).collect();
            settings.set("attention.recurrent_layers", "layer_types", json!(recurrent));
        } else if let Some(listed) = self.json["full_attn_idxs"].as_array() {
            let attends = |layer: usize| listed.iter().any(|index| index.as_u64() == Some(layer as u64));
            let recurrent: Vec<bool> = (0..self.layers()?).map(|layer| !attends(layer)).collect();
            settings.set("attention.recurrent_layers", "full_attn_idxs", json!(recurrent));
        }
        Ok(())
    }

    fn rename_mamba(&self, settings: &mut Settings) -> Result<()> {
        self.refuse_set("mamba_proj_bias", "no biases in the matrices of Mamba layers")?;
        // The head size may be "auto".
        let inner = match &self.json["mamba_d_head"] {
            Json::Number(_) => self.size("mamba_d_head")? * self.size("mamba_n_heads")?,
            _ => self.size("mamba_expand")? * self.size("hidden_size")?,
        };
        settings.set("ssm.inner_size", "mamba_d_head", json!(inner));
        settings.set("ssm.conv_bias", "mamba_conv_bias", json!(self.json["mamba_conv_bias"] != false));
        self.rename_time_steps(settings)
    }

    /// Adds the limits of the time step. Python writes infinity, the usual upper limit, as a string
    /// or as an object.
    fn rename_time_steps(&self, settings: &mut Settings) -> Result<()> {
        const NAME: &str = "time_step_limit";
        let Some(limits) = self.json[NAME].as_array() else { return Ok(()) };
        let is_infinite = |limit: &Json| match limit {
            Json::String(word) => ["inf", "Infinity"].contains(&word.as_str()),
            Json::Object(word) => word["__float__"] == "Infinity",
            limit => limit.is_null(),
        };
        let [least, most] = limits.as_slice() else {
            return Err(self.bad(&format!("two numbers for {NAME}"), self.json[NAME].to_string()));
        };
        settings.set("ssm.time_step_min", NAME, least.clone());
        if !is_infinite(most) {
            settings.set("ssm.time_step_max", NAME, most.clone());
        }
        Ok(())
    }

    /// Adds feed-forward widths that differ from `intermediate_size`: of LFM2, and of Gemma 4's
    /// layers that share keys and values, which may be twice as wide.
    fn rename_feed_forward(&self, settings: &mut Settings) -> Result<()> {
        const WIDTH: &str = "feed_forward_length";
        let family = self.family;
        if family.recurrent == Some(RecurrentKind::ShortConv) && family.experts.is_none() {
            settings.set(WIDTH, "intermediate_size", json!(self.adjusted_intermediate()?));
        }
        if self.json["use_double_wide_mlp"] == true {
            let layers = self.layers()?;
            let shared = self.number_or("num_kv_shared_layers", 0.0)?;
            let (usual, caching) = (self.size("intermediate_size")?, layers.saturating_sub(shared as usize));
            let twice = size(self.path, "intermediate_size", 2 * usual as u64)?;
            let widths: Vec<usize> =
                (0..layers).map(|layer| if layer < caching { usual } else { twice }).collect();
            settings.set(WIDTH, "intermediate_size", json!(widths));
        }
        Ok(())
    }

    /// Feed-forward width of LFM2, adjusted from the value in the file as in transformers.
    fn adjusted_intermediate(&self) -> Result<usize> {
        let found = match &self.json["block_ff_dim"] {
            Json::Null => self.size("intermediate_size")?,
            _ => self.size("block_ff_dim")?,
        };
        if self.json["block_auto_adjust_ff_dim"].as_bool() == Some(false) {
            return Ok(found);
        }
        let scale = self.number_or("block_ffn_dim_multiplier", 1.0)?;
        let scaled = ((2 * found / 3) as f64 * scale) as usize;
        let step = self.size_or("block_multiple_of", 256)?;
        size(self.path, "intermediate_size", scaled.next_multiple_of(step) as u64)
    }
}

/// Returns whether `layer_types` names a recurrent layer so.
pub fn is_recurrent(kind: &Json) -> bool {
    matches!(kind.as_str(), Some("conv" | "linear_attention" | "mamba"))
}
