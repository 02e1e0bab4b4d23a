//! A model's numbers from the config.json of a Hugging Face folder.

use std::path::Path;

use serde_json::Value as Json;

use super::super::family::{Activation, Family, Windowed};
use super::rotary::{Llama3Scaling, LongRope, plain_frequencies};
use super::{
    ModelConfig, Reach, Rotary, RotaryLayout, bad, bad_scaling, divide, query_scale, reaches, rotary_size,
    size, window,
};
use crate::error::{Error, Result};

impl ModelConfig {
    /// From the part of a config.json that describes a `family`'s model of language. `name` is what to
    /// call it; `tied_embeddings` is whether there is no output matrix.
    ///
    /// # Errors
    /// `Error::BadModel` for missing or unusable numbers.
    pub(in crate::model) fn from_json(
        path: &Path,
        json: &Json,
        family: &'static Family,
        name: Option<String>,
        tied_embeddings: bool,
    ) -> Result<Self> {
        let keys = Keys { path, json, family };
        keys.refuse_what_is_not_run()?;
        let hidden = keys.size("hidden_size")?;
        let heads = keys.size("num_attention_heads")?;
        let head_size = keys.size_or("head_dim", hidden / heads)?;
        let layers = super::layers(path, keys.size("num_hidden_layers")?)?;
        let context = keys.size("max_position_embeddings")?;
        let (reaches, reach_of) = keys.reaches(layers, head_size, context)?;
        let config = Self {
            family,
            name,
            vocabulary: keys.size("vocab_size")?,
            hidden,
            intermediate: keys.size("intermediate_size")?,
            layers,
            heads,
            kv_heads: keys.size_or("num_key_value_heads", heads)?,
            head_size,
            context,
            norm_epsilon: keys.number("rms_norm_eps").unwrap_or(1e-6),
            query_scale: query_scale(keys.number("query_pre_attn_scalar").unwrap_or(head_size as f64)),
            reaches,
            reach_of,
            tied_embeddings,
        };
        config.validated(path)
    }
}

/// Reads one family's keys.
struct Keys<'a> {
    path: &'a Path,
    json: &'a Json,
    family: &'static Family,
}

impl Keys<'_> {
    fn bad(&self, expected: &str, found: String) -> Error {
        bad(self.path, format!("{expected} in config.json"), found)
    }

    /// A number that the file or the family gives.
    fn number(&self, key: &str) -> Option<f64> {
        self.json[key].as_f64().or_else(|| self.family.default(key))
    }

    fn size(&self, key: &str) -> Result<usize> {
        self.size_or(key, 0)
    }

    /// The value of a key that may be missing, null being as good as missing; 0 as default means that it
    /// may not.
    fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        let found = match &self.json[key] {
            Json::Null => self.family.default(key).map_or(default as u64, |value| value as u64),
            value => value.as_u64().ok_or_else(|| self.bad(&format!("a size {key}"), value.to_string()))?,
        };
        size(self.path, key, found)
    }

    fn refuse_what_is_not_run(&self) -> Result<()> {
        if !self.family.biases {
            self.refuse_set("attention_bias", "no biases in attention")?;
        }
        self.refuse_set("mlp_bias", "no biases in the feed-forward network")?;
        self.refuse_set("attn_logit_softcapping", "attention that is not capped")?;
        self.refuse_set("final_logit_softcapping", "logits that are not capped")?;
        self.refuse_set("use_bidirectional_attention", "attention to what came before alone")?;
        let (expected, others) = match self.family.activation {
            Activation::Silu => ("silu", ["silu", "swish"]),
            Activation::Gelu => ("gelu_pytorch_tanh", ["gelu_pytorch_tanh", "gelu_new"]),
        };
        for key in ["hidden_act", "hidden_activation"] {
            if let Some(found) = self.json[key].as_str().filter(|found| !others.contains(found)) {
                return Err(self.bad(&format!("the activation {expected}"), format!("{key} {found}")));
            }
        }
        Ok(())
    }

    /// Refuses a key that is neither missing, null nor false.
    fn refuse_set(&self, key: &str, expected: &str) -> Result<()> {
        match &self.json[key] {
            Json::Null | Json::Bool(false) => Ok(()),
            value => Err(self.bad(expected, format!("{key} = {value}"))),
        }
    }

    fn reaches(&self, layers: usize, head_size: usize, context: usize) -> Result<(Vec<Reach>, Vec<usize>)> {
        let rope = self.rope();
        let part = rope["partial_rotary_factor"].as_f64().or_else(|| self.number("partial_rotary_factor"));
        let turned = (head_size as f64 * part.unwrap_or(1.0)) as usize;
        let turned = rotary_size(self.path, turned, head_size)?;
        // The newest files describe the rotation of each kind of layer, those before them a base for
        // layers with a window, the others one rotation for all.
        let nested = rope["full_attention"].is_object();
        let global = self.rotary(if nested { &rope["full_attention"] } else { rope }, turned, context)?;
        let local = match self.number("rope_local_base_freq") {
            _ if nested => self.rotary(&rope["sliding_attention"], turned, context)?,
            Some(base) => Rotary::new(RotaryLayout::Halves, plain_frequencies(base, turned), 1.0),
            None => global.clone(),
        };
        let windowed = self.windowed(layers)?;
        let found = match &self.json["sliding_window"] {
            Json::Null => self.family.default("sliding_window").unwrap_or(0.0) as usize,
            value => {
                value.as_u64().ok_or_else(|| self.bad("a size sliding_window", value.to_string()))? as usize
            }
        };
        let window = window(found, context);
        Ok(reaches(&windowed, Reach { window: None, rotary: global }, Reach { window, rotary: local }))
    }

    /// Of every layer whether it has the window, if there is one.
    fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        if let Some(listed) = self.json["layer_types"].as_array() {
            let listed: Option<Vec<bool>> = listed.iter().map(is_windowed).collect();
            return listed.filter(|listed| listed.len() == layers).ok_or_else(|| {
                let expected = "layer_types of every layer, full_attention or sliding_attention,";
                self.bad(expected, "others".into())
            });
        }
        Ok(match self.family.windowed {
            Windowed::All => vec![true; layers],
            Windowed::Last => {
                let used = self.json["use_sliding_window"].as_bool().unwrap_or(false);
                let first = self.json["max_window_layers"].as_u64().unwrap_or(0);
                (0..layers as u64).map(|layer| used && layer >= first).collect()
            }
            Windowed::AllButEvery(every) => {
                let every = self.size_or("sliding_window_pattern", every)?;
                (1..=layers).map(|layer| !layer.is_multiple_of(every)).collect()
            }
        })
    }

    /// Newer files keep everything rotary in `rope_parameters`, older ones the scaling in `rope_scaling`
    /// and the base at the top.
    fn rope(&self) -> &Json {
        match &self.json["rope_parameters"] {
            Json::Null => &self.json["rope_scaling"],
            parameters => parameters,
        }
    }

    /// The rotation that `rope` describes, of `turned` components of a head.
    fn rotary(&self, rope: &Json, turned: usize, context: usize) -> Result<Rotary> {
        let base = rope["rope_theta"].as_f64().or_else(|| self.number("rope_theta"));
        let mut frequencies = plain_frequencies(base.unwrap_or(10_000.0), turned);
        let mut scale = 1.0;
        let kind = rope["rope_type"].as_str().or_else(|| rope["type"].as_str());
        match kind.unwrap_or("default") {
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
                    original_context: self.rope_number(rope, "original_max_position_embeddings")?,
                };
                frequencies.iter_mut().for_each(|f| *f = scaling.apply(*f));
            }
            // The name of LongRoPE in the first files.
            "longrope" | "su" => scale = self.stretch(rope, context, &mut frequencies)?,
            other => return Err(bad_scaling(self.path, other)),
        }
        Ok(Rotary::new(RotaryLayout::Halves, frequencies, scale))
    }

    /// Stretches the frequencies by LongRoPE; returns what cosines and sines are multiplied with.
    fn stretch(&self, rope: &Json, context: usize, frequencies: &mut [f64]) -> Result<f64> {
        const ORIGINAL: &str = "original_max_position_embeddings";
        let original = match &self.json[ORIGINAL] {
            Json::Null => rope[ORIGINAL].as_u64().unwrap_or(0),
            value => value.as_u64().unwrap_or(0),
        };
        let rope_of = LongRope { context, original_context: size(self.path, ORIGINAL, original)? };
        let name = if rope_of.is_long() { "long_factor" } else { "short_factor" };
        let factors: Option<Vec<f64>> =
            rope[name].as_array().map_or(Some(Vec::new()), |list| list.iter().map(Json::as_f64).collect());
        divide(self.path, name, frequencies, &factors.unwrap_or_default())?;
        Ok(rope["attention_factor"].as_f64().unwrap_or(rope_of.attention_factor()))
    }

    fn rope_number(&self, rope: &Json, key: &str) -> Result<f64> {
        rope[key]
            .as_f64()
            .ok_or_else(|| self.bad(&format!("a number {key} for its rotary scaling"), rope[key].to_string()))
    }
}

fn is_windowed(kind: &Json) -> Option<bool> {
    match kind.as_str() {
        Some("full_attention") => Some(false),
        Some("sliding_attention") => Some(true),
        _ => None,
    }
}
