//! Granite 4 with Mamba layers, dense and with experts: sizes, weights, and their conversion to
//! GGUF.

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use serde_json::{Value as Json, json};

use super::{HEADS, HIDDEN, INTERMEDIATE, KV_HEADS, RandomFamily, random};

/// Heads of a Mamba layer, the size of a head and of its keys, and the taps of its convolution.
const VALUES: usize = 8;
const SIZE: usize = 64;
const STATE: usize = 32;
const TAPS: usize = 4;

/// Experts, experts per token (`USED`), and the widths of an expert and of the shared expert.
const EXPERTS: usize = 6;
const USED: usize = 3;
const WIDTH: usize = 96;
const SHARED: usize = 64;

/// A dense model whose heads share one key, and one with experts and two keys.
pub fn both() -> [RandomFamily; 2] {
    let mamba = json!({
        "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid",
        "num_hidden_layers": 4, "layer_types": ["mamba", "mamba", "attention", "mamba"],
        "rms_norm_eps": 1e-3, "embedding_multiplier": 7.0, "residual_multiplier": 0.5,
        "attention_multiplier": 0.2, "logits_scaling": 0.5, "position_embedding_type": "nope",
        "mamba_n_heads": VALUES, "mamba_d_head": SIZE, "mamba_d_state": STATE, "mamba_d_conv": TAPS,
        "mamba_expand": 2, "mamba_n_groups": 1, "mamba_conv_bias": true, "mamba_proj_bias": false,
        "num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": INTERMEDIATE,
    });
    let with = |own: Json| {
        let mut all = mamba.clone();
        all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        all
    };
    [
        random("granitehybrid", "granitehybrid", with(json!({"tie_word_embeddings": true}))),
        random(
            "granitehybrid with experts",
            "granitehybrid",
            with(json!({
                "mamba_n_groups": 2, "num_local_experts": EXPERTS, "num_experts_per_tok": USED,
                "intermediate_size": WIDTH, "shared_intermediate_size": SHARED,
            })),
        ),
    ]
}

impl RandomFamily {
    fn groups(&self) -> usize {
        self.size("mamba_n_groups")
    }

    fn has_local_experts(&self) -> bool {
        self.size("num_local_experts") > 0
    }

    pub(super) fn draw_mamba(&mut self, name: &dyn Fn(&str) -> String) {
        let of = |part: &str| name(&format!("mamba.{part}"));
        let (width, channels) = (VALUES * SIZE, VALUES * SIZE + 2 * self.groups() * STATE);
        self.matrix(&of("in_proj"), width + channels + VALUES, HIDDEN);
        self.insert(of("conv1d.weight"), &[channels, 1, TAPS], 0.0, 0.5);
        self.insert(of("conv1d.bias"), &[channels], 0.0, 0.5);
        self.insert(of("dt_bias"), &[VALUES], -1.5, 1.0);
        self.insert(of("A_log"), &[VALUES], -0.5, 1.0);
        self.insert(of("D"), &[VALUES], 1.0, 0.5);
        self.insert(of("norm.weight"), &[width], 1.0, 0.2);
        self.matrix(&of("out_proj"), HIDDEN, width);
    }

    pub(super) fn draw_granite_attention(&mut self, name: &dyn Fn(&str) -> String) {
        let size = self.head_size();
        for (part, rows) in [("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)] {
            self.matrix(&name(&format!("self_attn.{part}_proj")), rows * size, HIDDEN);
        }
        self.matrix(&name("self_attn.o_proj"), HIDDEN, HEADS * size);
    }

    pub(super) fn draw_granite_feed(&mut self, name: &dyn Fn(&str) -> String) {
        let shared = self.size("shared_intermediate_size");
        self.matrix(&name("shared_mlp.input_linear"), 2 * shared, HIDDEN);
        self.matrix(&name("shared_mlp.output_linear"), HIDDEN, shared);
        if self.has_local_experts() {
            let of = |part: &str| name(&format!("block_sparse_moe.{part}.weight"));
            // Scores are far apart, so that rounding seldom decides the routing.
            self.insert(of("router.layer"), &[EXPERTS, HIDDEN], 0.0, 0.3);
            self.insert(of("input_linear"), &[EXPERTS, 2 * WIDTH, HIDDEN], 0.0, 0.05);
            self.insert(of("output_linear"), &[EXPERTS, HIDDEN, WIDTH], 0.0, 0.05);
        }
    }

    pub(super) fn granite_hybrid_keys(&self, recurrent: &[bool]) -> Vec<(&'static str, Value)> {
        let number = |number: usize| Value::U32(number as u32);
        let float = |key: &str| Value::F32(self.config[key].as_f64().unwrap() as f32);
        let heads = recurrent.iter().map(|&recurrent| number(if recurrent { 0 } else { KV_HEADS }));
        let mut keys = vec![
            ("attention.head_count_kv", Value::Array(heads.collect())),
            ("rope.scaling.finetuned", Value::Bool(false)),
            ("embedding_scale", float("embedding_multiplier")),
            ("residual_scale", float("residual_multiplier")),
            ("attention.scale", float("attention_multiplier")),
            ("logit_scale", float("logits_scaling")),
            ("expert_shared_feed_forward_length", number(self.size("shared_intermediate_size"))),
            ("ssm.conv_kernel", number(TAPS)),
            ("ssm.state_size", number(STATE)),
            ("ssm.group_count", number(self.groups())),
            ("ssm.time_step_rank", number(VALUES)),
            ("ssm.inner_size", number(VALUES * SIZE)),
        ];
        if self.has_local_experts() {
            // GGUF stores the width of an expert as that of the feed-forward network.
            keys.extend([("expert_count", number(EXPERTS)), ("expert_used_count", number(USED))]);
        }
        keys
    }

    /// Converted tensors of a layer's tensor that the converter changes; `None` for others.
    pub(super) fn granite_hybrid_tensors(
        &self,
        name: &str,
        tensor: &Tensor,
    ) -> Option<Vec<(String, Tensor)>> {
        let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
        let full = |part: &str| format!("blk.{layer}.{part}");
        let half = |at: usize, dimension: usize| {
            let rows = tensor.dim(dimension).unwrap() / 2;
            tensor.narrow(dimension, at * rows, rows).unwrap().force_contiguous().unwrap()
        };
        let which = if self.has_local_experts() { "_shexp" } else { "" };
        let network = |part: &str| full(&format!("ffn_{part}{which}.weight"));
        let width = VALUES * SIZE;
        let one = |part: &str, tensor: Tensor| vec![(full(part), tensor)];
        Some(match rest {
            "shared_mlp.input_linear.weight" => {
                vec![(network("gate"), half(0, 0)), (network("up"), half(1, 0))]
            }
            "shared_mlp.output_linear.weight" => vec![(network("down"), tensor.clone())],
            "block_sparse_moe.router.layer.weight" => one("ffn_gate_inp.weight", tensor.clone()),
            "block_sparse_moe.output_linear.weight" => one("ffn_down_exps.weight", tensor.clone()),
            "block_sparse_moe.input_linear.weight" => {
                vec![(full("ffn_gate_exps.weight"), half(0, 1)), (full("ffn_up_exps.weight"), half(1, 1))]
            }
            "mamba.in_proj.weight" => one("ssm_in.weight", tensor.clone()),
            "mamba.out_proj.weight" => one("ssm_out.weight", tensor.clone()),
            "mamba.conv1d.bias" => one("ssm_conv1d.bias", tensor.clone()),
            "mamba.dt_bias" => one("ssm_dt.bias", tensor.clone()),
            "mamba.conv1d.weight" => one("ssm_conv1d.weight", tensor.squeeze(1).unwrap()),
            "mamba.A_log" => one("ssm_a", tensor.exp().unwrap().neg().unwrap().unsqueeze(1).unwrap()),
            "mamba.D" => one("ssm_d", tensor.unsqueeze(1).unwrap()),
            "mamba.norm.weight" => {
                one("ssm_norm.weight", tensor.reshape((self.groups(), width / self.groups())).unwrap())
            }
            _ => return None,
        })
    }
}
