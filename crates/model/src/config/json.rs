//! Settings in the config.json of a Hugging Face folder, renamed to GGUF's keys as llama.cpp's
//! converter does.

mod attention;
mod draft_head;
mod experts;
mod layers;
mod rotary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;

use super::super::family::{Activation, Family};
use super::keys::{Keys, List, Source};
use super::{ModelConfig, bad, size};
use crate::error::{Error, Result};

/// GGUF's keys and config.json's for the same setting; the first of these that the file has counts.
/// Settings that need more than another name are in the submodules.
const RENAMED: [(&str, &[&str]); 40] = [
    ("vocab_size", &["vocab_size"]),
    ("context_length", &["max_position_embeddings"]),
    ("embedding_length", &["hidden_size"]),
    ("block_count", &["num_hidden_layers"]),
    ("feed_forward_length", &["intermediate_size"]),
    ("embedding_scale", &["embedding_multiplier"]),
    ("residual_scale", &["residual_multiplier"]),
    ("logit_scale", &["output_multiplier", "logits_scaling"]),
    ("final_logit_softcapping", &["final_logit_softcapping"]),
    ("embedding_length_per_layer_input", &["hidden_size_per_layer_input"]),
    ("nextn_predict_layers", &["num_nextn_predict_layers", "mtp_num_hidden_layers"]),
    ("attention.head_count", &["num_attention_heads"]),
    ("attention.head_count_kv", &["num_key_value_heads"]),
    ("attention.key_length", &["head_dim"]),
    ("attention.layer_norm_rms_epsilon", &["norm_eps", "rms_norm_eps"]),
    ("attention.post_norm_rms_epsilon", &["post_norm_eps"]),
    ("attention.query_norm_scale", &["qk_scale_factor"]),
    ("attention.query_scalar", &["query_pre_attn_scalar"]),
    ("attention.scale", &["attention_multiplier"]),
    ("attention.shared_kv_layers", &["num_kv_shared_layers"]),
    ("attention.sliding_window", &["sliding_window"]),
    ("attention.values_are_keys", &["attention_k_eq_v"]),
    ("attention.kv_lora_rank", &["kv_lora_rank"]),
    ("attention.q_lora_rank", &["q_lora_rank"]),
    ("attention.value_length_mla", &["v_head_dim"]),
    ("rope.freq_base_swa", &["rope_local_base_freq"]),
    ("rope.layer_interval", &["no_rope_layer_interval"]),
    ("rope.interleaved", &["rope_interleave"]),
    ("expert_used_count", &["num_experts_per_tok", "top_k_experts"]),
    ("expert_feed_forward_length", &["moe_intermediate_size", "intermediate_size"]),
    ("expert_shared_feed_forward_length", &["shared_expert_intermediate_size", "shared_intermediate_size"]),
    ("expert_weights_scale", &["routed_scaling_factor"]),
    ("expert_shared_count", &["n_shared_experts"]),
    ("expert_group_count", &["n_group"]),
    ("full_attention_interval", &["full_attention_interval"]),
    ("shortconv.l_cache", &["conv_L_cache"]),
    ("ssm.conv_kernel", &["linear_conv_kernel_dim", "mamba_d_conv"]),
    ("ssm.group_count", &["linear_num_key_heads", "mamba_n_groups"]),
    ("ssm.state_size", &["linear_key_head_dim", "mamba_d_state"]),
    ("ssm.time_step_rank", &["linear_num_value_heads", "mamba_n_heads"]),
];

impl ModelConfig {
    /// Reads the configuration from `json`, the text part of a config.json. `name` is the name to
    /// display; `tied_embeddings` is true if there is no output matrix.
    ///
    /// # Errors
    /// `Error::BadModel` for missing or unusable numbers.
    pub(crate) fn from_json(
        path: &Path,
        json: &Json,
        family: &'static Family,
        name: Option<String>,
        tied_embeddings: bool,
    ) -> Result<Self> {
        let source = Renamed::new(ConfigJson { path, json, family })?;
        Self::read(Keys { family, source: &source }, name, tied_embeddings)
    }
}

/// Keys whose whole numbers config.json may write as fractions.
const MAYBE_FRACTIONS: [&str; 4] = [
    "nextn_predict_layers",
    "attention.shared_kv_layers",
    "rope.scaling.original_context_length",
    "rope_swa.scaling.original_context_length",
];

/// A config.json whose settings have GGUF's keys.
struct Renamed<'a> {
    config: ConfigJson<'a>,
    settings: Settings,
}

/// Values by GGUF's key, each with its name in config.json.
#[derive(Default)]
struct Settings(BTreeMap<String, (&'static str, Json)>);

impl Settings {
    /// Sets a value, unless it is null.
    fn set(&mut self, key: impl Into<String>, name: &'static str, value: Json) {
        if !value.is_null() {
            self.0.insert(key.into(), (name, value));
        }
    }
}

impl<'a> Renamed<'a> {
    fn new(config: ConfigJson<'a>) -> Result<Self> {
        config.refuse_what_is_not_run()?;
        let mut settings = Settings::default();
        for (key, names) in RENAMED {
            let given = names.iter().find(|name| !config.json[**name].is_null());
            let default = || names.iter().find_map(|name| Some((*name, config.default(name)?)));
            let found = given.map(|name| (*name, config.json[*name].clone())).or_else(default);
            settings.0.extend(found.map(|found| (key.to_owned(), found)));
        }
        config.rename_layers(&mut settings)?;
        config.rename_attention(&mut settings)?;
        config.rename_ropes(&mut settings)?;
        config.rename_experts(&mut settings)?;
        if !config.family.logit_softcap {
            // Missing or false, as checked above.
            settings.0.remove("final_logit_softcapping");
        }
        for key in MAYBE_FRACTIONS {
            if let Some((_, value)) = settings.0.get_mut(key)
                && let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)
            {
                *value = Json::from(number as u64);
            }
        }
        Ok(Self { config, settings })
    }

    /// Returns the value of `key` as `read` understands it.
    fn typed<'s, T>(
        &'s self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'s Json) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some((name, value)) = self.settings.0.get(key) else { return Ok(None) };
        let wrong = || self.config.bad(&format!("{expected} for {name}"), value.to_string());
        read(value).map(Some).ok_or_else(wrong)
    }
}

impl Source for Renamed<'_> {
    fn path(&self) -> &Path {
        self.config.path
    }

    fn is_gguf(&self) -> bool {
        false
    }

    fn name(&self, key: &str) -> String {
        let usual = || RENAMED.iter().find(|(renamed, _)| *renamed == key).map(|(_, names)| names[0]);
        let name = self.settings.0.get(key).map(|(name, _)| *name);
        name.or_else(usual).or_else(|| rotary::name(key)).unwrap_or(key).to_owned()
    }

    fn integer(&self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", Json::as_u64)
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", Json::as_f64)
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Json::as_bool)
    }

    fn text(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "text", Json::as_str)
    }

    fn list(&self, key: &str) -> Result<Option<List>> {
        let Some(listed) = self.settings.0.get(key).and_then(|(_, value)| value.as_array()) else {
            return Ok(None);
        };
        let booleans = || Some(List::Booleans(listed.iter().map(Json::as_bool).collect::<Option<_>>()?));
        let integers = || Some(List::Integers(listed.iter().map(Json::as_i64).collect::<Option<_>>()?));
        let numbers = || Some(List::Numbers(listed.iter().map(Json::as_f64).collect::<Option<_>>()?));
        Ok(Some(booleans().or_else(integers).or_else(numbers).unwrap_or(List::Other)))
    }
}

/// The text part of a config.json, with its own names.
#[derive(Clone, Copy)]
struct ConfigJson<'a> {
    path: &'a Path,
    json: &'a Json,
    family: &'static Family,
}

impl ConfigJson<'_> {
    fn bad(&self, expected: &str, found: String) -> Error {
        bad(self.path, format!("{expected} in config.json"), found)
    }

    /// Returns the family's default of a setting, as transformers has it.
    fn default(&self, name: &str) -> Option<Json> {
        let default = self.family.default(name)?;
        Some(if default.fract() == 0.0 { Json::from(default as i64) } else { Json::from(default) })
    }

    /// Returns a setting or its default; null if there is neither.
    fn value(&self, name: &str) -> Json {
        match &self.json[name] {
            Json::Null => self.default(name).unwrap_or_default(),
            value => value.clone(),
        }
    }

    fn size(&self, name: &str) -> Result<usize> {
        self.size_or(name, 0)
    }

    /// The size in a setting, or `default` if it is missing; a `default` of 0 makes it required.
    fn size_or(&self, name: &str, default: usize) -> Result<usize> {
        let found = match self.value(name) {
            Json::Null => Some(default as u64),
            value => value.as_u64(),
        };
        let wrong = || self.bad(&format!("a whole number for {name}"), self.json[name].to_string());
        size(self.path, name, found.ok_or_else(wrong)?)
    }

    /// The number in a setting, or `default` if it is missing.
    fn number_or(&self, name: &str, default: f64) -> Result<f64> {
        let found = match self.value(name) {
            Json::Null => Some(default),
            value => value.as_f64(),
        };
        found.ok_or_else(|| self.bad(&format!("a number for {name}"), self.json[name].to_string()))
    }

    /// Returns whether the file declares this class.
    fn is_class(&self, class: &str) -> bool {
        self.json["architectures"][0] == class
    }

    fn refuse_what_is_not_run(&self) -> Result<()> {
        if !self.family.attention.biases {
            self.refuse_set("attention_bias", "no biases in attention")?;
        }
        self.refuse_set("mlp_bias", "no biases in the feed-forward network")?;
        self.refuse_set("attn_logit_softcapping", "attention without soft-capping")?;
        if !self.family.logit_softcap {
            self.refuse_set("final_logit_softcapping", "logits without soft-capping")?;
        }
        // Bidirectional attention among image tokens does not concern text.
        if self.json["use_bidirectional_attention"] != "vision" {
            self.refuse_set("use_bidirectional_attention", "causal attention")?;
        }
        let (expected, others) = match self.family.activation {
            Activation::Silu => ("silu", ["silu", "swish"]),
            Activation::Gelu => ("gelu_pytorch_tanh", ["gelu_pytorch_tanh", "gelu_new"]),
            // config.json names gpt-oss's clamped activation so.
            Activation::Clamped => ("silu", ["silu", "swish"]),
        };
        for (name, expected) in [("swiglu_alpha", 1.702), ("swiglu_limit", 7.0)] {
            if let Some(found) = self.json[name].as_f64().filter(|&found| found != expected) {
                return Err(self.bad(&format!("{name} of {expected}"), found.to_string()));
            }
        }
        for name in ["hidden_act", "hidden_activation"] {
            if let Some(found) = self.json[name].as_str().filter(|found| !others.contains(found)) {
                return Err(self.bad(&format!("the activation {expected}"), format!("{name} {found}")));
            }
        }
        Ok(())
    }

    /// Rejects a setting whose value is neither missing, null nor false.
    fn refuse_set(&self, name: &str, expected: &str) -> Result<()> {
        match &self.json[name] {
            Json::Null | Json::Bool(false) => Ok(()),
            value => Err(self.bad(expected, format!("{name} = {value}"))),
        }
    }
}
