//! Gemma 4: small models with shared KV caches and per-layer inputs, and larger ones with experts
//! beside dense networks.

use candle_core::quantized::gguf_file::Value;
use candle_core::{Device, Tensor};
use serde_json::{Value as Json, json};

use super::{HIDDEN, INTERMEDIATE, KV_HEADS, RandomFamily, random};

const THETA: f64 = 5e4;

/// A model in which half of the layers have a window and heads of half the size.
fn gemma4(label: &'static str, differences: &Json) -> RandomFamily {
    let sliding = ["sliding_attention", "full_attention"];
    let layers = differences["num_hidden_layers"].as_u64().unwrap() as usize;
    let mut config = json!({
        "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "head_dim": 32, "global_head_dim": 64,
        "layer_types": (0..layers).map(|layer| sliding[layer % 2]).collect::<Vec<_>>(), "sliding_window": 9,
        "rms_norm_eps": 1e-2, "hidden_act": null, "hidden_activation": "gelu_pytorch_tanh",
        "final_logit_softcapping": 3.0, "tie_word_embeddings": true, "pad_token_id": 0,
        "rope_parameters": {
            "full_attention": {
                "rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": THETA,
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    });
    config.as_object_mut().unwrap().extend(differences.as_object().unwrap().clone());
    random(label, "gemma4", config)
}

pub fn both() -> [RandomFamily; 2] {
    let shared = json!({
        "num_hidden_layers": 6, "num_kv_shared_layers": 2, "use_double_wide_mlp": true,
        "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 320,
    });
    let routed = json!({
        "num_hidden_layers": 4, "hidden_size_per_layer_input": 0, "attention_k_eq_v": true,
        "num_global_key_value_heads": 1, "enable_moe_block": true, "num_experts": 8, "top_k_experts": 2,
        "moe_intermediate_size": 96,
    });
    [gemma4("gemma4", &shared), gemma4("gemma4 with experts", &routed)]
}

/// A model in which values of layers without a window are keys, as in the largest ones.
pub fn dense_gemma4() -> RandomFamily {
    let config = json!({
        "num_hidden_layers": 4, "hidden_size_per_layer_input": 0, "attention_k_eq_v": true,
        "num_global_key_value_heads": 1,
    });
    gemma4("gemma4 without experts", &config)
}

/// GGUF names that no other family has.
pub const NAMES: [(&str, &str); 11] = [
    ("model.embed_tokens_per_layer", "per_layer_token_embd"),
    ("model.per_layer_model_projection", "per_layer_model_proj"),
    ("model.per_layer_projection_norm", "per_layer_proj_norm"),
    ("post_per_layer_input_norm", "post_norm"),
    ("per_layer_input_gate", "inp_gate"),
    ("per_layer_projection", "proj"),
    ("layer_scalar", "layer_output_scale.weight"),
    ("pre_feedforward_layernorm_2", "pre_ffw_norm_2"),
    ("router.proj", "ffn_gate_inp"),
    ("router.scale", "ffn_gate_inp.scale"),
    ("router.per_expert_scale", "ffn_down_exps.scale"),
];

impl RandomFamily {
    /// Size of a layer's heads, and its number of key heads.
    pub(super) fn heads_of(&self, layer: usize) -> (usize, usize) {
        if self.architecture != "gemma4" || self.config["layer_types"][layer] == "sliding_attention" {
            return (self.head_size(), KV_HEADS);
        }
        let own = self.config["num_global_key_value_heads"].as_u64();
        (self.size("global_head_dim"), own.map_or(KV_HEADS, |own| own as usize))
    }

    /// Returns whether a layer uses another layer's KV cache.
    pub(super) fn shares(&self, layer: usize) -> bool {
        let shared = self.config["num_kv_shared_layers"].as_u64().unwrap_or(0) as usize;
        self.architecture == "gemma4" && layer + shared >= self.size("num_hidden_layers")
    }

    pub(super) fn intermediate_of(&self, layer: usize) -> usize {
        let twice = self.config["use_double_wide_mlp"] == true && self.shares(layer);
        if twice { 2 * INTERMEDIATE } else { INTERMEDIATE }
    }

    fn per_layer(&self) -> usize {
        self.config["hidden_size_per_layer_input"].as_u64().unwrap_or(0) as usize
    }

    /// Draws the tensors before the layers.
    pub(super) fn draw_gemma4(&mut self) {
        let (width, layers) = (self.per_layer(), self.size("num_hidden_layers"));
        if width > 0 {
            self.matrix("model.embed_tokens_per_layer", super::VOCABULARY, layers * width);
            self.matrix("model.per_layer_model_projection", layers * width, HIDDEN);
            self.norm("model.per_layer_projection_norm", width);
        }
    }

    pub(super) fn draw_gemma4_layer(&mut self, layer: &str) {
        let name = |part: &str| format!("{layer}.{part}");
        let width = self.per_layer();
        self.insert(name("layer_scalar"), &[1], 1.0, 0.3);
        for part in ["pre_feedforward_layernorm", "post_feedforward_layernorm"] {
            self.norm(&name(part), HIDDEN);
        }
        if width > 0 {
            self.matrix(&name("per_layer_input_gate"), width, HIDDEN);
            self.matrix(&name("per_layer_projection"), HIDDEN, width);
            self.norm(&name("post_per_layer_input_norm"), HIDDEN);
        }
        if self.config["enable_moe_block"] == true {
            let (experts, inside) = (self.size("num_experts"), self.size("moe_intermediate_size"));
            for part in [
                "post_feedforward_layernorm_1",
                "pre_feedforward_layernorm_2",
                "post_feedforward_layernorm_2",
            ] {
                self.norm(&name(part), HIDDEN);
            }
            // Scores are far apart, so that rounding seldom decides the routing.
            self.insert(name("router.proj.weight"), &[experts, HIDDEN], 0.0, 4.0);
            self.insert(name("router.scale"), &[HIDDEN], 1.0, 0.3);
            self.insert(name("router.per_expert_scale"), &[experts], 1.0, 0.3);
            self.insert(name("experts.gate_up_proj"), &[experts, 2 * inside, HIDDEN], 0.0, 0.05);
            self.insert(name("experts.down_proj"), &[experts, HIDDEN, inside], 0.0, 0.05);
        }
    }

    /// Stacks of a layer's experts as the converter writes them.
    pub(super) fn gemma4_experts(&self, layer: usize) -> Vec<(String, Tensor)> {
        let stack = |part: &str, name: &str| {
            let tensor = self.tensors.get(&format!("model.layers.{layer}.experts.{part}"))?;
            Some((format!("blk.{layer}.{name}.weight"), tensor.clone()))
        };
        let stacks = [("gate_up_proj", "ffn_gate_up_exps"), ("down_proj", "ffn_down_exps")];
        stacks.into_iter().filter_map(|(part, name)| stack(part, name)).collect()
    }

    pub(super) fn gemma4_keys(&self) -> Vec<(&'static str, Value)> {
        let number = |key: &str| Value::U32(self.config[key].as_u64().unwrap_or(0) as u32);
        let whole = |number: usize| Value::U32(number as u32);
        let layers = 0..self.size("num_hidden_layers");
        let (global, local) = (self.size("global_head_dim"), self.head_size());
        let mut keys = vec![
            ("attention.key_length", whole(global)),
            ("attention.value_length", whole(global)),
            ("attention.key_length_swa", whole(local)),
            ("attention.value_length_swa", whole(local)),
            (
                "attention.head_count_kv",
                Value::Array(layers.clone().map(|layer| whole(self.heads_of(layer).1)).collect()),
            ),
            ("attention.shared_kv_layers", number("num_kv_shared_layers")),
            ("embedding_length_per_layer_input", number("hidden_size_per_layer_input")),
            (
                "feed_forward_length",
                Value::Array(layers.map(|layer| whole(self.intermediate_of(layer))).collect()),
            ),
            ("rope.freq_base", Value::F32(THETA as f32)),
            ("rope.freq_base_swa", Value::F32(1e4)),
            ("rope.dimension_count", whole(global)),
            ("rope.dimension_count_swa", whole(local)),
            ("final_logit_softcapping", Value::F32(3.0)),
        ];
        if self.config["enable_moe_block"] == true {
            keys.extend([
                ("expert_count", number("num_experts")),
                ("expert_used_count", number("top_k_experts")),
                ("expert_feed_forward_length", number("moe_intermediate_size")),
            ]);
        }
        keys
    }

    /// RoPE frequency factors of layers without a window.
    pub(super) fn gemma4_factors(&self) -> Vec<(String, Tensor)> {
        if self.architecture != "gemma4" {
            return Vec::new();
        }
        let pairs = self.size("global_head_dim") / 2;
        let factors: Vec<f32> = (0..pairs).map(|pair| if pair < pairs / 4 { 1.0 } else { 1e30 }).collect();
        vec![("rope_freqs.weight".to_owned(), Tensor::new(factors, &Device::Cpu).unwrap())]
    }
}
