//! LFM2 with experts: sizes, weights, and their conversion to GGUF.

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use serde_json::json;

use super::{HIDDEN, INTERMEDIATE, KV_HEADS, RandomFamily, random};

/// Experts, experts per token (`USED`), and the width of an expert.
const EXPERTS: usize = 8;
const USED: usize = 3;
const WIDTH: usize = 96;

/// First layers, which are dense.
const DENSE: usize = 1;

/// Factor on expert weights.
const SCALE: f64 = 1.5;

/// Names of an expert's gate, up and down matrices.
const PARTS: [(&str, &str); 3] = [("w1", "gate"), ("w3", "up"), ("w2", "down")];

pub fn lfm2moe() -> RandomFamily {
    random(
        "lfm2moe",
        "lfm2moe",
        json!({
            "architectures": ["Lfm2MoeForCausalLM"], "model_type": "lfm2_moe", "num_hidden_layers": 4,
            "layer_types": ["conv", "conv", "full_attention", "conv"], "conv_L_cache": 3,
            "conv_bias": false, "norm_eps": 1e-3, "tie_word_embeddings": true, "pad_token_id": null,
            "num_experts": EXPERTS, "num_experts_per_tok": USED, "moe_intermediate_size": WIDTH,
            "num_dense_layers": DENSE, "use_expert_bias": true, "norm_topk_prob": true,
            "routed_scaling_factor": SCALE,
        }),
    )
}

impl RandomFamily {
    /// Draws a layer's feed-forward network or its experts.
    pub(super) fn draw_lfm2moe(&mut self, layer: usize, name: &dyn Fn(&str) -> String) {
        if layer < DENSE {
            return self.draw_network(name, [0, 1, 2].map(|part| format!("feed_forward.{}", PARTS[part].0)));
        }
        // Scores are far apart, so that rounding seldom decides the routing and the bias often
        // does.
        self.insert(name("feed_forward.gate.weight"), &[EXPERTS, HIDDEN], 0.0, 0.3);
        self.insert(name("feed_forward.expert_bias"), &[EXPERTS], 0.0, 0.5);
        for (expert, (part, of)) in (0..EXPERTS).flat_map(|expert| PARTS.map(|part| (expert, part))) {
            let (rows, columns) = if of == "down" { (HIDDEN, WIDTH) } else { (WIDTH, HIDDEN) };
            self.matrix(&name(&format!("feed_forward.experts.{expert}.{part}")), rows, columns);
        }
    }

    /// Returns the family with the matrices of a layer's experts in two tensors, as transformers
    /// holds them in memory.
    pub fn with_stacked_experts(&self) -> Self {
        let mut family = Self { label: "lfm2moe, stacked", ..self.clone() };
        for layer in DENSE..self.size("num_hidden_layers") {
            let [gate, up, down] = PARTS.map(|(part, _)| self.of_all_experts(layer, part));
            let name = |part: &str| format!("model.layers.{layer}.feed_forward.experts.{part}");
            family.tensors.insert(name("gate_up_proj"), Tensor::cat(&[gate, up], 1).unwrap());
            family.tensors.insert(name("down_proj"), down);
        }
        family.tensors.retain(|name, _| !name.contains(".experts.") || name.ends_with("_proj"));
        family
    }

    fn of_all_experts(&self, layer: usize, part: &str) -> Tensor {
        let of = |expert| {
            &self.tensors[&format!("model.layers.{layer}.feed_forward.experts.{expert}.{part}.weight")]
        };
        Tensor::stack(&(0..EXPERTS).map(of).collect::<Vec<_>>(), 0).unwrap()
    }

    /// Converted experts: the matrices of all as one tensor each.
    pub(super) fn lfm2moe_experts(&self) -> Vec<(String, Tensor)> {
        let of_layer = |layer: usize| {
            let stacked = |(part, of): (&str, &str)| {
                (format!("blk.{layer}.ffn_{of}_exps.weight"), self.of_all_experts(layer, part))
            };
            PARTS.map(stacked)
        };
        (DENSE..self.size("num_hidden_layers")).flat_map(of_layer).collect()
    }

    pub(super) fn lfm2moe_keys(&self, recurrent: &[bool]) -> Vec<(&'static str, Value)> {
        let number = |number: usize| Value::U32(number as u32);
        let heads = recurrent.iter().map(|&recurrent| number(if recurrent { 0 } else { KV_HEADS }));
        vec![
            ("attention.head_count_kv", Value::Array(heads.collect())),
            ("attention.layer_norm_rms_epsilon", Value::F32(1e-3)),
            ("feed_forward_length", number(INTERMEDIATE)),
            ("shortconv.l_cache", number(3)),
            ("expert_count", number(EXPERTS)),
            ("expert_used_count", number(USED)),
            ("expert_feed_forward_length", number(WIDTH)),
            ("expert_gating_func", number(2)),
            ("expert_weights_scale", Value::F32(SCALE as f32)),
            ("leading_dense_block_count", number(DENSE)),
        ]
    }
}
