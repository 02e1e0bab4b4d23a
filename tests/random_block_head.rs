//! A draft head with random weights that guesses blocks, for a target, written in every form in which such are
//! published: by DFlash's authors and those of DeepSpec, by speculators, and as the GGUF file that llama.cpp's
//! converter would make of it. Its numbers follow from the tensors' names by a rule that
//! `tests/goldens/block_heads.py` knows, too.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use foretoken_engine::model::{ModelConfig, ModelSource};
use foretoken_engine::token::TokenId;
use serde_json::{Value as Json, json};

use crate::random_head::{made_up, widen};

/// A head before it is written.
#[derive(Clone)]
pub struct RandomBlockHead {
    pub kind: BlockKind,
    /// Of the target.
    hidden: usize,
    vocabulary: usize,
    pub entering: Vec<usize>,
    /// The tokens it guesses, ascending.
    pub guessed: Vec<TokenId>,
    /// Under the names of DFlash's authors, in f32.
    pub tensors: BTreeMap<String, Tensor>,
    /// Keys of config.json that are other than they should be.
    pub spoiled: Vec<(&'static str, Json)>,
}

/// What sets heads of this kind apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    DFlash,
    /// Some of the target's tokens, by an output matrix of its own, and one layer of two with a window.
    Reduced,
    DFlash2,
    /// With a Markov head and a confidence, of some of the target's tokens.
    DSpark,
    /// The same of all of them, and the text's last token guesses, too.
    Anchored,
}

impl BlockKind {
    pub const ALL: [Self; 5] = [Self::DFlash, Self::Reduced, Self::DFlash2, Self::DSpark, Self::Anchored];

    fn has_markov(self) -> bool {
        matches!(self, Self::DSpark | Self::Anchored)
    }

    fn is_reduced(self) -> bool {
        matches!(self, Self::Reduced | Self::DSpark)
    }

    /// Whether its first layer has a window.
    fn has_window(self) -> bool {
        matches!(self, Self::Reduced | Self::DFlash2)
    }

    /// The first row that guesses.
    pub fn first(self) -> usize {
        usize::from(self != Self::Anchored)
    }
}

pub const BLOCK_ROWS: usize = 8;
pub const MASK: TokenId = 5;
const LAYERS: usize = 2;
const INTERMEDIATE: usize = 352;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD_SIZE: usize = 64;
const WINDOW: usize = 6;
const TAPS: usize = 2;
const GROUP: usize = 16;
const RANK: usize = 32;
const CANDIDATES: usize = 16;

impl RandomBlockHead {
    pub fn new(target: &ModelConfig, kind: BlockKind) -> Self {
        let (hidden, vocabulary) = (target.hidden, target.vocabulary);
        let some = (0..vocabulary as TokenId).filter(|token| !kind.is_reduced() || token % 3 == 2);
        let entering = vec![1, target.layers];
        let (guessed, tensors) = (some.collect(), BTreeMap::new());
        let mut head = Self { kind, hidden, vocabulary, entering, guessed, tensors, spoiled: Vec::new() };
        head.draw();
        head
    }

    fn draw(&mut self) {
        let (hidden, queries, keys) = (self.hidden, HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE);
        self.matrix("fc", hidden, self.entering.len() * hidden);
        self.norm("hidden_norm", hidden);
        self.norm("norm", hidden);
        if self.kind.is_reduced() {
            self.matrix("lm_head", self.guessed.len(), hidden);
        }
        for layer in 0..LAYERS {
            for (part, rows, columns) in [
                ("self_attn.q_proj", queries, hidden),
                ("self_attn.k_proj", keys, hidden),
                ("self_attn.v_proj", keys, hidden),
                ("self_attn.o_proj", hidden, queries),
                ("mlp.gate_proj", INTERMEDIATE, hidden),
                ("mlp.up_proj", INTERMEDIATE, hidden),
                ("mlp.down_proj", hidden, INTERMEDIATE),
            ] {
                self.matrix(&format!("layers.{layer}.{part}"), rows, columns);
            }
            for (part, length) in [
                ("input_layernorm", hidden),
                ("post_attention_layernorm", hidden),
                ("self_attn.q_norm", HEAD_SIZE),
                ("self_attn.k_norm", HEAD_SIZE),
            ] {
                self.norm(&format!("layers.{layer}.{part}"), length);
            }
            let around: &[&str] =
                if self.kind == BlockKind::DFlash2 { &["attention_conv", "mlp_conv"] } else { &[] };
            for part in around {
                let name = format!("layers.{layer}.{part}");
                self.insert(&format!("{name}.base_kernel"), &[2, TAPS, hidden], 0.4, 0.4);
                self.matrix(&format!("{name}.kernel_projection"), 2 * TAPS * hidden / GROUP, hidden);
            }
        }
        if self.kind == BlockKind::DFlash2 {
            let tokens = [self.vocabulary, RANK];
            self.insert("candidate_selector.predecessor_codebook", &tokens, 0.0, 1.0);
            self.insert("candidate_selector.successor_codebook", &tokens, 0.0, 1.0);
            self.matrix("candidate_selector.hidden_projection", RANK, hidden);
        }
        if self.kind.has_markov() {
            self.insert("markov_head.markov_w1.weight", &[self.vocabulary, RANK], 0.0, 1.0);
            self.insert("markov_head.markov_w2.weight", &[self.guessed.len(), RANK], 0.0, 1.0);
            self.matrix("confidence_head.proj", 1, hidden + RANK);
            self.insert("confidence_head.proj.bias", &[1], 0.0, 1.0);
        }
    }

    /// The same with an embedding and an output matrix of its own.
    #[must_use]
    pub fn with_own_matrices(mut self) -> Self {
        self.matrix("embed_tokens", self.vocabulary, self.hidden);
        self.matrix("lm_head", self.guessed.len(), self.hidden);
        self
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) {
        self.insert(&format!("{name}.weight"), &[rows, columns], 0.0, 0.09);
    }

    fn norm(&mut self, name: &str, length: usize) {
        self.insert(&format!("{name}.weight"), &[length], 1.0, 0.3);
    }

    fn insert(&mut self, name: &str, shape: &[usize], centre: f32, most: f32) {
        let numbers = made_up(name, shape.iter().product()).into_iter().map(|number| centre + most * number);
        let tensor = Tensor::from_vec(numbers.collect(), shape, &Device::Cpu).unwrap();
        self.tensors.insert(name.to_owned(), tensor);
    }

    /// What describes its layers in config.json.
    fn layers(&self) -> Json {
        let first = if self.kind.has_window() { "sliding_attention" } else { "full_attention" };
        json!({
            "model_type": "qwen3", "hidden_size": self.hidden, "intermediate_size": INTERMEDIATE,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_SIZE, "vocab_size": self.vocabulary, "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5, "rope_theta": 1e4, "hidden_act": "silu", "attention_bias": false,
            "layer_types": [first, "full_attention"], "sliding_window": WINDOW, "tie_word_embeddings": true,
        })
    }

    /// As DFlash's authors write it, and those of DeepSpec.
    pub fn authors(&self, path: &Path) -> ModelSource {
        self.try_authors(path).unwrap()
    }

    /// The same, which may be refused.
    ///
    /// # Errors
    /// Those of [`ModelSource::open`].
    pub fn try_authors(&self, path: &Path) -> foretoken_engine::error::Result<ModelSource> {
        let mut config = self.layers();
        let outputs: Vec<usize> = self.entering.iter().map(|layer| layer - 1).collect();
        let own = json!({ "mask_token_id": MASK, "target_layer_ids": outputs });
        config["block_size"] = BLOCK_ROWS.into();
        match self.kind {
            BlockKind::Anchored => {
                config["architectures"] = json!(["Qwen3DSparkModel"]);
                extend(&mut config, own);
                extend(&mut config, json!({ "markov_rank": RANK, "markov_head_type": "vanilla" }));
            }
            BlockKind::DFlash2 => {
                config["architectures"] = json!(["DFlash2DraftModel"]);
                config["is_causal"] = false.into();
                config["dflash_config"] = own;
                let sizes = json!({
                    "conv_kernel_size": TAPS, "conv_group_size": GROUP, "selector_rank": RANK,
                    "selector_top_k": CANDIDATES,
                });
                extend(&mut config["dflash_config"], sizes);
            }
            _ => {
                config["architectures"] = json!(["DFlashDraftModel"]);
                config["dflash_config"] = own;
            }
        }
        self.spoiled.iter().for_each(|(key, value)| config[*key] = value.clone());
        self.write(path, "authors", &config)
    }

    /// As speculators exports it.
    pub fn speculators(&self, path: &Path) -> ModelSource {
        let (class, kind) = match self.kind {
            BlockKind::DFlash | BlockKind::Reduced => ("DFlashSpeculator", "dflash"),
            BlockKind::DFlash2 => ("DFlash2DraftModel", "dflash2"),
            BlockKind::DSpark | BlockKind::Anchored => ("DSparkSpeculator", "dspark"),
        };
        let mut config = json!({
            "architectures": [class], "speculators_model_type": kind, "block_size": BLOCK_ROWS,
            "transformer_layer_config": self.layers(), "draft_vocab_size": self.guessed.len(),
            "aux_hidden_state_layer_ids": self.entering, "mask_token_id": MASK,
            "sample_from_anchor": self.kind == BlockKind::Anchored,
            "sliding_window_non_causal": self.kind == BlockKind::DFlash2,
        });
        if self.kind == BlockKind::DFlash2 {
            extend(&mut config, json!({ "selector_rank": RANK, "selector_top_k": CANDIDATES }));
        }
        self.write(path, "speculators", &config).unwrap()
    }

    fn write(&self, path: &Path, form: &str, config: &Json) -> foretoken_engine::error::Result<ModelSource> {
        let folder = path.join(format!("{form} {:?}", self.kind));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let mut tensors: HashMap<String, Tensor> = self.tensors.clone().into_iter().collect();
        if self.kind.is_reduced() {
            let offsets = self.guessed.iter().enumerate().map(|(row, &token)| i64::from(token) - row as i64);
            tensors.insert("d2t".to_owned(), Tensor::from_iter(offsets, &Device::Cpu).unwrap());
            let known = (0..self.vocabulary as TokenId).map(|token| u8::from(self.guessed.contains(&token)));
            tensors.insert("t2d".to_owned(), Tensor::from_iter(known, &Device::Cpu).unwrap());
        }
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        ModelSource::open(&folder)
    }

    /// As llama.cpp's converter writes it.
    pub fn gguf(&self, path: &Path, quantisation: GgmlDType) -> ModelSource {
        let path = path.join(format!("block head {:?} {quantisation:?}.gguf", self.kind));
        let tensors = self.tensors.iter().map(|(name, tensor)| {
            let whole = tensor.dim(tensor.rank() - 1).unwrap().is_multiple_of(quantisation.block_size());
            let dtype = if tensor.rank() == 2 && whole { quantisation } else { GgmlDType::F32 };
            (gguf_name(name), QTensor::quantize(tensor, dtype).unwrap())
        });
        let mut tensors: Vec<(String, QTensor)> = tensors.collect();
        if self.kind.is_reduced() {
            let halves = |&token: &TokenId| [token, 0].map(f32::from_bits);
            let halves: Vec<f32> = self.guessed.iter().flat_map(halves).collect();
            let halves = Tensor::new(halves, &Device::Cpu).unwrap();
            tensors.push(("d2t".to_owned(), QTensor::quantize(&halves, GgmlDType::F32).unwrap()));
        }
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let metadata = self.metadata();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (*key, value)).collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &tensors).unwrap();
        if self.kind.is_reduced() {
            let mut file = fs::read(&path).unwrap();
            widen(&mut file, "d2t", self.guessed.len());
            fs::write(&path, file).unwrap();
        }
        ModelSource::open(&path).unwrap()
    }

    fn metadata(&self) -> Vec<(&'static str, Value)> {
        let size = |size: usize| Value::U32(size as u32);
        let layers = self.entering.iter().map(|&layer| Value::I32(layer as i32)).collect();
        let mut metadata = vec![
            ("general.architecture", Value::String("dflash".to_owned())),
            ("dflash.block_count", size(LAYERS)),
            ("dflash.context_length", size(512)),
            ("dflash.embedding_length", size(self.hidden)),
            ("dflash.feed_forward_length", size(INTERMEDIATE)),
            ("dflash.attention.head_count", size(HEADS)),
            ("dflash.attention.head_count_kv", size(KV_HEADS)),
            ("dflash.attention.key_length", size(HEAD_SIZE)),
            ("dflash.attention.value_length", size(HEAD_SIZE)),
            ("dflash.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("dflash.rope.freq_base", Value::F32(1e4)),
            ("dflash.vocab_size", size(self.vocabulary)),
            ("dflash.target_layers", Value::Array(layers)),
            ("dflash.block_size", size(BLOCK_ROWS)),
            ("tokenizer.ggml.mask_token_id", size(MASK as usize)),
        ];
        if self.kind.has_window() {
            let pattern = Value::Array(vec![Value::Bool(true), Value::Bool(false)]);
            metadata.push(("dflash.attention.sliding_window", size(WINDOW)));
            metadata.push(("dflash.attention.sliding_window_pattern", pattern));
        }
        if self.kind == BlockKind::DFlash2 {
            metadata.extend([
                ("dflash.attention.causal", Value::Bool(false)),
                ("dflash.conv_kernel_size", size(TAPS)),
                ("dflash.conv_group_size", size(GROUP)),
                ("dflash.selector_rank", size(RANK)),
                ("dflash.selector_top_k", size(CANDIDATES)),
            ]);
        }
        if self.kind == BlockKind::DSpark {
            metadata.push(("dflash.sample_from_anchor", Value::Bool(false)));
        }
        metadata
    }
}

fn extend(config: &mut Json, more: Json) {
    let Json::Object(more) = more else { return };
    config.as_object_mut().unwrap().extend(more);
}

fn gguf_name(name: &str) -> String {
    let outer = [
        ("hidden_norm.weight", "enc.output_norm.weight"),
        ("norm.weight", "output_norm.weight"),
        ("embed_tokens.weight", "token_embd.weight"),
        ("lm_head.weight", "output.weight"),
        ("markov_head.markov_w1.weight", "markov_w1.weight"),
        ("markov_head.markov_w2.weight", "markov_w2.weight"),
        ("confidence_head.proj.weight", "conf_proj.weight"),
        ("confidence_head.proj.bias", "conf_proj.bias"),
        ("candidate_selector.predecessor_codebook", "selector_predecessor.weight"),
        ("candidate_selector.successor_codebook", "selector_successor.weight"),
        ("candidate_selector.hidden_projection.weight", "selector_hidden.weight"),
    ];
    if let Some((_, to)) = outer.iter().find(|(from, _)| *from == name) {
        return (*to).to_owned();
    }
    let Some((layer, rest)) = name.strip_prefix("layers.").and_then(|name| name.split_once('.')) else {
        return name.to_owned();
    };
    let parts = [
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("attention_conv.base_kernel", "attn_conv_base"),
        ("attention_conv.kernel_projection", "attn_conv_proj"),
        ("mlp_conv.base_kernel", "ffn_conv_base"),
        ("mlp_conv.kernel_projection", "ffn_conv_proj"),
    ];
    let (stem, end) = rest.strip_suffix(".weight").map_or((rest, ""), |stem| (stem, ".weight"));
    let (_, to) = parts.iter().find(|(from, _)| *from == stem).unwrap();
    format!("blk.{layer}.{to}{end}")
}
