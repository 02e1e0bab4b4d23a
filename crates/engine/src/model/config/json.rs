//! Reads a model's configuration from the config.json of a Hugging Face folder.

mod attention;
mod latent;
mod recurrence;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::Value as Json;

use super::super::family::{Activation, Family, Gating, Mixer, SharedExpert};
use super::block_keys::Keys as BlockKeys;
use super::{
    BlockHead, DraftHead, Experts, FusedNorms, ModelConfig, Multipliers, Scoring, SigmoidGating, bad,
    largest, query_scale, size,
};
use crate::error::{Error, Result};

impl ModelConfig {
    /// Reads the configuration from `json`, the text part of a config.json. `name` is the name to
    /// display; `tied_embeddings` is true if there is no output matrix.
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
        let latent = keys.latent()?;
        let (attention_kinds, attention_kind_of) =
            keys.attention_kinds(layers, (heads, head_size, latent), context)?;
        let (mixers, recurrence) = keys.recurrence(layers, hidden)?;
        let named = if json["norm_eps"].is_number() { "norm_eps" } else { "rms_norm_eps" };
        let norm_epsilon = keys.number(named).unwrap_or(1e-6);
        let (intermediate, layers_with_kv) = (keys.intermediate()?, keys.layers_with_kv(layers)?);
        let experts = keys.experts()?;
        let intermediates = match experts.as_ref().filter(|_| family.latent) {
            Some(experts) => keys.latent_intermediates(layers, experts)?,
            None => keys.intermediates(layers, layers_with_kv, intermediate)?,
        };
        let mut config = Self {
            family,
            name,
            vocabulary: keys.size("vocab_size")?,
            hidden,
            intermediate: intermediates.iter().copied().max().unwrap_or(intermediate),
            intermediates,
            experts,
            layers,
            heads,
            kv_heads: largest(&attention_kinds, |keys| keys.count),
            head_size: largest(&attention_kinds, |keys| keys.size),
            layers_with_kv,
            per_layer: keys.per_layer()?,
            context,
            norm_epsilon,
            post_norm_epsilon: keys.stated("post_norm_eps", norm_epsilon)?,
            embedding_scale: family.embedding_scale(hidden),
            state_scale: 1.0,
            query_norm: keys.stated("qk_scale_factor", 1.0)? as f32,
            latent,
            query_scale: match latent {
                Some(latent) => keys.latent_scale(latent),
                None => query_scale(keys.number("query_pre_attn_scalar").unwrap_or(head_size as f64)),
            },
            scoring: keys.scoring()?,
            attention_kinds,
            attention_kind_of,
            mixers,
            recurrence,
            mtp_layers: super::layers(path, keys.stated(keys.mtp_layers_key(), 0.0)?.max(0.0) as usize)?,
            tied_embeddings,
            draft_head: None,
        };
        if let Some(multipliers) = keys.multipliers()? {
            multipliers.apply(path, &mut config)?;
        }
        config.validated(path)
    }
}

impl DraftHead {
    /// Reads the options of a draft head from a config.json. Its part `block` describes the layers
    /// and was read as `config`.
    ///
    /// # Errors
    /// `Error::BadModel` for unusable numbers.
    pub(in crate::model) fn from_json(
        path: &Path,
        json: &Json,
        block: &Json,
        config: &ModelConfig,
    ) -> Result<Self> {
        if config.family.drafts_blocks {
            let sliding = Keys { path, json: block, family: config.family }.sliding(config.layers)?;
            return Self::of_block(&BlockKeys { path, config: json, block }, config, &sliding);
        }
        // Writers disagree on the object that contains these keys.
        let nested = [json, block, &json["eagle_config"]];
        let find = |key: &str| nested.iter().map(|json| &json[key]).find(|value| !value.is_null());
        let number = |key: &str| find(key).and_then(Json::as_u64);
        let flag = |key: &str| find(key).and_then(Json::as_bool).unwrap_or(false);
        let layers = ["eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "layer_ids"];
        let entering = layers.iter().find_map(|key| find(key)).map(|layers| {
            let numbers = layers.as_array().into_iter().flatten().map(Json::as_u64);
            let numbers: Option<Vec<usize>> = numbers.map(|layer| Some(layer? as usize)).collect();
            let usable = |layers: &Vec<usize>| {
                layers.len() == Self::STATES && layers.is_sorted_by(|left, right| left < right)
            };
            numbers.filter(usable).ok_or_else(|| {
                let expected = format!("{} layers of the target, ascending, in config.json", Self::STATES);
                bad(path, expected, layers.to_string())
            })
        });
        let hidden = number("target_hidden_size").or_else(|| block["hidden_size"].as_u64()).unwrap_or(0);
        let fused_norms = match (flag("fc_norm"), flag("norm_before_fc")) {
            (true, _) => FusedNorms::Each,
            (false, true) => FusedNorms::Whole,
            (false, false) => FusedNorms::None,
        };
        Ok(Self {
            entering: entering.transpose()?,
            target_hidden: size(path, "target_hidden_size", hidden)?,
            tokens: size(path, "vocab_size", number("vocab_size").unwrap_or(0))?,
            fused_norms,
            normed_residual: flag("norm_before_residual"),
            normed_output: flag("norm_output"),
            block: None,
            mtp: false,
            assistant: None,
        })
    }

    /// Options of a head that drafts a block at once.
    fn of_block(keys: &BlockKeys<'_>, config: &ModelConfig, sliding: &[bool]) -> Result<Self> {
        let target_hidden = keys.find("target_hidden_size").and_then(Json::as_u64);
        Ok(Self {
            entering: Some(keys.entering()?),
            target_hidden: size(
                keys.path,
                "target_hidden_size",
                target_hidden.unwrap_or(config.hidden as u64),
            )?,
            tokens: config.vocabulary,
            fused_norms: FusedNorms::None,
            normed_residual: false,
            normed_output: false,
            block: Some(BlockHead::from_json(keys, config.vocabulary, sliding)?),
            mtp: false,
            assistant: None,
        })
    }
}

/// Reads keys of one family.
struct Keys<'a> {
    path: &'a Path,
    json: &'a Json,
    family: &'static Family,
}

impl Keys<'_> {
    fn bad(&self, expected: &str, found: String) -> Error {
        bad(self.path, format!("{expected} in config.json"), found)
    }

    /// A number from the file or the family's defaults.
    fn number(&self, key: &str) -> Option<f64> {
        self.json[key].as_f64().or_else(|| self.family.default(key))
    }

    fn size(&self, key: &str) -> Result<usize> {
        self.size_or(key, 0)
    }

    /// The size in a key, or `default` if the key is missing or null; a `default` of 0 makes the
    /// key required.
    fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        let found = match &self.json[key] {
            Json::Null => self.family.default(key).map_or(default as u64, |value| value as u64),
            value => value
                .as_u64()
                .ok_or_else(|| self.bad(&format!("a whole number for {key}"), value.to_string()))?,
        };
        size(self.path, key, found)
    }

    /// An integer that may be 0.
    fn whole_or(&self, key: &str, default: usize) -> Result<usize> {
        let found = self.stated(key, default as f64)?;
        match found.fract() == 0.0 && found >= 0.0 {
            true => Ok(found as usize),
            false => Err(self.bad(&format!("a whole number for {key}"), found.to_string())),
        }
    }

    fn refuse_what_is_not_run(&self) -> Result<()> {
        if !self.family.biases {
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
        for (key, expected) in [("swiglu_alpha", 1.702), ("swiglu_limit", 7.0)] {
            if let Some(found) = self.json[key].as_f64().filter(|&found| found != expected) {
                return Err(self.bad(&format!("{key} of {expected}"), found.to_string()));
            }
        }
        for key in ["hidden_act", "hidden_activation"] {
            if let Some(found) = self.json[key].as_str().filter(|found| !others.contains(found)) {
                return Err(self.bad(&format!("the activation {expected}"), format!("{key} {found}")));
            }
        }
        Ok(())
    }

    /// Feed-forward width; for Granite 4's dense models, the width of the shared expert.
    fn intermediate(&self) -> Result<usize> {
        if self.family.recurrent == Mixer::ShortConv && self.family.experts.is_none() {
            return self.adjusted_intermediate();
        }
        if self.family.experts.is_some_and(|options| options.shared == Some(SharedExpert::Gated)) {
            return self.size("shared_expert_intermediate_size");
        }
        let shared = "shared_intermediate_size";
        let is_shared = self.family.multipliers && !self.json[shared].is_null();
        self.size(if is_shared { shared } else { "intermediate_size" })
    }

    /// Number of leading layers that have keys and values of their own.
    fn layers_with_kv(&self, layers: usize) -> Result<usize> {
        if self.family.assists {
            return Ok(0);
        }
        let shared = self.stated("num_kv_shared_layers", 0.0)?;
        if !self.family.value_norms || shared == 0.0 {
            return Ok(layers);
        }
        let caching = layers.checked_sub(shared.max(0.0) as usize).filter(|&caching| caching > 0);
        caching.ok_or_else(|| self.bad(&format!("num_kv_shared_layers below {layers}"), shared.to_string()))
    }

    /// Feed-forward width of each layer, or nothing if all are equal. Layers that share keys and
    /// values may be twice as wide (Gemma 4).
    fn intermediates(&self, layers: usize, caching: usize, usual: usize) -> Result<Vec<usize>> {
        if self.json["use_double_wide_mlp"] != true {
            return Ok(Vec::new());
        }
        let twice = size(self.path, "intermediate_size", 2 * usual as u64)?;
        Ok((0..layers).map(|layer| if layer < caching { usual } else { twice }).collect())
    }

    /// Width of the per-layer input embedding, if the model has one.
    fn per_layer(&self) -> Result<Option<usize>> {
        match self.stated("hidden_size_per_layer_input", 0.0)? {
            width if width == 0.0 || !self.family.value_norms => Ok(None),
            _ => self.size("hidden_size_per_layer_input").map(Some),
        }
    }

    fn multipliers(&self) -> Result<Option<Multipliers>> {
        if !self.family.multipliers {
            return Ok(None);
        }
        Ok(Some(Multipliers {
            embeddings: self.stated("embedding_multiplier", 1.0)?,
            branches: self.stated("residual_multiplier", 1.0)?,
            products: Some(self.stated("attention_multiplier", 1.0)?),
            logits: self.stated("logits_scaling", 1.0)?,
        }))
    }

    fn scoring(&self) -> Result<Scoring> {
        if !self.family.logit_softcap {
            return Ok(Scoring::PLAIN);
        }
        let cap = self.stated("final_logit_softcapping", 0.0)?;
        let scale = self.stated("output_multiplier", 1.0)? as f32;
        Ok(Scoring { scale, cap: (cap != 0.0).then_some(cap as f32) })
    }

    /// The number in a key, or the family's or the given default. Rejects values of other types.
    fn stated(&self, key: &str, default: f64) -> Result<f64> {
        let missing = || self.family.default(key).unwrap_or(default);
        match &self.json[key] {
            Json::Null => Ok(missing()),
            value => {
                value.as_f64().ok_or_else(|| self.bad(&format!("a number for {key}"), value.to_string()))
            }
        }
    }

    fn experts(&self) -> Result<Option<Experts>> {
        let Some(options) = self.family.experts else { return Ok(None) };
        let has_none = match options.beside_dense {
            true => self.json["enable_moe_block"] != true,
            false => self.json["num_local_experts"] == 0,
        };
        if options.optional && has_none {
            return Ok(None);
        }
        let in_every_layer = self.json["mlp_only_layers"].as_array().is_none_or(Vec::is_empty)
            && self.json["decoder_sparse_step"].as_u64().is_none_or(|step| step == 1);
        if !in_every_layer {
            return Err(self.bad("experts in every layer", "layers without".into()));
        }
        Ok(Some(Experts {
            count: self.size(match self.family.latent {
                true => "n_routed_experts",
                false => self.given(["num_experts", "num_local_experts"]),
            })?,
            top_k: self.size(self.given(["num_experts_per_tok", "top_k_experts"]))?,
            intermediate: self.size(self.given(["moe_intermediate_size", "intermediate_size"]))?,
            normalised: match options.gating {
                _ if options.declares_norm_topk => self.json["norm_topk_prob"] == true,
                Gating::Softmax => true,
                // transformers' default for these families is true.
                Gating::Sigmoid => self.json["norm_topk_prob"] != false,
                Gating::Stated => self.json["norm_topk_prob"].as_bool().unwrap_or(self.takes_sigmoids()),
            },
            biases: options.biases,
            beside_dense: options.beside_dense,
            shared: options.shared,
            scale: match options.gating {
                Gating::Softmax => 1.0,
                _ => self.stated("routed_scaling_factor", 1.0)? as f32,
            },
            sigmoid: match options.gating {
                Gating::Softmax => false,
                Gating::Sigmoid => true,
                Gating::Stated => self.takes_sigmoids(),
            }
            .then(|| SigmoidGating {
                selection_bias: self.json["use_expert_bias"] != false,
                sum_epsilon: SigmoidGating::default_epsilon(options),
            }),
            leading_dense: match options.leading_dense {
                _ if self.family.latent => self.first_dense()?,
                true => super::layers(self.path, self.whole_or("num_dense_layers", 2)?)?,
                false => 0,
            },
        }))
    }

    /// Returns the key that is present, preferring the first.
    fn given(&self, [usual, other]: [&'static str; 2]) -> &'static str {
        if self.json[usual].is_null() && !self.json[other].is_null() { other } else { usual }
    }

    /// Rejects a key whose value is neither missing, null nor false.
    fn refuse_set(&self, key: &str, expected: &str) -> Result<()> {
        match &self.json[key] {
            Json::Null | Json::Bool(false) => Ok(()),
            value => Err(self.bad(expected, format!("{key} = {value}"))),
        }
    }
}
