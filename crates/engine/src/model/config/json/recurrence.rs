//! What a config.json says of layers that keep a state.

use serde_json::Value as Json;

use super::Keys;
use crate::error::Result;
use crate::model::config::{Heads, Recurrence, mixers};
use crate::model::family::Mixer;

impl Keys<'_> {
    /// The mixer of every layer, and the sizes of those without attention.
    pub fn recurrence(&self, layers: usize, hidden: usize) -> Result<(Vec<Mixer>, Option<Recurrence>)> {
        let mixer = self.family.recurrent;
        if mixer == Mixer::Attention {
            return Ok((vec![mixer; layers], None));
        }
        let mixers = mixers(self.path, mixer, &self.recurrent(layers)?)?;
        let recurrence = match mixer {
            Mixer::Delta => self.delta()?,
            _ => {
                self.refuse_set("conv_bias", "no biases in convolutions")?;
                let taps = self.size("conv_L_cache")?;
                Recurrence { mixer, taps, channels: hidden, heads: Heads::default() }
            }
        };
        Ok((mixers, Some(recurrence.validated(self.path)?)))
    }

    /// Of every layer whether it has no attention.
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
        let channels = 2 * heads.key_width() + heads.value_width();
        Ok(Recurrence { mixer: Mixer::Delta, taps: self.size("linear_conv_kernel_dim")?, channels, heads })
    }

    /// The width of LFM2's feed-forward networks follows from what the file calls so.
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
