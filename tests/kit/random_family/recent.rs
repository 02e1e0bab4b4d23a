//! Families that transformers implements and candle-transformers does not. Weights are derived from
//! names only, so that `tests/goldens/families.py` can run transformers on the same folders.

use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Device, Tensor};
use serde_json::json;

use super::experts::gpt_oss;
use super::gemma4;
use super::latent;
use super::recurrent::recurrent;
use super::{HIDDEN, INTERMEDIATE, RandomFamily, random};

/// Original context. Texts of 40 tokens are longer than the windows and more than twice as long as
/// this.
const ORIGINAL: usize = 16;

/// Families with sizes that differ from each other, and with epsilons that are large enough to
/// matter.
pub fn recent() -> Vec<RandomFamily> {
    let mut families = attending();
    families.extend(recurrent());
    families
}

/// Families with attention in all layers.
fn attending() -> Vec<RandomFamily> {
    let factors = |from: f64| (0..32).map(|i| from + f64::from(i) / 8.0).collect::<Vec<_>>();
    vec![
        random(
            "mistral3",
            "mistral3",
            json!({
                "architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "head_dim": 40,
                "rope_parameters": {
                    "rope_type": "yarn", "type": "yarn", "rope_theta": 1e4, "factor": 4.0,
                    "original_max_position_embeddings": ORIGINAL, "beta_fast": 4.0, "beta_slow": 0.5,
                    "mscale": 1.0, "mscale_all_dim": 0.5, "llama_4_scaling_beta": 0.5,
                },
                "sliding_window": null,
            }),
        ),
        random(
            "smollm3",
            "smollm3",
            json!({
                "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "num_hidden_layers": 4,
                "rope_theta": 1e4, "no_rope_layers": [1, 1, 1, 0], "tie_word_embeddings": true,
                "use_sliding_window": false, "sliding_window": null, "pad_token_id": null,
            }),
        ),
        random(
            "granite",
            "granite",
            json!({
                "architectures": ["GraniteForCausalLM"], "model_type": "granite", "rms_norm_eps": 1e-3,
                "embedding_multiplier": 12.0, "residual_multiplier": 0.3, "attention_multiplier": 0.3,
                "logits_scaling": 0.25, "tie_word_embeddings": true,
            }),
        ),
        random(
            "granite 4",
            "granite",
            json!({
                "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid",
                "rms_norm_eps": 1e-3, "embedding_multiplier": 7.0, "residual_multiplier": 0.5,
                "attention_multiplier": 0.2, "logits_scaling": 0.5, "num_local_experts": 0,
                "num_experts_per_tok": 0, "shared_intermediate_size": INTERMEDIATE, "intermediate_size": 8,
                "layer_types": ["attention", "attention"], "position_embedding_type": "nope",
            }),
        ),
        random(
            "olmo3",
            "olmo2",
            json!({
                "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "num_hidden_layers": 4,
                "rms_norm_eps": 1e-3, "sliding_window": 9, "rope_theta": 5e5,
                "layer_types": [
                    "sliding_attention", "full_attention", "sliding_attention", "full_attention",
                ],
                "rope_scaling": {
                    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": ORIGINAL,
                    "beta_fast": 4.0, "beta_slow": 0.5,
                },
            }),
        ),
        random(
            "muse-glimmer",
            "muse-glimmer",
            json!({
                "architectures": ["MuseGlimmerForConditionalGeneration"], "model_type": "muse_glimmer_text",
                "num_hidden_layers": 4, "head_dim": 64, "sliding_window": 9, "rms_norm_eps": 1e-2,
                "hidden_act": null, "hidden_activation": "silu",
                "layer_types": [
                    "sliding_attention", "full_attention", "sliding_attention", "full_attention",
                ],
                "layer_rope_theta": [1e4, 0, 1e4, 0],
                "qk_scale_factor": 3.87, "output_multiplier": 2.5, "final_logit_softcapping": 3.0,
                "post_norm_eps": 1e-8,
            }),
        ),
        random(
            "phi3 with two lists of factors",
            "phi3",
            json!({
                "architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
                "original_max_position_embeddings": ORIGINAL, "sliding_window": null, "pad_token_id": null,
                "rope_scaling": {
                    "type": "longrope", "short_factor": factors(1.0), "long_factor": factors(2.0),
                },
            }),
        ),
        gpt_oss(),
    ]
    .into_iter()
    .chain(gemma4::both())
    .chain(latent::both())
    .collect()
}

/// Language model of Qwen3-VL, which adds states of pictures after two of its layers.
/// `tests/goldens/vision.py` compares it with transformers.
pub fn qwen3vl() -> RandomFamily {
    random(
        "qwen3vl",
        "qwen3vl",
        json!({
            "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl_text",
            "num_hidden_layers": 3, "head_dim": 40, "rope_theta": 1e4,
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e4, "mrope_section": SECTIONS, "mrope_interleaved": true,
            },
        }),
    )
}

/// Pairs of a head that Qwen3-VL rotates by time, row and column.
const SECTIONS: [i32; 3] = [8, 6, 6];

impl RandomFamily {
    /// GGUF keys that other families do not have.
    pub(super) fn recent_keys(&self) -> Vec<(&'static str, Value)> {
        let float = |key: &str| Value::F32(self.config[key].as_f64().unwrap() as f32);
        let rope = match &self.config["rope_parameters"] {
            serde_json::Value::Null => &self.config["rope_scaling"],
            parameters => parameters,
        };
        let of_rope = |key: &str| Value::F32(rope[key].as_f64().unwrap() as f32);
        let mut keys = Vec::new();
        if self.architecture == "qwen3vl" {
            let sections = SECTIONS.into_iter().chain([0]).map(Value::I32).collect();
            keys.push(("rope.dimension_sections", Value::Array(sections)));
            keys.push(("n_deepstack_layers", Value::U32(2)));
        }
        if rope["rope_type"] == "yarn" {
            keys.extend([
                ("rope.scaling.type", Value::String("yarn".into())),
                ("rope.scaling.factor", of_rope("factor")),
                ("rope.scaling.original_context_length", Value::U32(ORIGINAL as u32)),
                ("rope.scaling.yarn_beta_fast", of_rope("beta_fast")),
                ("rope.scaling.yarn_beta_slow", of_rope("beta_slow")),
            ]);
        }
        if self.config["layer_types"].is_array() && self.config["sliding_window"].is_u64() {
            let sliding = self.config["layer_types"].as_array().unwrap().iter();
            let sliding = sliding.map(|kind| Value::Bool(kind == "sliding_attention")).collect();
            keys.push(("attention.sliding_window_pattern", Value::Array(sliding)));
        }
        match self.label {
            "mistral3" => keys.extend([
                ("rope.scaling.yarn_log_multiplier", of_rope("mscale_all_dim")),
                ("attention.temperature_scale", of_rope("llama_4_scaling_beta")),
            ]),
            "granite" | "granite 4" => keys.extend([
                ("embedding_scale", float("embedding_multiplier")),
                ("residual_scale", float("residual_multiplier")),
                ("attention.scale", float("attention_multiplier")),
                ("logit_scale", float("logits_scaling")),
            ]),
            "gpt-oss" => keys.extend(self.gpt_oss_keys()),
            _ if self.architecture == "gemma4" => keys.extend(self.gemma4_keys()),
            "muse-glimmer" => keys.extend([
                ("logit_scale", float("output_multiplier")),
                ("final_logit_softcapping", float("final_logit_softcapping")),
            ]),
            _ => {}
        }
        if self.label == "granite 4" {
            let kv_heads = Value::U32(self.size("num_key_value_heads") as u32);
            keys.extend([
                ("attention.head_count_kv", Value::Array(vec![kv_heads; 2])),
                ("expert_count", Value::U32(0)),
                ("expert_shared_feed_forward_length", Value::U32(INTERMEDIATE as u32)),
                ("rope.scaling.finetuned", Value::Bool(false)),
            ]);
        }
        keys
    }

    /// Returns whether weights are derived from names by a rule that other languages can repeat.
    pub(super) fn is_made_up(&self) -> bool {
        self.config["model_type"].is_string()
    }

    /// Converted tensors of a tensor whose name and shape differ in GGUF, or that has none there;
    /// `None` for others.
    pub(super) fn recent_tensors(&self, name: &str, tensor: &Tensor) -> Option<Vec<(String, Tensor)>> {
        if let Some(layer) = name.strip_suffix(".shared_mlp.input_linear.weight") {
            let (rows, blk) = (tensor.dim(0).unwrap() / 2, layer.replace("model.layers", "blk"));
            // A copy, because a tensor's whole storage is written.
            let half = |at| tensor.narrow(0, at, rows).unwrap().force_contiguous().unwrap();
            return Some(vec![
                (format!("{blk}.ffn_gate.weight"), half(0)),
                (format!("{blk}.ffn_up.weight"), half(rows)),
            ]);
        }
        None
    }

    /// Norms of query and key heads that exist only in GGUF files.
    pub(super) fn fixed_norms(&self) -> Vec<(String, Tensor)> {
        if self.architecture != "muse-glimmer" {
            return Vec::new();
        }
        let norm = |layer, part, by: f64| {
            let ones = Tensor::ones(self.head_size(), DType::F32, &Device::Cpu).unwrap();
            (format!("blk.{layer}.attn_{part}_norm.weight"), (ones * by).unwrap())
        };
        let scale = self.config["qk_scale_factor"].as_f64().unwrap();
        let layers = 0..self.size("num_hidden_layers");
        layers.flat_map(|layer| [norm(layer, "q", scale), norm(layer, "k", 1.0)]).collect()
    }

    pub(super) fn draw_recent(&mut self, layer: &str, queries: usize, keys: usize) {
        let name = |part: &str| format!("{layer}.{part}");
        match self.label {
            "olmo3" => {
                self.norm(&name("self_attn.q_norm"), queries);
                self.norm(&name("self_attn.k_norm"), keys);
                self.norm(&name("post_feedforward_layernorm"), HIDDEN);
                self.tensors.remove(&name("input_layernorm.weight"));
            }
            "muse-glimmer" => {
                self.matrix(&name("self_attn.gate_proj"), queries, HIDDEN);
                self.norm(&name("pre_feedforward_layernorm"), HIDDEN);
                self.norm(&name("post_feedforward_layernorm"), HIDDEN);
            }
            "granite 4" => {
                self.matrix(&name("shared_mlp.input_linear"), 2 * INTERMEDIATE, HIDDEN);
                self.matrix(&name("shared_mlp.output_linear"), HIDDEN, INTERMEDIATE);
                for part in ["gate", "up", "down"] {
                    self.tensors.remove(&name(&format!("mlp.{part}_proj.weight")));
                }
            }
            _ => {}
        }
    }
}
