//! Reads the recurrent layers from a config.json.

use serde_json::Value as Json;

use super::Keys;
use crate::error::Result;
use crate::model::config::{Heads, Recurrence, mixers};
use crate::model::family::Mixer;

impl Keys<'_> {
    /// The mixer of each layer, and the sizes of the recurrent layers.
    pub fn recurrence(&self, layers: usize, hidden: usize) -> Result<(Vec<Mixer>, Option<Recurrence>)> {
        let mixer = self.family.recurrent;
        if mixer == Mixer::Attention {
            return Ok((vec![mixer; layers], None));
        }
        let mixers = mixers(self.path, mixer, &self.recurrent(layers)?)?;
        if !mixers.contains(&mixer) {
            return Ok((mixers, None));
        }
        let recurrence = match mixer {
            Mixer::Delta => self.delta()?,
            Mixer::Mamba => self.mamba(hidden)?,
            _ => {
                self.refuse_set("conv_bias", "no biases in convolutions")?;
                Recurrence::of_channels(self.size("conv_L_cache")?, hidden)
            }
        };
        Ok((mixers, Some(recurrence.validated(self.path)?)))
    }

    /// Returns for each layer whether it is recurrent.
    fn recurrent(&self, layers: usize) -> Result<Vec<bool>> {
        if let Some(listed) = self.json["layer_types"].as_array() {
            if listed.len() != layers {
                let expected = format!("layer_types for each of {layers} layers");
                return Err(self.bad(&expected, listed.len().to_string()));
            }
            return Ok(listed.iter().map(is_recurrent).collect());
        }
        if let Some(listed) = self.json["full_attn_idxs"].as_array() {
            let has = |layer: usize| listed.iter().any(|index| index.as_u64() == Some(layer as u64));
            return Ok((0..layers).map(|layer| !has(layer)).collect());
        }
        let every = self.size_or("full_attention_interval", 1)?;
        Ok((1..=layers).map(|layer| !layer.is_multiple_of(every)).collect())
    }

    fn delta(&self) -> Result<Recurrence> {
        let heads = Heads {
            keys: self.size("linear_num_key_heads")?,
            values: self.size("linear_num_value_heads")?,
            key_size: self.size("linear_key_head_dim")?,
            value_size: self.size("linear_value_head_dim")?,
            grouped: true,
        };
        Ok(Recurrence::of_heads(Mixer::Delta, self.size("linear_conv_kernel_dim")?, heads))
    }

    fn mamba(&self, hidden: usize) -> Result<Recurrence> {
        self.refuse_set("mamba_proj_bias", "no biases in the matrices of Mamba layers")?;
        let values = self.size("mamba_n_heads")?;
        // The value may be "auto".
        let value_size = match &self.json["mamba_d_head"] {
            Json::Number(_) => self.size("mamba_d_head")?,
            _ => self.size("mamba_expand")? * hidden / values,
        };
        let keys = self.size("mamba_n_groups")?;
        let heads = Heads { keys, values, key_size: self.size("mamba_d_state")?, value_size, grouped: true };
        let mut recurrence = Recurrence::of_heads(Mixer::Mamba, self.size("mamba_d_conv")?, heads);
        recurrence.biased = self.json["mamba_conv_bias"] != false;
        recurrence.steps = self.steps()?;
        Ok(recurrence)
    }

    /// Limits of the time step. Python writes infinity, the usual upper limit, as a string or as an
    /// object.
    fn steps(&self) -> Result<[f32; 2]> {
        const KEY: &str = "time_step_limit";
        let Some(limits) = self.json[KEY].as_array() else { return Ok([0.0, f32::INFINITY]) };
        let number = |limit: &Json| match limit {
            Json::String(word) if ["inf", "Infinity"].contains(&word.as_str()) => Some(f32::INFINITY),
            Json::Object(word) if word["__float__"] == "Infinity" => Some(f32::INFINITY),
            Json::Null => Some(f32::INFINITY),
            limit => limit.as_f64().map(|limit| limit as f32),
        };
        let numbers: Option<Vec<f32>> = limits.iter().map(number).collect();
        numbers
            .and_then(|numbers| <[f32; 2]>::try_from(numbers).ok())
            .ok_or_else(|| self.bad(&format!("two numbers for {KEY}"), self.json[KEY].to_string()))
    }

    /// Feed-forward width of LFM2, adjusted from the value in the file as in transformers.
    pub fn adjusted_intermediate(&self) -> Result<usize> {
        let found = match &self.json["block_ff_dim"] {
            Json::Null => self.size("intermediate_size")?,
            _ => self.size("block_ff_dim")?,
        };
        if self.json["block_auto_adjust_ff_dim"].as_bool() == Some(false) {
            return Ok(found);
        }
        let scale = self.stated("block_ffn_dim_multiplier", 1.0)?;
        let scaled = ((2 * found / 3) as f64 * scale) as usize;
        let step = self.size_or("block_multiple_of", 256)?;
        super::super::size(self.path, "intermediate_size", scaled.next_multiple_of(step) as u64)
    }
}

pub(super) fn is_recurrent(kind: &Json) -> bool {
    matches!(kind.as_str(), Some("conv" | "linear_attention" | "mamba"))
}
