//! A draft head with random weights for a target, written in every form in which such are published: by EAGLE's
//! authors, by speculators, and as the GGUF file that llama.cpp's converter would make of it. Its numbers follow from
//! the tensors' names by a rule that `tests/goldens/heads.py` knows, too.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use foretoken_engine::error::Result;
use foretoken_engine::model::{ModelConfig, ModelSource};
use foretoken_engine::token::TokenId;
use serde_json::{Value as Json, json};

/// A head before it is written.
#[derive(Clone)]
pub struct RandomHead {
    /// What sets it apart from others.
    pub flags: Flags,
    /// Of the target.
    hidden: usize,
    vocabulary: usize,
    pub entering: Vec<usize>,
    /// The tokens it guesses, ascending.
    pub guessed: Vec<TokenId>,
    /// Under EAGLE's names, in f32.
    pub tensors: BTreeMap<String, Tensor>,
}

/// What heads of this kind do differently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    pub norm_before_residual: bool,
    pub norm_before_fc: bool,
    pub fc_norm: bool,
    pub norm_output: bool,
    /// The block of a Qwen3.
    pub head_norms: bool,
}

impl Flags {
    /// Those that are set, as goldens/heads.py names the kind.
    pub fn name(self) -> String {
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

const INTERMEDIATE: usize = 352;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD_SIZE: usize = 64;

impl RandomHead {
    pub fn new(target: &ModelConfig, flags: Flags) -> Self {
        let (hidden, vocabulary) = (target.hidden, target.vocabulary);
        let guessed: Vec<TokenId> = (0..vocabulary as TokenId).filter(|token| token % 3 == 2).collect();
        let entering = vec![0, target.layers / 2, target.layers];
        let mut head = Self { flags, hidden, vocabulary, entering, guessed, tensors: BTreeMap::new() };
        head.draw();
        head
    }

    /// Numbers in the middle of its feed-forward network, and in what attention gives.
    pub fn inner(&self) -> (usize, usize) {
        (INTERMEDIATE, HEADS * HEAD_SIZE)
    }

    fn draw(&mut self) {
        let (hidden, queries, keys) = (self.hidden, HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE);
        self.matrix("embed_tokens", self.vocabulary, hidden);
        self.matrix("fc", hidden, 3 * hidden);
        self.matrix("lm_head", self.guessed.len(), hidden);
        self.norm("norm", hidden);
        for part in ["input_layernorm", "hidden_norm", "post_attention_layernorm"] {
            self.norm(&format!("midlayer.{part}"), hidden);
        }
        for (part, rows, columns) in [
            ("self_attn.q_proj", queries, 2 * hidden),
            ("self_attn.k_proj", keys, 2 * hidden),
            ("self_attn.v_proj", keys, 2 * hidden),
            ("self_attn.o_proj", hidden, queries),
            ("mlp.gate_proj", INTERMEDIATE, hidden),
            ("mlp.up_proj", INTERMEDIATE, hidden),
            ("mlp.down_proj", hidden, INTERMEDIATE),
        ] {
            self.matrix(&format!("midlayer.{part}"), rows, columns);
        }
        if self.flags.norm_before_fc {
            self.norm("input_norm", 3 * hidden);
        }
        if self.flags.fc_norm {
            (0..3).for_each(|state| self.norm(&format!("fc_norm.{state}"), hidden));
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
        let numbers: Vec<f32> =
            made_up(&name, shape.iter().product()).into_iter().map(|number| centre + most * number).collect();
        self.tensors.insert(name, Tensor::from_vec(numbers, shape, &Device::Cpu).unwrap());
    }

    /// The block of config.json.
    fn block(&self) -> Json {
        json!({
            "model_type": if self.flags.head_norms { "qwen3" } else { "llama" },
            "hidden_size": self.hidden, "intermediate_size": INTERMEDIATE, "num_hidden_layers": 1,
            "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_SIZE,
            "vocab_size": self.vocabulary, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
            "rope_theta": 1e4, "hidden_act": "silu",
        })
    }

    /// As EAGLE's authors write it.
    pub fn eagle(&self, path: &Path) -> Result<ModelSource> {
        let mut config = self.block();
        config.as_object_mut().unwrap().extend(self.own().as_object().unwrap().clone());
        config["architectures"] = json!(["LlamaForCausalLMEagle3"]);
        self.write(path, "eagle", &config, |name| name.to_owned())
    }

    /// As speculators writes it.
    pub fn speculators(&self, path: &Path) -> Result<ModelSource> {
        let mut config = self.own();
        config["architectures"] = json!(["Eagle3DraftModel"]);
        config["speculators_model_type"] = json!("eagle3");
        config["transformer_layer_config"] = self.block();
        self.write(path, "speculators", &config, |name| name.replace("midlayer.", "layers.0."))
    }

    /// Keys that are the head's own.
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
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let mut tensors: HashMap<String, Tensor> =
            self.tensors.iter().map(|(name, tensor)| (rename(name), tensor.clone())).collect();
        let offsets = self.guessed.iter().enumerate().map(|(row, &token)| i64::from(token) - row as i64);
        tensors.insert("d2t".to_owned(), Tensor::from_iter(offsets, &Device::Cpu).unwrap());
        let known = (0..self.vocabulary as TokenId).map(|token| u8::from(self.guessed.contains(&token)));
        tensors.insert("t2d".to_owned(), Tensor::from_iter(known, &Device::Cpu).unwrap());
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        ModelSource::open(&folder)
    }

    /// As llama.cpp's converter writes it, which knows neither a norm for each state nor normed outputs.
    pub fn gguf(&self, path: &Path, quantisation: GgmlDType) -> Result<ModelSource> {
        let path = path.join(format!("head {quantisation:?}.gguf"));
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
        let halves = |&token: &TokenId| [token, 0].map(f32::from_bits);
        let halves: Vec<f32> = self.guessed.iter().flat_map(halves).collect();
        let halves = QTensor::quantize(&Tensor::new(halves, &Device::Cpu).unwrap(), GgmlDType::F32).unwrap();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let tensors = [&tensors[..], &[("d2t", &halves)]].concat();
        let metadata = self.metadata();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &tensors).unwrap();
        let mut file = fs::read(&path).unwrap();
        widen(&mut file, "d2t", self.guessed.len());
        fs::write(&path, file).unwrap();
        ModelSource::open(&path)
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let size = |size: usize| Value::U32(size as u32);
        let layers = self.entering.iter().map(|&layer| Value::I32(layer as i32)).collect();
        [
            ("general.architecture", Value::String("eagle3".to_owned())),
            ("eagle3.block_count", size(1)),
            ("eagle3.context_length", size(512)),
            ("eagle3.embedding_length", size(self.hidden)),
            ("eagle3.feed_forward_length", size(INTERMEDIATE)),
            ("eagle3.attention.head_count", size(HEADS)),
            ("eagle3.attention.head_count_kv", size(KV_HEADS)),
            ("eagle3.attention.key_length", size(HEAD_SIZE)),
            ("eagle3.attention.value_length", size(HEAD_SIZE)),
            ("eagle3.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("eagle3.rope.freq_base", Value::F32(1e4)),
            ("eagle3.vocab_size", size(self.vocabulary)),
            ("eagle3.target_layers", Value::Array(layers)),
            ("eagle3.target_hidden_size", size(self.hidden)),
            ("eagle3.norm_before_residual", Value::Bool(self.flags.norm_before_residual)),
            ("eagle3.norm_before_fc", Value::Bool(self.flags.norm_before_fc)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}

/// Numbers between -1 and 1 that follow from a name.
pub fn made_up(name: &str, count: usize) -> Vec<f32> {
    let seed =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let number = |index: usize| {
        let mut x = seed.wrapping_add((index as u32).wrapping_mul(2_654_435_761));
        x = (x ^ (x >> 16)).wrapping_mul(2_246_822_519);
        x = (x ^ (x >> 13)).wrapping_mul(3_266_489_917);
        x ^= x >> 16;
        (f64::from(x) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
    };
    (0..count).map(number).collect()
}

/// A Llama's halves of a head, row by row in turns.
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

/// Makes of a tensor of numbers of 32 bits one of half as many whole numbers of 64 bits: candle writes none.
pub(crate) fn widen(file: &mut [u8], name: &str, count: usize) {
    let place = [&(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
    let at = file.windows(place.len()).position(|bytes| bytes == place).unwrap() + place.len();
    // The number of dimensions, the only one, the type.
    file[at + 4..at + 12].copy_from_slice(&(count as u64).to_le_bytes());
    file[at + 12..at + 16].copy_from_slice(&27u32.to_le_bytes());
}
