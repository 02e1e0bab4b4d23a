//! The numbers that describe a model, read from a GGUF header or a config.json, and the one table of
//! architectures Foretoken runs. Refuses what it would compute wrongly; touches no weights.

use std::path::Path;

use serde_json::Value as Json;

use super::gguf::Header;
use crate::error::{Error, Result};

/// An architecture under the names the two formats give it.
struct Family {
    /// `general.architecture` in GGUF; also Foretoken's own name for it.
    name: &'static str,
    /// `architectures` in config.json.
    classes: &'static [&'static str],
}

const FAMILIES: &[Family] = &[Family { name: "llama", classes: &["LlamaForCausalLM", "MistralForCausalLM"] }];

/// The table above, for messages.
const SUPPORTED: &str = "llama (LlamaForCausalLM, MistralForCausalLM)";

/// No size in a real model comes near; keeps a hostile header from asking for absurd allocations.
const LARGEST_SIZE: u64 = 1 << 24;

/// A Llama-like model: attention with rotary positions and grouped keys and values, RMS norms, a
/// gated feed-forward network, no biases.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// One of the supported architectures, by its GGUF name.
    pub architecture: String,
    /// What the file says the model is called.
    pub name: Option<String>,
    /// Rows of the embedding: token ids are below this.
    pub vocabulary: usize,
    pub hidden: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub heads: usize,
    /// Divides `heads`.
    pub kv_heads: usize,
    /// Even.
    pub head_size: usize,
    /// Tokens the model was trained to see at once.
    pub context: usize,
    pub norm_epsilon: f64,
    pub rotary: Rotary,
    /// The embedding is the output matrix too.
    pub tied_embeddings: bool,
}

/// How positions are rotated into queries and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    pub layout: RotaryLayout,
    /// `[head_size / 2]`, radians per position; linear and Llama 3 scaling are already in them.
    pub inverse_frequencies: Vec<f32>,
}

/// Which two components of a head rotate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryLayout {
    /// `(2i, 2i + 1)`: GGUF, whose converter permutes the query and key weights.
    Interleaved,
    /// `(i, i + head_size / 2)`: Hugging Face.
    Halves,
}

impl ModelConfig {
    /// From a GGUF header. `rope_factors` is the content of `rope_freqs.weight`, which divides the
    /// frequencies; `tied_embeddings` is whether the file lacks an output matrix.
    ///
    /// # Errors
    /// `Error::Architecture` for another family, `Error::BadModel` for missing or unusable numbers.
    pub(super) fn from_gguf(
        header: &Header,
        rope_factors: Option<&[f32]>,
        tied_embeddings: bool,
    ) -> Result<Self> {
        let architecture = header.string("general.architecture")?.unwrap_or("none");
        let Some(family) = FAMILIES.iter().find(|f| f.name == architecture) else {
            return Err(unsupported(header.path(), architecture));
        };
        let keys = GgufKeys { header, family: family.name };
        keys.refuse("expert_count", "a model without experts")?;
        let hidden = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let head_size = keys.size_or("attention.key_length", hidden / heads)?;
        keys.must_equal("attention.value_length", head_size)?;
        keys.must_equal("rope.dimension_count", head_size)?;
        let tokens = header.list("tokenizer.ggml.tokens")?.map_or(0, |tokens| tokens.len());
        let config = Self {
            architecture: family.name.into(),
            name: header.string("general.name")?.map(str::to_owned),
            vocabulary: keys.size_or("vocab_size", tokens)?,
            hidden,
            intermediate: keys.size("feed_forward_length")?,
            layers: keys.size("block_count")?,
            heads,
            kv_heads: keys.size_or("attention.head_count_kv", heads)?,
            head_size,
            context: keys.size("context_length")?,
            norm_epsilon: keys.number("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-5),
            rotary: Rotary {
                layout: RotaryLayout::Interleaved,
                inverse_frequencies: keys.inverse_frequencies(head_size, rope_factors)?,
            },
            tied_embeddings,
        };
        config.validated(header.path())
    }

    /// From config.json. `name` is what to call the model; `tied_embeddings` as in [`Self::from_gguf`].
    ///
    /// # Errors
    /// As [`Self::from_gguf`].
    pub(super) fn from_json(
        path: &Path,
        json: &Json,
        name: Option<String>,
        tied_embeddings: bool,
    ) -> Result<Self> {
        let keys = JsonKeys { path, json };
        let class = json["architectures"][0].as_str().unwrap_or("none");
        let Some(family) = FAMILIES.iter().find(|f| f.classes.contains(&class)) else {
            return Err(unsupported(path, class));
        };
        keys.refuse_set("attention_bias", "no biases in attention")?;
        keys.refuse_set("mlp_bias", "no biases in the feed-forward network")?;
        keys.refuse_set("sliding_window", "attention over the whole context")?;
        if let Some(activation) = json["hidden_act"].as_str().filter(|a| *a != "silu") {
            return Err(keys.bad("the activation silu", format!("hidden_act {activation}")));
        }
        let hidden = keys.size("hidden_size")?;
        let heads = keys.size("num_attention_heads")?;
        let head_size = keys.size_or("head_dim", hidden / heads)?;
        let config = Self {
            architecture: family.name.into(),
            name,
            vocabulary: keys.size("vocab_size")?,
            hidden,
            intermediate: keys.size("intermediate_size")?,
            layers: keys.size("num_hidden_layers")?,
            heads,
            kv_heads: keys.size_or("num_key_value_heads", heads)?,
            head_size,
            context: keys.size("max_position_embeddings")?,
            norm_epsilon: json["rms_norm_eps"].as_f64().unwrap_or(1e-6),
            rotary: Rotary {
                layout: RotaryLayout::Halves,
                inverse_frequencies: keys.inverse_frequencies(head_size)?,
            },
            tied_embeddings,
        };
        config.validated(path)
    }

    /// What has to hold between the numbers, whatever the format.
    fn validated(self, path: &Path) -> Result<Self> {
        if !self.heads.is_multiple_of(self.kv_heads) {
            let found = format!("{} heads and {} key-value heads", self.heads, self.kv_heads);
            return Err(bad(path, "key-value heads that divide the heads".into(), found));
        }
        if !self.head_size.is_multiple_of(2) {
            return Err(bad(path, "an even head size".into(), self.head_size.to_string()));
        }
        if !(self.norm_epsilon > 0.0 && self.norm_epsilon < 1.0) {
            let found = self.norm_epsilon.to_string();
            return Err(bad(path, "an RMS norm epsilon between 0 and 1".into(), found));
        }
        if !self.rotary.inverse_frequencies.iter().all(|f| f.is_finite() && *f > 0.0) {
            let found = "some that are not".into();
            return Err(bad(path, "positive rotary frequencies".into(), found));
        }
        Ok(self)
    }
}

/// base^(-2i / head_size) for i below head_size / 2.
fn plain_frequencies(base: f64, head_size: usize) -> Vec<f64> {
    let exponent = |i: usize| -2.0 * i as f64 / head_size as f64;
    (0..head_size / 2).map(|i| base.powf(exponent(i))).collect()
}

/// Llama 3's context extension: long waves turn slower by `factor`, short ones stay, those between
/// are blended.
struct Llama3Scaling {
    factor: f64,
    low_frequency_factor: f64,
    high_frequency_factor: f64,
    original_context: f64,
}

impl Llama3Scaling {
    fn apply(&self, frequency: f64) -> f64 {
        // How often the wave turns in the original context.
        let turns = self.original_context * frequency / std::f64::consts::TAU;
        let (low, high) = (self.low_frequency_factor, self.high_frequency_factor);
        let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 - kept) * frequency / self.factor + kept * frequency
    }
}

/// Reads one family's keys from a GGUF header.
struct GgufKeys<'a> {
    header: &'a Header,
    family: &'static str,
}

impl GgufKeys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.family)
    }

    fn size(&self, name: &str) -> Result<usize> {
        self.size_or(name, 0)
    }

    /// The value of a key that may be missing; 0 as default means that it may not.
    fn size_or(&self, name: &str, default: usize) -> Result<usize> {
        let key = self.key(name);
        let found = self.header.integer(&key)?;
        size(self.header.path(), &key, found.unwrap_or(default as u64))
    }

    fn number(&self, name: &str) -> Result<Option<f64>> {
        self.header.number(&self.key(name))
    }

    fn must_equal(&self, name: &str, head_size: usize) -> Result<()> {
        match self.header.integer(&self.key(name))? {
            Some(found) if found != head_size as u64 => Err(bad(
                self.header.path(),
                format!("{} equal to the head size {head_size}", self.key(name)),
                found.to_string(),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses a key that is set to more than 0.
    fn refuse(&self, name: &str, expected: &str) -> Result<()> {
        match self.header.integer(&self.key(name))? {
            Some(found) if found > 0 => {
                let found = format!("{} = {found}", self.key(name));
                Err(bad(self.header.path(), expected.into(), found))
            }
            _ => Ok(()),
        }
    }

    fn inverse_frequencies(&self, head_size: usize, factors: Option<&[f32]>) -> Result<Vec<f32>> {
        let base = self.number("rope.freq_base")?.unwrap_or(10_000.0);
        let kind = self.header.string(&self.key("rope.scaling.type"))?.unwrap_or("none");
        let factor = match kind {
            "none" => 1.0,
            "linear" => self.number("rope.scaling.factor")?.unwrap_or(1.0),
            other => return Err(bad_scaling(self.header.path(), other)),
        };
        // The key of files made before scaling had a type.
        let factor = self.number("rope.scale_linear")?.unwrap_or(factor);
        let mut frequencies = plain_frequencies(base, head_size);
        if let Some(factors) = factors {
            if factors.len() != frequencies.len() {
                let expected = format!("{} values in rope_freqs.weight", frequencies.len());
                return Err(bad(self.header.path(), expected, factors.len().to_string()));
            }
            frequencies.iter_mut().zip(factors).for_each(|(f, &by)| *f /= f64::from(by));
        }
        Ok(frequencies.into_iter().map(|f| (f / factor) as f32).collect())
    }
}

/// Reads keys from a config.json.
struct JsonKeys<'a> {
    path: &'a Path,
    json: &'a Json,
}

impl JsonKeys<'_> {
    fn bad(&self, expected: &str, found: String) -> Error {
        bad(self.path, format!("{expected} in config.json"), found)
    }

    fn size(&self, key: &str) -> Result<usize> {
        self.size_or(key, 0)
    }

    /// As [`GgufKeys::size_or`]; null counts as missing.
    fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        let found = match &self.json[key] {
            Json::Null => default as u64,
            value => value.as_u64().ok_or_else(|| self.bad(&format!("a size {key}"), value.to_string()))?,
        };
        size(self.path, key, found)
    }

    /// Refuses a key that is neither missing, null nor false.
    fn refuse_set(&self, key: &str, expected: &str) -> Result<()> {
        match &self.json[key] {
            Json::Null | Json::Bool(false) => Ok(()),
            value => Err(self.bad(expected, format!("{key} = {value}"))),
        }
    }

    fn inverse_frequencies(&self, head_size: usize) -> Result<Vec<f32>> {
        // Newer files keep everything rotary in `rope_parameters`, older ones the scaling in
        // `rope_scaling` and the base at the top.
        let rope = match &self.json["rope_parameters"] {
            Json::Null => &self.json["rope_scaling"],
            parameters => parameters,
        };
        let base = rope["rope_theta"].as_f64().or_else(|| self.json["rope_theta"].as_f64());
        let plain = plain_frequencies(base.unwrap_or(10_000.0), head_size);
        let kind = rope["rope_type"].as_str().or_else(|| rope["type"].as_str());
        let scaled: Vec<f64> = match kind.unwrap_or("default") {
            "default" => plain,
            "linear" => {
                let factor = self.rope_number(rope, "factor")?;
                plain.into_iter().map(|f| f / factor).collect()
            }
            "llama3" => {
                let scaling = Llama3Scaling {
                    factor: self.rope_number(rope, "factor")?,
                    low_frequency_factor: self.rope_number(rope, "low_freq_factor")?,
                    high_frequency_factor: self.rope_number(rope, "high_freq_factor")?,
                    original_context: self.rope_number(rope, "original_max_position_embeddings")?,
                };
                plain.into_iter().map(|f| scaling.apply(f)).collect()
            }
            other => return Err(bad_scaling(self.path, other)),
        };
        Ok(scaled.into_iter().map(|f| f as f32).collect())
    }

    fn rope_number(&self, rope: &Json, key: &str) -> Result<f64> {
        rope[key]
            .as_f64()
            .ok_or_else(|| self.bad(&format!("a number {key} for its rotary scaling"), rope[key].to_string()))
    }
}

/// A size that is there and not absurd.
fn size(path: &Path, key: &str, found: u64) -> Result<usize> {
    match found {
        0 => Err(bad(path, format!("a size {key}"), "none".into())),
        1..=LARGEST_SIZE => Ok(found as usize),
        _ => Err(bad(path, format!("{key} up to {LARGEST_SIZE}"), found.to_string())),
    }
}

fn bad_scaling(path: &Path, found: &str) -> Error {
    let expected = "rotary positions unscaled, or scaled by 'linear' or 'llama3'";
    bad(path, expected.into(), format!("'{found}'"))
}

fn unsupported(path: &Path, found: &str) -> Error {
    Error::Architecture { path: path.to_owned(), found: found.into(), supported: SUPPORTED }
}

fn bad(path: &Path, expected: String, found: String) -> Error {
    Error::BadModel { path: path.to_owned(), expected, found, hint: "Choose another model." }
}
