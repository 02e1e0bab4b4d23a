//! A model's numbers from the config.json of a Hugging Face folder.

use std::path::Path;

use serde_json::Value as Json;

use super::super::family::{Activation, Family, RotaryLayout, Windowed};
use super::block_keys::Keys as BlockKeys;
use super::rotary::{Llama3Scaling, LongRope, plain_frequencies};
use super::{
    AttentionKind, BlockHead, DraftHead, Experts, FusedNorms, ModelConfig, Rotary, attention_kinds, bad,
    bad_scaling, divide, query_scale, rotary_size, size, window,
};
use crate::error::{Error, Result};

/// Of Qwen's layers so many have no window where the file does not say.
const WINDOWLESS_LAYERS: u64 = 28;

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
        let (attention_kinds, attention_kind_of) = keys.attention_kinds(layers, head_size, context)?;
        let config = Self {
            family,
            name,
            vocabulary: keys.size("vocab_size")?,
            hidden,
            intermediate: keys.size("intermediate_size")?,
            experts: keys.experts()?,
            layers,
            heads,
            kv_heads: keys.size_or("num_key_value_heads", heads)?,
            head_size,
            context,
            norm_epsilon: keys.number("rms_norm_eps").unwrap_or(1e-6),
            query_scale: query_scale(keys.number("query_pre_attn_scalar").unwrap_or(head_size as f64)),
            attention_kinds,
            attention_kind_of,
            tied_embeddings,
            draft_head: None,
        };
        config.validated(path)
    }
}

impl DraftHead {
    /// From a config.json, whose part `block` describes its layers and has been read as `config`.
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
        // Writers do not agree on where these are.
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
        })
    }

    /// Of one that guesses a block at once.
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
        })
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
            value => value
                .as_u64()
                .ok_or_else(|| self.bad(&format!("a whole number for {key}"), value.to_string()))?,
        };
        size(self.path, key, found)
    }

    fn refuse_what_is_not_run(&self) -> Result<()> {
        if !self.family.biases {
            self.refuse_set("attention_bias", "no biases in attention")?;
        }
        self.refuse_set("mlp_bias", "no biases in the feed-forward network")?;
        self.refuse_set("attn_logit_softcapping", "attention without soft-capping")?;
        self.refuse_set("final_logit_softcapping", "logits without soft-capping")?;
        self.refuse_set("use_bidirectional_attention", "causal attention")?;
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

    fn experts(&self) -> Result<Option<Experts>> {
        if self.family.experts.is_none() {
            return Ok(None);
        }
        let in_every_layer = self.json["mlp_only_layers"].as_array().is_none_or(Vec::is_empty)
            && self.json["decoder_sparse_step"].as_u64().is_none_or(|step| step == 1);
        if !in_every_layer {
            return Err(self.bad("experts in every layer", "layers without".into()));
        }
        Ok(Some(Experts {
            count: self.size("num_experts")?,
            used: self.size("num_experts_per_tok")?,
            intermediate: self.size("moe_intermediate_size")?,
            normalised: self.json["norm_topk_prob"].as_bool().unwrap_or(false),
        }))
    }

    /// Refuses a key that is neither missing, null nor false.
    fn refuse_set(&self, key: &str, expected: &str) -> Result<()> {
        match &self.json[key] {
            Json::Null | Json::Bool(false) => Ok(()),
            value => Err(self.bad(expected, format!("{key} = {value}"))),
        }
    }

    fn attention_kinds(
        &self,
        layers: usize,
        head_size: usize,
        context: usize,
    ) -> Result<(Vec<AttentionKind>, Vec<usize>)> {
        let rope = self.rope();
        let part = rope["partial_rotary_factor"].as_f64().or_else(|| self.number("partial_rotary_factor"));
        let rotated = (head_size as f64 * part.unwrap_or(1.0)) as usize;
        let rotated = rotary_size(self.path, rotated, head_size)?;
        // The newest files describe the rotation of each kind of layer, those before them a base for
        // layers with a window, the others one rotation for all.
        let nested = rope["full_attention"].is_object();
        let global = self.rotary(if nested { &rope["full_attention"] } else { rope }, rotated, context)?;
        let local = match self.number("rope_local_base_freq") {
            _ if nested => self.rotary(&rope["sliding_attention"], rotated, context)?,
            Some(base) => Rotary::new(RotaryLayout::Halves, plain_frequencies(base, rotated), 1.0),
            None => global.clone(),
        };
        let windowed = self.windowed(layers)?;
        let all = self.json["dflash_config"].get("swa_window_size").filter(|_| self.windows_all());
        let found = match all.unwrap_or(&self.json["sliding_window"]) {
            Json::Null => self.family.default("sliding_window").unwrap_or(0.0) as usize,
            value => value
                .as_u64()
                .ok_or_else(|| self.bad("a whole number for sliding_window", value.to_string()))?
                as usize,
        };
        let window = window(found, context);
        Ok(attention_kinds(
            &windowed,
            AttentionKind { window: None, rotary: global },
            AttentionKind { window, rotary: local },
        ))
    }

    /// A block head may say at one place that all of its layers have a window.
    fn windows_all(&self) -> bool {
        self.family.drafts_blocks && self.json["dflash_config"]["use_swa"] == true
    }

    /// Of every layer whether it has the window, if there is one.
    fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        if self.windows_all() { Ok(vec![true; layers]) } else { self.sliding(layers) }
    }

    /// Of every layer whether it is of the kind that has a window.
    fn sliding(&self, layers: usize) -> Result<Vec<bool>> {
        if let Some(listed) = self.json["layer_types"].as_array() {
            let listed: Option<Vec<bool>> = listed.iter().map(is_windowed).collect();
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

    /// Newer files keep everything rotary in `rope_parameters`, older ones the scaling in `rope_scaling`
    /// and the base at the top.
    fn rope(&self) -> &Json {
        match &self.json["rope_parameters"] {
            Json::Null => &self.json["rope_scaling"],
            parameters => parameters,
        }
    }

    /// The rotation that `rope` describes, of `rotated` components of a head.
    fn rotary(&self, rope: &Json, rotated: usize, context: usize) -> Result<Rotary> {
        let base = rope["rope_theta"].as_f64().or_else(|| self.number("rope_theta"));
        let mut frequencies = plain_frequencies(base.unwrap_or(10_000.0), rotated);
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
        rope[key].as_f64().ok_or_else(|| {
            self.bad(&format!("a number for {key} in the rotary scaling"), rope[key].to_string())
        })
    }
}

fn is_windowed(kind: &Json) -> Option<bool> {
    match kind.as_str() {
        Some("full_attention") => Some(false),
        Some("sliding_attention") => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn read(class: &str, json: Json) -> Result<ModelConfig> {
        let path = Path::new("model");
        ModelConfig::from_json(path, &json, Family::of_class(class, path).unwrap(), None, false)
    }

    /// `json` and the sizes that every file gives.
    fn with_sizes(class: &str, mut json: Json) -> Result<ModelConfig> {
        let sizes = json!({
            "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
            "num_attention_heads": 4, "max_position_embeddings": 4096,
        });
        for (key, value) in sizes.as_object().unwrap() {
            json.as_object_mut().unwrap().entry(key).or_insert(value.clone());
        }
        json["architectures"] = json!([class]);
        read(class, json)
    }

    fn windows(config: &ModelConfig) -> Vec<Option<usize>> {
        config.attention_kind_of.iter().map(|&kind| config.attention_kinds[kind].window).collect()
    }

    /// The wave that turns slowest.
    fn slowest(config: &ModelConfig, layer: usize) -> f32 {
        *config.attention_kinds[config.attention_kind_of[layer]].rotary.inverse_frequencies.last().unwrap()
    }

    #[test]
    fn what_the_published_gemma_4b_leaves_out_is_known() {
        let published = json!({
            "hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
            "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        });
        let config = read("Gemma3ForConditionalGeneration", published).unwrap();
        assert_eq!((config.vocabulary, config.context), (262_208, 131_072));
        assert_eq!((config.heads, config.kv_heads, config.head_size), (8, 4, 256));
        assert_eq!((config.norm_epsilon, config.query_scale), (1e-6, 1.0 / 16.0));
        let windows = windows(&config);
        assert_eq!(windows[..6], [Some(1024), Some(1024), Some(1024), Some(1024), Some(1024), None]);
        assert_eq!(windows.iter().filter(|window| window.is_none()).count(), 5);
        // base^(-254/256), for layers that see everything divided by the factor.
        let (local, global) = (10_000f64.powf(-254.0 / 256.0), 1e6f64.powf(-254.0 / 256.0) / 8.0);
        assert!((f64::from(slowest(&config, 0)) / local - 1.0).abs() < 1e-6);
        assert!((f64::from(slowest(&config, 5)) / global - 1.0).abs() < 1e-6);
    }

    #[test]
    fn newer_files_describe_each_kind_of_layer_by_itself() {
        let config = json!({
            "head_dim": 16, "num_key_value_heads": 4, "sliding_window": 512,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "rope_theta": 256.0, "factor": 2.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 16.0},
            },
        });
        let config = with_sizes("Gemma3ForCausalLM", config).unwrap();
        assert_eq!(windows(&config), [Some(512), None, Some(512)]);
        assert_eq!(slowest(&config, 0), 16f32.powf(-7.0 / 8.0));
        assert_eq!(slowest(&config, 1), 256f32.powf(-7.0 / 8.0) / 2.0);
    }

    #[test]
    fn a_window_is_one_where_the_file_uses_it() {
        let windows = |class, json| windows(&with_sizes(class, json).unwrap());
        let all = [Some(512); 3];
        assert_eq!(windows("MistralForCausalLM", json!({"sliding_window": 512})), all);
        assert_eq!(windows("MistralForCausalLM", json!({"sliding_window": null})), [None; 3]);
        assert_eq!(windows("Phi3ForCausalLM", json!({"sliding_window": 512})), all);
        // No token of the context is ever outside.
        assert_eq!(windows("Phi3ForCausalLM", json!({"sliding_window": 262_144})), [None; 3]);
        let qwen = |used| json!({"sliding_window": 512, "use_sliding_window": used, "max_window_layers": 1});
        assert_eq!(windows("Qwen2ForCausalLM", qwen(false)), [None; 3]);
        assert_eq!(windows("Qwen2ForCausalLM", qwen(true)), [None, Some(512), Some(512)]);
        assert_eq!(windows("Qwen3ForCausalLM", qwen(true)), [None, Some(512), Some(512)]);
    }

    #[test]
    fn longrope_divides_by_the_factors_for_the_context() {
        let rope = |context: u64| {
            let config = json!({
                "max_position_embeddings": context, "original_max_position_embeddings": 4096,
                "partial_rotary_factor": 0.25,
                "rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [4.0, 8.0]},
            });
            with_sizes("Phi3ForCausalLM", config).unwrap().attention_kinds[0].rotary.clone()
        };
        let (short, long) = (rope(4096), rope(131_072));
        assert_eq!((short.size(), short.scale), (4, 1.0));
        assert_eq!(short.inverse_frequencies, [1.0, 0.01 / 2.0]);
        assert_eq!(long.inverse_frequencies, [1.0 / 4.0, 0.01 / 8.0]);
        // sqrt(1 + ln 32 / ln 4096), as in the published Phi-3-mini-128k.
        assert!((long.scale - 1.190_238).abs() < 1e-6, "{}", long.scale);
    }

    #[test]
    fn factors_that_do_not_fit_the_head_are_refused() {
        for (factors, found) in
            [(json!([1.0]), "found 1"), (json!(["a"]), "found 0"), (Json::Null, "found 0")]
        {
            let config = json!({
                "original_max_position_embeddings": 64,
                "rope_scaling": {"rope_type": "su", "short_factor": [1.0], "long_factor": factors},
            });
            let message = with_sizes("Phi3ForCausalLM", config).err().unwrap().to_string();
            assert!(message.contains("8 values in long_factor") && message.contains(found), "{message}");
        }
    }
}
