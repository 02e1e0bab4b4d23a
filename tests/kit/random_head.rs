//! Random draft head, written in every published format: EAGLE's, speculators', and the GGUF file
//! that llama.cpp's converter would make of it. Values are derived from tensor names by a rule that
//! `tests/goldens/heads.py` repeats.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, ModelSource};
use serde_json::{Value as Json, json};

use crate::head_files::{
    HEAD_SIZE, HEADS, INTERMEDIATE, KV_HEADS, made_up_tensor, matrices, metadata, write_folder, write_gguf,
};

/// A head before it is written.
#[derive(Clone)]
pub struct RandomHead {
    /// Variant of the head.
    pub flags: Flags,
    /// Width of the target's states.
    hidden: usize,
    vocabulary: usize,
    pub entering: Vec<usize>,
    /// Tokens of the head, ascending.
    pub guessed: Vec<TokenId>,
    /// Tensors in f32 under EAGLE's names.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Variants of heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// Number of the target's states that the head fuses.
    pub states: usize,
    pub norm_before_residual: bool,
    pub norm_before_fc: bool,
    pub fc_norm: bool,
    pub norm_output: bool,
    /// The layer is a Qwen3's.
    pub head_norms: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            states: 3,
            norm_before_residual: false,
            norm_before_fc: false,
            fc_norm: false,
            norm_output: false,
            head_norms: false,
        }
    }
}

impl Flags {
    /// Names of the set flags, as goldens/heads.py calls the variant.
    pub fn name(self) -> String {
        let name = self.set();
        if self.states == 3 { name } else { format!("{name} {} states", self.states) }
    }

    fn set(self) -> String {
        let all = [
            (self.fc_norm, "fc_norm"),
            (self.head_norms, "head_norms"),
            (self.norm_before_residual, "norm_before_residual"),
            (self.norm_before_fc, "norm_before_fc"),
            (self.norm_output, "norm_output"),
        ];
        let set: Vec<_> = all.into_iter().filter(|(set, _)| *set).map(|(_, name)| name).collect();
        if set.is_empty() { "plain".to_owned() } else { set.join(" ") }
    }
}

impl RandomHead {
    pub fn new(target: &ModelConfig, flags: Flags) -> Self {
        let (hidden, vocabulary) = (target.hidden, target.vocabulary);
        let guessed: Vec<TokenId> = (0..vocabulary as TokenId).filter(|token| token % 3 == 2).collect();
        let last = (flags.states - 1).max(1);
        let entering = (0..flags.states).map(|state| state * target.depth() / last).collect();
        let mut head = Self { flags, hidden, vocabulary, entering, guessed, tensors: BTreeMap::new() };
        head.draw();
        head
    }

    /// Widths of its feed-forward network and of attention's output.
    pub fn inner(&self) -> (usize, usize) {
        (INTERMEDIATE, HEADS * HEAD_SIZE)
    }

    fn draw(&mut self) {
        let hidden = self.hidden;
        self.matrix("embed_tokens", self.vocabulary, hidden);
        self.matrix("fc", hidden, self.flags.states * hidden);
        self.matrix("lm_head", self.guessed.len(), hidden);
        self.norm("norm", hidden);
        for part in ["input_layernorm", "hidden_norm", "post_attention_layernorm"] {
            self.norm(&format!("midlayer.{part}"), hidden);
        }
        for (part, rows, columns) in matrices(hidden, 2 * hidden) {
            self.matrix(&format!("midlayer.{part}"), rows, columns);
        }
        if self.flags.norm_before_fc {
            self.norm("input_norm", self.flags.states * hidden);
        }
        if self.flags.fc_norm {
            (0..self.flags.states).for_each(|state| self.norm(&format!("fc_norm.{state}"), hidden));
        }
        if self.flags.head_norms {
            self.norm("midlayer.self_attn.q_norm", HEAD_SIZE);
            self.norm("midlayer.self_attn.k_norm", HEAD_SIZE);
        }
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) {
        self.insert(name, &[rows, columns], 0.0, 0.09);
    }

    fn norm(&mut self, name: &str, length: usize) {
        self.insert(name, &[length], 1.0, 0.3);
    }

    fn insert(&mut self, name: &str, shape: &[usize], centre: f32, most: f32) {
        let name = format!("{name}.weight");
        let tensor = made_up_tensor(&name, shape, centre, most);
        self.tensors.insert(name, tensor);
    }

    /// Layer description in config.json.
    fn block(&self) -> Json {
        json!({
            "model_type": if self.flags.head_norms { "qwen3" } else { "llama" },
            "hidden_size": self.hidden, "intermediate_size": INTERMEDIATE, "num_hidden_layers": 1,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_SIZE,
            "vocab_size": self.vocabulary, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
            "rope_theta": 1e4, "hidden_act": "silu",
        })
    }

    /// Writes EAGLE's format.
    pub fn eagle(&self, path: &Path) -> Result<ModelSource> {
        let mut config = self.block();
        config.as_object_mut().unwrap().extend(self.own().as_object().unwrap().clone());
        config["architectures"] = json!(["LlamaForCausalLMEagle3"]);
        self.write(path, "eagle", &config, |name| name.to_owned())
    }

    /// Writes speculators' format.
    pub fn speculators(&self, path: &Path) -> Result<ModelSource> {
        let mut config = self.own();
        config["architectures"] = json!(["Eagle3DraftModel"]);
        config["speculators_model_type"] = json!("eagle3");
        config["transformer_layer_config"] = self.block();
        self.write(path, "speculators", &config, |name| name.replace("midlayer.", "layers.0."))
    }

    /// Keys of the head itself.
    fn own(&self) -> Json {
        json!({
            "draft_vocab_size": self.guessed.len(), "target_hidden_size": self.hidden,
            "eagle_aux_hidden_state_layer_ids": self.entering,
            "norm_before_residual": self.flags.norm_before_residual,
            "norm_before_fc": self.flags.norm_before_fc, "fc_norm": self.flags.fc_norm,
            "norm_output": self.flags.norm_output,
        })
    }

    fn write(
        &self,
        path: &Path,
        form: &str,
        config: &Json,
        rename: impl Fn(&str) -> String,
    ) -> Result<ModelSource> {
        let folder = path.join(format!("{form} {}", self.flags.name()));
        let tensors = self.tensors.iter().map(|(name, tensor)| (rename(name), tensor.clone())).collect();
        write_folder(&folder, config, tensors, Some((&self.guessed, self.vocabulary)))
    }

    /// Writes the GGUF file that llama.cpp's converter would write, with keys of our own for a norm
    /// for each state and for normed outputs, which it does not support.
    pub fn gguf(&self, path: &Path, quantisation: GgmlDType) -> Result<ModelSource> {
        let path = path.join(format!("head {} {quantisation:?}.gguf", self.flags.name()));
        let tensors: Vec<(String, QTensor)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| {
                let dtype = if tensor.rank() == 1 { GgmlDType::F32 } else { quantisation };
                let tensor = match name.as_str() {
                    "midlayer.self_attn.q_proj.weight" => permuted(tensor, HEADS),
                    "midlayer.self_attn.k_proj.weight" => permuted(tensor, KV_HEADS),
                    _ => tensor.clone(),
                };
                (gguf_name(name), QTensor::quantize(&tensor, dtype).unwrap())
            })
            .collect();
        write_gguf(&path, &self.metadata(), tensors, Some(&self.guessed))
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let mut metadata = metadata("eagle3", 1, self.hidden, self.vocabulary, &self.entering);
        let own = [
            ("target_hidden_size", Value::U32(self.hidden as u32)),
            ("norm_before_residual", Value::Bool(self.flags.norm_before_residual)),
            ("norm_before_fc", Value::Bool(self.flags.norm_before_fc)),
            ("fc_norm", Value::Bool(self.flags.fc_norm)),
            ("norm_output", Value::Bool(self.flags.norm_output)),
        ];
        metadata.extend(own.map(|(key, value)| (format!("eagle3.{key}"), value)));
        metadata
    }
}

/// Llama's heads, with the two halves of a head interleaved row by row.
fn permuted(tensor: &Tensor, heads: usize) -> Tensor {
    let (rows, columns) = tensor.dims2().unwrap();
    let halves = tensor.reshape((heads, 2, rows / heads / 2, columns)).unwrap();
    halves.transpose(1, 2).unwrap().contiguous().unwrap().reshape((rows, columns)).unwrap()
}

fn gguf_name(name: &str) -> String {
    let parts = [
        ("embed_tokens", "token_embd"),
        ("lm_head", "output"),
        ("input_norm", "enc.output_norm"),
        ("midlayer.input_layernorm", "blk.0.attn_norm"),
        ("midlayer.hidden_norm", "blk.0.attn_norm_2"),
        ("midlayer.post_attention_layernorm", "blk.0.ffn_norm"),
        ("midlayer.self_attn.q_proj", "blk.0.attn_q"),
        ("midlayer.self_attn.k_proj", "blk.0.attn_k"),
        ("midlayer.self_attn.v_proj", "blk.0.attn_v"),
        ("midlayer.self_attn.o_proj", "blk.0.attn_output"),
        ("midlayer.mlp.gate_proj", "blk.0.ffn_gate"),
        ("midlayer.mlp.up_proj", "blk.0.ffn_up"),
        ("midlayer.mlp.down_proj", "blk.0.ffn_down"),
    ];
    let (stem, end) = name.rsplit_once('.').unwrap();
    let found = parts.iter().find(|(from, _)| *from == stem);
    let stem = found.map_or(if stem == "norm" { "output_norm" } else { stem }, |(_, to)| to);
    format!("{stem}.{end}")
}
