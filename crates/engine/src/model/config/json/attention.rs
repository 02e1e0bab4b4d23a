//! Reads attention settings from a config.json: windows, key-value heads and rotary positions.

use serde_json::Value as Json;

use super::Keys;
use super::recurrence::is_recurrent;
use crate::error::Result;
use crate::model::config::rotary::{AttnTemperature, Llama3Scaling, LongRope, Yarn, plain_frequencies};
use crate::model::config::{
    AttentionKind, KeyHeads, Latent, Rotary, attention_kinds, bad_scaling, check_factors, kind_of, positive,
    rotary_size, size, window,
};
use crate::model::family::{Mixer, NoRope, RotaryLayout, Windowed};

/// Default of `max_window_layers` in Qwen's configurations: leading layers without a window.
const WINDOWLESS_LAYERS: u64 = 28;

/// Divisor in GGUF files for frequencies of components that are not rotated.
const UNROTATED_DIVISOR: f64 = 1e30;

const ORIGINAL: &str = "original_max_position_embeddings";

impl Keys<'_> {
    pub fn attention_kinds(
        &self,
        layers: usize,
        (heads, head_size, latent): (usize, usize, Option<Latent>),
        context: usize,
    ) -> Result<(Vec<AttentionKind>, Vec<usize>)> {
        let mut windowed = self.windowed(layers)?;
        let keys = match latent {
            Some(latent) => latent.keys(),
            None => KeyHeads {
                count: self.size_or("num_key_value_heads", heads)?,
                size: head_size,
                are_values: false,
                hold_values: None,
            },
        };
        let global_keys = self.global_keys(keys, &windowed)?;
        let rope = self.rope();
        let part = rope["partial_rotary_factor"].as_f64().or_else(|| self.number("partial_rotary_factor"));
        let rotated = |head_size: usize| {
            let rotated = (head_size as f64 * part.unwrap_or(1.0)) as usize;
            rotary_size(self.path, rotated, head_size)
        };
        let (global_rotated, rotated) = match latent {
            Some(latent) => (latent.turned, latent.turned),
            None => (rotated(global_keys.size)?, rotated(head_size)?),
        };
        // The newest files describe rotary positions per kind of layer, older ones give a base for
        // layers with a window, the others one description for all layers.
        let nested = rope["full_attention"].is_object();
        let global = if nested { &rope["full_attention"] } else { rope };
        let local = if nested { &rope["sliding_attention"] } else { rope };
        let global = self.rotary(global, global_rotated, context)?;
        let local = match self.number("rope_local_base_freq") {
            _ if nested => self.rotary(local, rotated, context)?,
            Some(base) => Rotary::new(self.layout(), &plain_frequencies(base, rotated), 1.0),
            None if self.family.plain_windows => {
                Rotary::new(self.layout(), &plain_frequencies(self.base(rope), rotated), 1.0)
            }
            None => global.clone(),
        };
        let all = self.json["dflash_config"].get("swa_window_size").filter(|_| self.windows_all());
        let found = match all.unwrap_or(&self.json["sliding_window"]) {
            Json::Null => self.family.default("sliding_window").unwrap_or(0.0) as usize,
            value => value
                .as_u64()
                .ok_or_else(|| self.bad("a whole number for sliding_window", value.to_string()))?
                as usize,
        };
        let window = window(found, context);
        if self.family.plain_windows && found == 0 {
            windowed.fill(false);
        }
        let rotated = self.rotated_layers(&windowed)?;
        let global = AttentionKind { window: None, rotary: global, keys: global_keys };
        let local = AttentionKind { window, rotary: local, keys };
        Ok(attention_kinds(&windowed, &rotated, |windowed, rotated| {
            kind_of((windowed, rotated), &global, &local)
        }))
    }

    /// Key-value heads of layers with full attention; layers with a window have `keys`.
    fn global_keys(&self, keys: KeyHeads, windowed: &[bool]) -> Result<KeyHeads> {
        let Some(usual) = self.family.default("global_head_dim") else { return Ok(keys) };
        // The newest files list deviating sizes per layer.
        let first = windowed.iter().position(|windowed| !windowed).unwrap_or_default();
        let own = &self.json["per_layer_config"][first.to_string()];
        let number = |key: &str, global: &str, default: usize| match own[key].as_u64() {
            Some(found) => size(self.path, key, found),
            None => self.size_or(global, default),
        };
        let are_values = self.json["attention_k_eq_v"] == true;
        let global_count = if are_values { "num_global_key_value_heads" } else { "num_key_value_heads" };
        Ok(KeyHeads {
            count: number("num_key_value_heads", global_count, keys.count)?,
            size: number("head_dim", "global_head_dim", usual as usize)?,
            are_values,
            hold_values: None,
        })
    }

    /// Returns whether a block head declares a window for all of its layers.
    fn windows_all(&self) -> bool {
        self.family.drafts_blocks && self.json["dflash_config"]["use_swa"] == true
    }

    /// Returns for each layer whether it has the sliding window, if there is one.
    fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        if self.windows_all() { Ok(vec![true; layers]) } else { self.sliding(layers) }
    }

    /// Returns for each layer whether it is of the sliding-window kind.
    pub fn sliding(&self, layers: usize) -> Result<Vec<bool>> {
        if let Some(listed) = self.json["layer_types"].as_array() {
            let recurrent = |kind: &Json| self.family.recurrent != Mixer::Attention && is_recurrent(kind);
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
            Windowed::InClass(class) => vec![self.json["architectures"][0] == class; layers],
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

    /// Returns for each layer whether its queries and keys are rotated.
    fn rotated_layers(&self, windowed: &[bool]) -> Result<Vec<bool>> {
        let layers = windowed.len();
        let listed = |key: &str| {
            let Some(listed) = self.json[key].as_array() else { return Ok(None) };
            let rotated: Option<Vec<bool>> =
                listed.iter().map(|layer| Some(layer.as_f64()? != 0.0)).collect();
            match rotated.filter(|rotated| rotated.len() >= layers) {
                Some(rotated) => Ok(Some(rotated[..layers].to_vec())),
                None => Err(self.bad(&format!("a number for every layer in {key}"), "others".into())),
            }
        };
        Ok(match self.family.no_rope {
            NoRope::None => vec![true; layers],
            NoRope::Every(every) => match listed("no_rope_layers")? {
                // Despite the name, 1 marks a layer with rotary positions.
                Some(rotated) => rotated,
                None => {
                    let every = self.size_or("no_rope_layer_interval", every)?;
                    (1..=layers).map(|layer| !layer.is_multiple_of(every)).collect()
                }
            },
            NoRope::Windowless => listed("layer_rope_theta")?.unwrap_or_else(|| windowed.to_vec()),
            NoRope::Stated(class) => {
                let stated = self.json["position_embedding_type"].as_str();
                vec![self.json["architectures"][0] != class || stated == Some("rope"); layers]
            }
        })
    }

    /// Returns the rotary settings: `rope_parameters` in newer files, otherwise `rope_scaling`.
    pub fn rope(&self) -> &Json {
        match &self.json["rope_parameters"] {
            Json::Null => &self.json["rope_scaling"],
            parameters => parameters,
        }
    }

    /// Component pairing of rotated queries and keys; interleaved by default in latent attention.
    fn layout(&self) -> RotaryLayout {
        match self.family.latent && self.json["rope_interleave"] != false {
            true => RotaryLayout::Interleaved,
            false => RotaryLayout::Halves,
        }
    }

    fn base(&self, rope: &Json) -> f64 {
        rope["rope_theta"].as_f64().or_else(|| self.number("rope_theta")).unwrap_or(10_000.0)
    }

    /// Builds the rotary embedding that `rope` describes for `rotated` components of a head.
    fn rotary(&self, rope: &Json, rotated: usize, context: usize) -> Result<Rotary> {
        let base = self.base(rope);
        let mut frequencies = plain_frequencies(base, rotated);
        let mut scale = 1.0;
        let kind = rope["rope_type"].as_str().or_else(|| rope["type"].as_str()).unwrap_or("default");
        match kind {
            "default" => {}
            "linear" => {
                let factor = self.rope_number(rope, "factor")?;
                frequencies.iter_mut().for_each(|f| *f /= factor);
            }
            "llama3" => {
                let scaling = Llama3Scaling {
                    factor: self.rope_number(rope, "factor")?,
                    low_frequency_factor: self.rope_number(rope, "low_freq_factor")?,
                    high_frequency_factor: self.rope_number(rope, "high_freq_factor")?,
                    original_context: self.rope_number(rope, ORIGINAL)?,
                };
                frequencies.iter_mut().for_each(|f| *f = scaling.apply(*f));
            }
            // Early files call LongRoPE `su`, or `yarn` with a list of factors.
            "longrope" | "su" => return self.long_rope(rope, context, &frequencies),
            "yarn" if !rope["long_factor"].is_null() => return self.long_rope(rope, context, &frequencies),
            "proportional" => {
                let part = rope["partial_rotary_factor"].as_f64().unwrap_or(1.0).clamp(0.0, 1.0);
                let rotated = (part * frequencies.len() as f64) as usize;
                frequencies[rotated..].iter_mut().for_each(|f| *f /= UNROTATED_DIVISOR);
            }
            "yarn" => scale = self.yarn(rope, base, &mut frequencies)?,
            other => return Err(bad_scaling(self.path, other)),
        }
        let attn_temperature = self.attn_temperature(rope)?;
        Ok(Rotary { attn_temperature, ..Rotary::new(self.layout(), &frequencies, scale) })
    }

    /// Scales the frequencies by YaRN; returns the factor of cosines and sines.
    fn yarn(&self, rope: &Json, base: f64, frequencies: &mut [f64]) -> Result<f64> {
        let given = |key: &str| rope[key].as_f64().filter(|&number| number != 0.0);
        let yarn = Yarn {
            factor: positive(self.path, "factor", self.rope_number(rope, "factor")?)?,
            original_context: positive(self.path, ORIGINAL, self.rope_number(rope, ORIGINAL)?)?,
            beta_fast: positive(self.path, "beta_fast", given("beta_fast").unwrap_or(32.0))?,
            beta_slow: positive(self.path, "beta_slow", given("beta_slow").unwrap_or(1.0))?,
            truncated: rope["truncate"].as_bool().unwrap_or(self.family.default("truncate") != Some(0.0)),
        };
        yarn.apply(base, frequencies);
        let magnitude = match (given("mscale"), given("mscale_all_dim")) {
            (Some(one), Some(all)) => yarn.magnitude(one) / yarn.magnitude(all),
            _ => yarn.magnitude(1.0),
        };
        Ok(rope["attention_factor"].as_f64().unwrap_or(magnitude))
    }

    /// Factor by which queries grow with the position, if any.
    fn attn_temperature(&self, rope: &Json) -> Result<Option<AttnTemperature>> {
        let Some(beta) = rope["llama_4_scaling_beta"].as_f64().filter(|&beta| beta != 0.0) else {
            return Ok(None);
        };
        let beta = positive(self.path, "llama_4_scaling_beta", beta)? as f32;
        let period = size(self.path, ORIGINAL, rope[ORIGINAL].as_u64().unwrap_or(0))?;
        Ok(Some(AttnTemperature { beta, period }))
    }

    fn long_rope(&self, rope: &Json, context: usize, frequencies: &[f64]) -> Result<Rotary> {
        let original = match &self.json[ORIGINAL] {
            Json::Null => rope[ORIGINAL].as_u64().unwrap_or(0),
            value => value.as_u64().unwrap_or(0),
        };
        let original_context = size(self.path, ORIGINAL, original)?;
        let factors = |name: &str| -> Result<Vec<f64>> {
            let listed = rope[name].as_array().map_or(&[][..], Vec::as_slice);
            let factors: Option<Vec<f64>> = listed.iter().map(Json::as_f64).collect();
            check_factors(self.path, name, frequencies.len(), factors.unwrap_or_default())
        };
        let (short, long) = (factors("short_factor")?, factors("long_factor")?);
        let rope_of = LongRope { context, original_context, short: &short, long: &long };
        Ok(rope_of.rotary(self.layout(), frequencies, rope["attention_factor"].as_f64()))
    }

    fn rope_number(&self, rope: &Json, key: &str) -> Result<f64> {
        rope[key].as_f64().ok_or_else(|| {
            self.bad(&format!("a number for {key} in the rotary scaling"), rope[key].to_string())
        })
    }
}

fn is_windowed(kind: &Json) -> Option<bool> {
    match kind.as_str() {
        Some("full_attention" | "attention") => Some(false),
        Some("sliding_attention") => Some(true),
        _ => None,
    }
}
