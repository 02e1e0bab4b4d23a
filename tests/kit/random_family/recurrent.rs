//! Families with recurrent layers: their weights, and the conversion to GGUF.

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use serde_json::json;

use super::granite_hybrid;
use super::lfm2moe::lfm2moe;
use super::{HEADS, HIDDEN, INTERMEDIATE, KV_HEADS, RandomFamily, VOCABULARY, random};

/// Key heads and value heads of Gated DeltaNet, the size of either, and the taps of its
/// convolution.
const KEYS: usize = 2;
const VALUES: usize = 4;
const SIZE: usize = 32;
const TAPS: usize = 4;

/// Channels of a convolved row: queries, keys and values.
const CHANNELS: usize = (2 * KEYS + VALUES) * SIZE;

/// Experts, experts per token (`USED`), and the widths of an expert and of the shared expert.
const EXPERTS: usize = 8;
const USED: usize = 3;
const WIDTH: usize = 96;
const SHARED: usize = 64;

pub fn recurrent() -> Vec<RandomFamily> {
    let delta = json!({
        "num_hidden_layers": 4, "head_dim": 64, "rms_norm_eps": 1e-3,
        "layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"],
        "linear_conv_kernel_dim": TAPS, "linear_key_head_dim": SIZE, "linear_value_head_dim": SIZE,
        "linear_num_key_heads": KEYS, "linear_num_value_heads": VALUES,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25,
            "mrope_section": [3, 3, 2], "mrope_interleaved": true,
        },
    });
    let with = |mut own: serde_json::Value| {
        own.as_object_mut().unwrap().extend(delta.as_object().unwrap().clone());
        own
    };
    let [dense, with_experts] = granite_hybrid::both();
    vec![
        random(
            "lfm2",
            "lfm2",
            json!({
                "architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "num_hidden_layers": 4,
                "layer_types": ["conv", "conv", "full_attention", "conv"], "conv_L_cache": 3,
                "conv_bias": false, "norm_eps": 1e-3, "tie_word_embeddings": true,
                // Two thirds of it, in multiples of 32.
                "intermediate_size": 520, "block_multiple_of": 32, "block_ffn_dim_multiplier": 1.0,
                "block_auto_adjust_ff_dim": true, "pad_token_id": null,
            }),
        ),
        lfm2moe(),
        dense,
        with_experts,
        random(
            "qwen35",
            "qwen35",
            with(json!({"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text"})),
        ),
        random(
            "qwen35moe",
            "qwen35moe",
            with(json!({
                "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text",
                "num_experts": EXPERTS, "num_experts_per_tok": USED, "moe_intermediate_size": WIDTH,
                "shared_expert_intermediate_size": SHARED,
            })),
        ),
    ]
}

impl RandomFamily {
    /// Returns whether some layers are recurrent.
    pub fn is_recurrent(&self) -> bool {
        self.is_granite_hybrid() || matches!(self.architecture, "lfm2" | "lfm2moe" | "qwen35" | "qwen35moe")
    }

    pub(super) fn is_granite_hybrid(&self) -> bool {
        self.architecture == "granitehybrid"
    }

    /// Returns for every layer whether it is recurrent.
    fn recurrent_layers(&self) -> Vec<bool> {
        let kinds = self.config["layer_types"].as_array().unwrap().iter();
        kinds.map(|kind| kind != "full_attention" && kind != "attention").collect()
    }

    pub(super) fn draw_recurrent(&mut self) {
        let is_lfm2 = self.is_lfm2();
        self.matrix("model.embed_tokens", VOCABULARY, HIDDEN);
        self.norm(if is_lfm2 { "model.embedding_norm" } else { "model.norm" }, HIDDEN);
        if !self.ties_embeddings() {
            self.matrix("lm_head", VOCABULARY, HIDDEN);
        }
        for (layer, recurrent) in self.recurrent_layers().into_iter().enumerate() {
            let name = |part: &str| format!("model.layers.{layer}.{part}");
            match (is_lfm2, recurrent) {
                _ if self.is_granite_hybrid() && recurrent => self.draw_mamba(&name),
                _ if self.is_granite_hybrid() => self.draw_granite_attention(&name),
                (true, true) => self.draw_convolution(&name),
                (false, true) => self.draw_delta(&name),
                (_, false) => self.draw_attention(&name),
            }
            self.draw_norms(&name);
            match self.architecture {
                "lfm2moe" => self.draw_lfm2moe(layer, &name),
                "granitehybrid" => self.draw_granite_feed(&name),
                _ => self.draw_feed_forward(&name),
            }
        }
    }

    fn is_lfm2(&self) -> bool {
        matches!(self.architecture, "lfm2" | "lfm2moe")
    }

    pub(super) fn draw_norms(&mut self, name: &dyn Fn(&str) -> String) {
        let norms = match self.is_lfm2() {
            true => ["operator_norm", "ffn_norm"],
            false => ["input_layernorm", "post_attention_layernorm"],
        };
        norms.iter().for_each(|norm| self.norm(&name(norm), HIDDEN));
    }

    /// Draws a layer's feed-forward network or its experts.
    pub(super) fn draw_feed_forward(&mut self, name: &dyn Fn(&str) -> String) {
        match self.architecture {
            "qwen35moe" => self.draw_experts(name),
            "lfm2" => self.draw_network(name, ["w1", "w3", "w2"].map(|part| format!("feed_forward.{part}"))),
            _ => self.draw_network(name, ["gate", "up", "down"].map(|part| format!("mlp.{part}_proj"))),
        }
    }

    pub(super) fn draw_network(&mut self, name: &dyn Fn(&str) -> String, [gate, up, down]: [String; 3]) {
        self.matrix(&name(&gate), INTERMEDIATE, HIDDEN);
        self.matrix(&name(&up), INTERMEDIATE, HIDDEN);
        self.matrix(&name(&down), HIDDEN, INTERMEDIATE);
    }

    pub(super) fn draw_attention(&mut self, name: &dyn Fn(&str) -> String) {
        let size = self.head_size();
        let (queries, keys) = (HEADS * size, KV_HEADS * size);
        let (gates, output, norms) = match self.architecture {
            "lfm2" | "lfm2moe" => {
                (0, "self_attn.out_proj", ["self_attn.q_layernorm", "self_attn.k_layernorm"])
            }
            _ => (queries, "self_attn.o_proj", ["self_attn.q_norm", "self_attn.k_norm"]),
        };
        self.matrix(&name("self_attn.q_proj"), queries + gates, HIDDEN);
        self.matrix(&name("self_attn.k_proj"), keys, HIDDEN);
        self.matrix(&name("self_attn.v_proj"), keys, HIDDEN);
        self.matrix(&name(output), HIDDEN, queries);
        norms.iter().for_each(|norm| self.norm(&name(norm), size));
    }

    fn draw_experts(&mut self, name: &dyn Fn(&str) -> String) {
        self.matrix(&name("mlp.gate"), EXPERTS, HIDDEN);
        self.insert(name("mlp.experts.gate_up_proj"), &[EXPERTS, 2 * WIDTH, HIDDEN], 0.0, 0.05);
        self.insert(name("mlp.experts.down_proj"), &[EXPERTS, HIDDEN, WIDTH], 0.0, 0.05);
        self.matrix(&name("mlp.shared_expert.gate_proj"), SHARED, HIDDEN);
        self.matrix(&name("mlp.shared_expert.up_proj"), SHARED, HIDDEN);
        self.matrix(&name("mlp.shared_expert.down_proj"), HIDDEN, SHARED);
        self.matrix(&name("mlp.shared_expert_gate"), 1, HIDDEN);
    }

    /// Converted experts: the matrices of all as one tensor each.
    pub(super) fn recurrent_experts(&self) -> Vec<(String, Tensor)> {
        if self.architecture == "lfm2moe" {
            return self.lfm2moe_experts();
        }
        if self.architecture != "qwen35moe" {
            return Vec::new();
        }
        let layers = self.size("num_hidden_layers");
        let blocks = self.config["mtp_num_hidden_layers"].as_u64().unwrap_or(0) as usize;
        let of_layer = |layer: usize| {
            let of = match layer.checked_sub(layers) {
                Some(block) => format!("mtp.layers.{block}"),
                None => format!("model.layers.{layer}"),
            };
            let tensor = |name: &str| &self.tensors[&format!("{of}.mlp.experts.{name}")];
            let half = |at| tensor("gate_up_proj").narrow(1, at, WIDTH).unwrap().force_contiguous().unwrap();
            let name = |part: &str| format!("blk.{layer}.ffn_{part}_exps.weight");
            [(name("gate"), half(0)), (name("up"), half(WIDTH)), (name("down"), tensor("down_proj").clone())]
        };
        (0..layers + blocks).flat_map(of_layer).collect()
    }

    fn draw_convolution(&mut self, name: &dyn Fn(&str) -> String) {
        self.matrix(&name("conv.in_proj"), 3 * HIDDEN, HIDDEN);
        self.insert(name("conv.conv.weight"), &[HIDDEN, 1, 3], 0.0, 0.5);
        self.matrix(&name("conv.out_proj"), HIDDEN, HIDDEN);
    }

    fn draw_delta(&mut self, name: &dyn Fn(&str) -> String) {
        let of = |part: &str| name(&format!("linear_attn.{part}"));
        self.matrix(&of("in_proj_qkv"), CHANNELS, HIDDEN);
        self.matrix(&of("in_proj_z"), VALUES * SIZE, HIDDEN);
        self.matrix(&of("in_proj_b"), VALUES, HIDDEN);
        self.matrix(&of("in_proj_a"), VALUES, HIDDEN);
        self.insert(of("conv1d.weight"), &[CHANNELS, 1, TAPS], 0.0, 0.5);
        self.insert(of("dt_bias"), &[VALUES], -1.5, 1.0);
        self.insert(of("A_log"), &[VALUES], -0.5, 1.0);
        self.insert(of("norm.weight"), &[SIZE], 1.0, 0.2);
        self.matrix(&of("out_proj"), HIDDEN, VALUES * SIZE);
    }

    /// GGUF keys that other families do not have.
    pub(super) fn recurrent_keys(&self) -> Vec<(&'static str, Value)> {
        if !self.is_recurrent() {
            return Vec::new();
        }
        let number = |number: usize| Value::U32(number as u32);
        let heads =
            self.recurrent_layers().into_iter().map(|recurrent| number(if recurrent { 0 } else { KV_HEADS }));
        let mut keys = match self.architecture {
            "lfm2moe" => self.lfm2moe_keys(&self.recurrent_layers()),
            "granitehybrid" => self.granite_hybrid_keys(&self.recurrent_layers()),
            "lfm2" => vec![
                ("attention.head_count_kv", Value::Array(heads.collect())),
                (
                    "attention.layer_norm_rms_epsilon",
                    Value::F32(self.config["norm_eps"].as_f64().unwrap() as f32),
                ),
                ("feed_forward_length", number(INTERMEDIATE)),
                ("shortconv.l_cache", number(3)),
            ],
            _ => vec![
                (
                    "attention.recurrent_layers",
                    Value::Array(self.recurrent_layers().into_iter().map(Value::Bool).collect()),
                ),
                ("rope.dimension_count", number(16)),
                ("rope.dimension_sections", Value::Array([3, 3, 2, 0].map(Value::I32).to_vec())),
                ("ssm.conv_kernel", number(TAPS)),
                ("ssm.state_size", number(SIZE)),
                ("ssm.group_count", number(KEYS)),
                ("ssm.time_step_rank", number(VALUES)),
                ("ssm.inner_size", number(VALUES * SIZE)),
            ],
        };
        if self.architecture == "qwen35moe" {
            keys.extend([
                ("expert_count", number(EXPERTS)),
                ("expert_used_count", number(USED)),
                ("expert_feed_forward_length", number(WIDTH)),
                ("expert_shared_feed_forward_length", number(SHARED)),
            ]);
        }
        keys
    }

    /// Converted name and tensor; `None` for other families.
    pub(super) fn recurrent_tensor(&self, name: &str, tensor: &Tensor) -> Option<(String, Tensor)> {
        if !self.is_recurrent() || self.is_granite_hybrid() {
            return None;
        }
        let names = [
            ("model.embed_tokens", "token_embd"),
            ("model.embedding_norm", "token_embd_norm"),
            ("model.norm", "output_norm"),
            ("lm_head", "output"),
            ("operator_norm", "attn_norm"),
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", "post_attention_norm"),
            ("feed_forward.gate", "ffn_gate_inp"),
            ("feed_forward.expert_bias", "exp_probs_b.bias"),
            ("feed_forward.w1", "ffn_gate"),
            ("feed_forward.w3", "ffn_up"),
            ("feed_forward.w2", "ffn_down"),
            ("mlp.gate.", "ffn_gate_inp."),
            ("mlp.shared_expert.gate_proj", "ffn_gate_shexp"),
            ("mlp.shared_expert.up_proj", "ffn_up_shexp"),
            ("mlp.shared_expert.down_proj", "ffn_down_shexp"),
            ("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
            ("mlp.gate_proj", "ffn_gate"),
            ("mlp.up_proj", "ffn_up"),
            ("mlp.down_proj", "ffn_down"),
            ("self_attn.q_proj", "attn_q"),
            ("self_attn.k_proj", "attn_k"),
            ("self_attn.v_proj", "attn_v"),
            ("self_attn.q_layernorm", "attn_q_norm"),
            ("self_attn.k_layernorm", "attn_k_norm"),
            ("self_attn.q_norm", "attn_q_norm"),
            ("self_attn.k_norm", "attn_k_norm"),
            ("self_attn.out_proj", "attn_output"),
            ("self_attn.o_proj", "attn_output"),
            ("conv.in_proj", "shortconv.in_proj"),
            ("conv.conv", "shortconv.conv"),
            ("conv.out_proj", "shortconv.out_proj"),
            ("linear_attn.in_proj_qkv", "attn_qkv"),
            ("linear_attn.in_proj_z", "attn_gate"),
            ("linear_attn.in_proj_b", "ssm_beta"),
            ("linear_attn.in_proj_a", "ssm_alpha"),
            ("linear_attn.conv1d", "ssm_conv1d"),
            ("linear_attn.dt_bias", "ssm_dt.bias"),
            ("linear_attn.A_log", "ssm_a"),
            ("linear_attn.norm", "ssm_norm"),
            ("linear_attn.out_proj", "ssm_out"),
        ];
        let named = names.iter().find(|(from, _)| name.contains(from));
        let mut gguf = named.map_or_else(|| name.to_owned(), |(from, to)| name.replace(from, to));
        gguf = gguf.replace("model.layers", "blk");
        Some((gguf, self.converted_recurrent(name, tensor)))
    }

    fn converted_recurrent(&self, name: &str, tensor: &Tensor) -> Tensor {
        let ends = |part: &str| name.ends_with(part);
        let in_turns = |tensor: &Tensor, size: usize| {
            let rest: usize = tensor.dims()[1..].iter().product();
            let heads = tensor.reshape((KEYS, VALUES / KEYS, size * rest)).unwrap();
            heads.transpose(0, 1).unwrap().contiguous().unwrap().reshape(tensor.dims()).unwrap()
        };
        let last_in_turns = |tensor: &Tensor| {
            let others = 2 * KEYS * SIZE;
            let values = tensor.narrow(0, others, VALUES * SIZE).unwrap().contiguous().unwrap();
            Tensor::cat(&[&tensor.narrow(0, 0, others).unwrap(), &in_turns(&values, SIZE)], 0).unwrap()
        };
        match name {
            _ if ends("shared_expert_gate.weight") => tensor.flatten_all().unwrap(),
            _ if ends("conv.weight") => tensor.reshape((HIDDEN, 3)).unwrap(),
            _ if ends("conv1d.weight") => last_in_turns(&tensor.reshape((CHANNELS, TAPS)).unwrap()),
            _ if ends("in_proj_qkv.weight") => last_in_turns(tensor),
            _ if ends("in_proj_z.weight") => in_turns(tensor, SIZE),
            _ if ends("in_proj_a.weight") || ends("in_proj_b.weight") || ends("dt_bias") => {
                in_turns(tensor, 1)
            }
            _ if ends("A_log") => in_turns(&tensor.exp().unwrap().neg().unwrap(), 1),
            _ if ends("linear_attn.out_proj.weight") => {
                in_turns(&tensor.t().unwrap().contiguous().unwrap(), SIZE).t().unwrap().contiguous().unwrap()
            }
            _ if ends("norm.weight") && !self.is_lfm2() && !name.contains("linear_attn") => {
                (tensor + 1.0).unwrap()
            }
            _ => tensor.clone(),
        }
    }
}
