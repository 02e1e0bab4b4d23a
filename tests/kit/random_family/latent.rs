//! GLM-4.7-Flash and DeepSeek-V2-Lite, which have MLA: sizes, weights, and their conversion to
//! GGUF.

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use serde_json::{Value as Json, json};

use super::{HEADS, HIDDEN, INTERMEDIATE, RandomFamily, VOCABULARY, random};

/// Sizes of a latent, of the parts of a key with and without RoPE, and of a value.
const LATENT: usize = 64;
const TURNED: usize = 24;
const PLAIN: usize = 32;
const VALUE: usize = 48;

/// Experts, experts per token (`USED`), and the width of an expert.
const EXPERTS: usize = 8;
const USED: usize = 3;
const WIDTH: usize = 96;

/// First layers, which are dense.
const DENSE: usize = 1;

const SCALE: f64 = 1.8;

pub fn both() -> [RandomFamily; 2] {
    let common = json!({
        "num_hidden_layers": 3, "num_key_value_heads": HEADS, "rms_norm_eps": 1e-3, "kv_lora_rank": LATENT,
        "qk_rope_head_dim": TURNED, "qk_nope_head_dim": PLAIN, "v_head_dim": VALUE,
        "n_routed_experts": EXPERTS, "num_experts_per_tok": USED, "moe_intermediate_size": WIDTH,
        "first_k_dense_replace": DENSE, "routed_scaling_factor": SCALE, "pad_token_id": null,
    });
    let with = |own: Json| {
        let mut all = common.clone();
        all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        all
    };
    [
        random(
            "glm",
            "deepseek2",
            with(json!({
                "architectures": ["Glm4MoeLiteForCausalLM"], "model_type": "glm4_moe_lite",
                "q_lora_rank": 96, "n_shared_experts": 1, "norm_topk_prob": true, "n_group": 1,
                "topk_group": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
                "mlp_layer_types": ["dense", "sparse", "sparse"],
            })),
        ),
        random(
            "deepseek2",
            "deepseek2",
            with(json!({
                "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
                "q_lora_rank": null, "n_shared_experts": 2, "norm_topk_prob": false,
                "scoring_func": "softmax", "topk_method": "greedy",
                "rope_parameters": {
                    "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "beta_fast": 4.0, "beta_slow": 0.5,
                    "original_max_position_embeddings": 16, "mscale": 0.7, "mscale_all_dim": 0.7,
                },
            })),
        ),
    ]
}

impl RandomFamily {
    /// Returns whether the family has MLA.
    pub fn is_latent(&self) -> bool {
        self.architecture == "deepseek2"
    }

    fn is_glm(&self) -> bool {
        !self.config["q_lora_rank"].is_null()
    }

    pub(super) fn draw_latent(&mut self) {
        self.matrix("model.embed_tokens", VOCABULARY, HIDDEN);
        self.norm("model.norm", HIDDEN);
        self.matrix("lm_head", VOCABULARY, HIDDEN);
        for layer in 0..self.size("num_hidden_layers") {
            self.draw_latent_layer(layer);
        }
    }

    fn draw_latent_layer(&mut self, layer: usize) {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        let of = |part: &str| name(&format!("self_attn.{part}"));
        self.norm(&name("input_layernorm"), HIDDEN);
        self.norm(&name("post_attention_layernorm"), HIDDEN);
        let queries = HEADS * (PLAIN + TURNED);
        if self.is_glm() {
            let rank = self.size("q_lora_rank");
            self.matrix(&of("q_a_proj"), rank, HIDDEN);
            self.norm(&of("q_a_layernorm"), rank);
            self.insert(of("q_b_proj.weight"), &[queries, rank], 0.0, 0.2);
        } else {
            self.insert(of("q_proj.weight"), &[queries, HIDDEN], 0.0, 0.1);
        }
        self.insert(of("kv_a_proj_with_mqa.weight"), &[LATENT + TURNED, HIDDEN], 0.0, 0.1);
        self.norm(&of("kv_a_layernorm"), LATENT);
        self.insert(of("kv_b_proj.weight"), &[HEADS * (PLAIN + VALUE), LATENT], 0.0, 0.2);
        self.matrix(&of("o_proj"), HIDDEN, HEADS * VALUE);
        if layer < DENSE {
            return self.draw_gated(&name("mlp"), INTERMEDIATE);
        }
        // Scores are far apart, so that rounding seldom decides the routing and the bias often
        // does.
        self.insert(name("mlp.gate.weight"), &[EXPERTS, HIDDEN], 0.0, 0.3);
        if self.is_glm() {
            self.insert(name("mlp.gate.e_score_correction_bias"), &[EXPERTS], 0.0, 0.5);
        }
        for expert in 0..EXPERTS {
            self.draw_gated(&name(&format!("mlp.experts.{expert}")), WIDTH);
        }
        self.draw_gated(&name("mlp.shared_experts"), WIDTH * self.size("n_shared_experts"));
    }

    /// Returns the family with an MTP block, which files of this family count as a layer.
    pub(super) fn with_numbered_mtp(&self) -> Self {
        let mut family = self.clone();
        let block = self.size("num_hidden_layers");
        family.config["num_nextn_predict_layers"] = json!(1);
        family.draw_latent_layer(block);
        let name = |part: &str| format!("model.layers.{block}.{part}");
        family.matrix(&name("eh_proj"), HIDDEN, 2 * HIDDEN);
        for norm in ["enorm", "hnorm", "shared_head.norm"] {
            family.norm(&name(norm), HIDDEN);
        }
        family
    }

    /// Layers, including an MTP block if there is one.
    fn blocks(&self) -> usize {
        let beyond = !self.config["num_nextn_predict_layers"].is_null();
        self.size("num_hidden_layers") + usize::from(beyond)
    }

    fn draw_gated(&mut self, name: &str, width: usize) {
        for (part, rows, columns) in [("gate", width, HIDDEN), ("up", width, HIDDEN), ("down", HIDDEN, width)]
        {
            self.matrix(&format!("{name}.{part}_proj"), rows, columns);
        }
    }

    pub(super) fn latent_keys(&self) -> Vec<(&'static str, Value)> {
        if !self.is_latent() {
            return Vec::new();
        }
        let number = |number: usize| Value::U32(number as u32);
        let mut keys = vec![
            ("attention.head_count_kv", number(1)),
            ("attention.key_length", number(LATENT + TURNED)),
            ("attention.value_length", number(LATENT)),
            ("attention.key_length_mla", number(PLAIN + TURNED)),
            ("attention.value_length_mla", number(VALUE)),
            ("attention.kv_lora_rank", number(LATENT)),
            ("rope.dimension_count", number(TURNED)),
            ("expert_count", number(EXPERTS)),
            ("expert_used_count", number(self.size("num_experts_per_tok"))),
            ("expert_feed_forward_length", number(WIDTH)),
            ("expert_shared_count", number(self.size("n_shared_experts"))),
            ("expert_weights_scale", Value::F32(SCALE as f32)),
            ("expert_gating_func", number(if self.is_glm() { 2 } else { 1 })),
            ("leading_dense_block_count", number(DENSE)),
        ];
        if self.blocks() > self.size("num_hidden_layers") {
            keys.extend([("block_count", number(self.blocks())), ("nextn_predict_layers", number(1))]);
        }
        if self.is_glm() {
            let rank = number(self.size("q_lora_rank"));
            keys.extend([("attention.q_lora_rank", rank), ("expert_weights_norm", Value::Bool(true))]);
        }
        if let Some(weight) = self.config["rope_parameters"]["mscale_all_dim"].as_f64() {
            keys.push(("rope.scaling.yarn_log_multiplier", Value::F32((0.1 * weight) as f32)));
        }
        keys
    }

    /// Converted tensors of a layer's tensor that the converter changes; `None` for others.
    pub(super) fn latent_tensors(&self, name: &str, tensor: &Tensor) -> Option<Vec<(String, Tensor)>> {
        if !self.is_latent() {
            return None;
        }
        let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
        let full = |part: &str| format!("blk.{layer}.{part}");
        let one = |part: &str| Some(vec![(full(part), tensor.clone())]);
        match rest {
            "self_attn.q_a_proj.weight" => one("attn_q_a.weight"),
            "self_attn.q_a_layernorm.weight" => one("attn_q_a_norm.weight"),
            "self_attn.q_b_proj.weight" => one("attn_q_b.weight"),
            "self_attn.kv_a_proj_with_mqa.weight" => one("attn_kv_a_mqa.weight"),
            "self_attn.kv_a_layernorm.weight" => one("attn_kv_a_norm.weight"),
            "eh_proj.weight" | "enorm.weight" | "hnorm.weight" => one(&format!("nextn.{rest}")),
            "shared_head.norm.weight" => one("nextn.shared_head_norm.weight"),
            "mlp.gate.e_score_correction_bias" => one("exp_probs_b.bias"),
            "mlp.shared_experts.gate_proj.weight" => one("ffn_gate_shexp.weight"),
            "mlp.shared_experts.up_proj.weight" => one("ffn_up_shexp.weight"),
            "mlp.shared_experts.down_proj.weight" => one("ffn_down_shexp.weight"),
            "self_attn.kv_b_proj.weight" => {
                let both = tensor.reshape((HEADS, PLAIN + VALUE, LATENT)).unwrap();
                let keys = both.narrow(1, 0, PLAIN).unwrap().transpose(1, 2).unwrap();
                let values = both.narrow(1, PLAIN, VALUE).unwrap();
                Some(vec![
                    (full("attn_k_b.weight"), keys.force_contiguous().unwrap()),
                    (full("attn_v_b.weight"), values.force_contiguous().unwrap()),
                ])
            }
            _ => None,
        }
    }

    /// Stacks the matrices of a layer's experts into one tensor each.
    pub(super) fn latent_experts(&self) -> Vec<(String, Tensor)> {
        if !self.is_latent() {
            return Vec::new();
        }
        let stacked = |layer: usize, part: &str| {
            let of = |expert| {
                &self.tensors[&format!("model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight")]
            };
            let all: Vec<&Tensor> = (0..EXPERTS).map(of).collect();
            (format!("blk.{layer}.ffn_{part}_exps.weight"), Tensor::stack(&all, 0).unwrap())
        };
        let layers = DENSE..self.blocks();
        layers.flat_map(|layer| ["gate", "up", "down"].map(|part| stacked(layer, part))).collect()
    }
}
