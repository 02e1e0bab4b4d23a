//! A small random model of every family, written as a Hugging Face folder and as the GGUF file that
//! llama.cpp's converter would make of it. Has its own list of the names in both formats, so that
//! it does not repeat an error of the engine.

mod experts;
mod gemma4;
mod granite_hybrid;
mod latent;
mod lfm2moe;
mod mtp;
mod recent;
mod recurrent;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, Tensor};
use foretoken_model::ModelSource;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value as Json, json};

use crate::byte_level_tokens;
use crate::head_files::made_up_tensor;
pub use gemma4::dense_gemma4;
use recent::qwen3vl;
pub use recent::recent;

/// A model before it is written.
#[derive(Clone)]
pub struct RandomFamily {
    /// Name of the family, or of the tested variant.
    pub label: &'static str,
    /// `general.architecture`.
    pub architecture: &'static str,
    /// config.json
    pub config: Json,
    /// Tensors in f32 under their Hugging Face names.
    pub tensors: BTreeMap<String, Tensor>,
}

/// Types of tokens in GGUF files.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;

const VOCABULARY: usize = 320;
const HIDDEN: usize = 256;
const INTERMEDIATE: usize = 352;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;

/// One model of every family, and of every variant, drawn once; copies share their tensors.
pub fn families() -> Vec<RandomFamily> {
    static FAMILIES: OnceLock<Vec<RandomFamily>> = OnceLock::new();
    let draw = || in_candle().into_iter().chain(recent()).chain([qwen3vl()]).collect();
    FAMILIES.get_or_init(draw).clone()
}

/// Families that candle-transformers runs.
pub fn in_candle() -> Vec<RandomFamily> {
    vec![
        random("llama", "llama", json!({"architectures": ["LlamaForCausalLM"]})),
        random("mistral", "llama", json!({"architectures": ["MistralForCausalLM"], "sliding_window": 9})),
        random(
            "qwen2",
            "qwen2",
            json!({
                "architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": true, "rope_theta": 1e6,
                "sliding_window": 9, "use_sliding_window": false, "max_window_layers": 1,
            }),
        ),
        random(
            "qwen3",
            "qwen3",
            // Head size that is neither the width divided by the heads nor a multiple of a vector.
            json!({
                "architectures": ["Qwen3ForCausalLM"], "head_dim": 40, "rope_theta": 1e6,
                "sliding_window": null, "use_sliding_window": false, "max_window_layers": 2,
            }),
        ),
        random(
            "qwen3moe",
            "qwen3moe",
            // Expert widths that are not whole blocks of any large format.
            json!({
                "architectures": ["Qwen3MoeForCausalLM"], "head_dim": 40, "rope_theta": 1e6,
                "sliding_window": null, "use_sliding_window": false, "max_window_layers": 2,
                "num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 96,
                "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [],
            }),
        ),
        random(
            "gemma3",
            "gemma3",
            json!({
                "architectures": ["Gemma3ForCausalLM"], "head_dim": 48, "query_pre_attn_scalar": 48,
                "num_hidden_layers": 7, "sliding_window": 9, "sliding_window_pattern": 6,
                "rope_theta": 1e6, "rope_local_base_freq": 1e4, "tie_word_embeddings": true,
                "hidden_act": null, "hidden_activation": "gelu_pytorch_tanh",
                "final_logit_softcapping": null, "attn_logit_softcapping": null,
            }),
        ),
        random(
            "phi3",
            "phi3",
            json!({
                "architectures": ["Phi3ForCausalLM"], "partial_rotary_factor": 0.75,
                "tie_word_embeddings": true, "sliding_window": null,
                "original_max_position_embeddings": 256,
            }),
        ),
    ]
}

/// The family with this label.
pub fn family(label: &str) -> RandomFamily {
    families().into_iter().find(|family| family.label == label).unwrap()
}

/// `differences` are keys that differ from a small Llama's or are missing there.
fn random(label: &'static str, architecture: &'static str, differences: Json) -> RandomFamily {
    let mut config = json!({
        "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
        "num_hidden_layers": 2, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 1e4, "hidden_act": "silu",
        "tie_word_embeddings": false, "attention_bias": false,
    });
    config.as_object_mut().unwrap().extend(differences.as_object().unwrap().clone());
    let mut family = RandomFamily { label, architecture, config, tensors: BTreeMap::new() };
    family.draw();
    family
}

impl RandomFamily {
    pub fn size(&self, key: &str) -> usize {
        self.config[key].as_u64().unwrap() as usize
    }

    pub fn head_size(&self) -> usize {
        self.config["head_dim"].as_u64().map_or(HIDDEN / HEADS, |size| size as usize)
    }

    pub fn ties_embeddings(&self) -> bool {
        self.config["tie_word_embeddings"].as_bool().unwrap()
    }

    /// Returns the family with `count` experts, `used` of them per token. Expert weights are a
    /// softmax over all experts if `of_all`, else over the used ones.
    pub fn with_experts(&self, count: usize, used: usize, of_all: bool) -> Self {
        let mut family = Self { tensors: BTreeMap::new(), ..self.clone() };
        family.config["num_experts"] = json!(count);
        family.config["num_experts_per_tok"] = json!(used);
        family.config["norm_topk_prob"] = json!(!of_all);
        family.draw();
        family
    }

    fn draw(&mut self) {
        if self.is_recurrent() {
            return self.draw_recurrent();
        }
        if self.is_latent() {
            return self.draw_latent();
        }
        let (of, layers) = (self.architecture, self.size("num_hidden_layers"));
        self.matrix("model.embed_tokens", VOCABULARY, HIDDEN);
        self.norm("model.norm", HIDDEN);
        if !self.ties_embeddings() {
            self.matrix("lm_head", VOCABULARY, HIDDEN);
        }
        if of == "gemma4" {
            self.draw_gemma4();
        }
        for index in 0..layers {
            let layer = format!("model.layers.{index}");
            let name = |part: &str| format!("{layer}.{part}");
            let (head_size, kv_heads) = self.heads_of(index);
            let (queries, keys) = (HEADS * head_size, kv_heads * head_size);
            self.norm(&name("input_layernorm"), HIDDEN);
            self.norm(&name("post_attention_layernorm"), HIDDEN);
            self.matrix(&name("self_attn.o_proj"), HIDDEN, queries);
            if of == "qwen3moe" {
                self.matrix(&name("mlp.gate"), self.size("num_experts"), HIDDEN);
            }
            for (mlp, intermediate) in self.networks(index) {
                self.matrix(&name(&format!("{mlp}.down_proj")), HIDDEN, intermediate);
                if of != "phi3" {
                    self.matrix(&name(&format!("{mlp}.gate_proj")), intermediate, HIDDEN);
                    self.matrix(&name(&format!("{mlp}.up_proj")), intermediate, HIDDEN);
                }
            }
            if of == "gpt-oss" {
                self.draw_gpt_oss(&layer);
            }
            if of == "phi3" {
                self.matrix(&name("self_attn.qkv_proj"), queries + 2 * keys, HIDDEN);
                self.matrix(&name("mlp.gate_up_proj"), 2 * INTERMEDIATE, HIDDEN);
                continue;
            }
            for (part, rows) in [("q", queries), ("k", keys), ("v", keys)] {
                let no_values = self.config["attention_k_eq_v"] == true && head_size != self.head_size();
                if part != "q" && self.shares(index) || part == "v" && no_values {
                    continue;
                }
                self.matrix(&name(&format!("self_attn.{part}_proj")), rows, HIDDEN);
                if of == "qwen2" {
                    self.insert(name(&format!("self_attn.{part}_proj.bias")), &[rows], 0.0, 0.5);
                }
            }
            self.draw_recent(&layer, queries, keys);
            if matches!(of, "qwen3" | "qwen3moe" | "qwen3vl" | "gemma3" | "gemma4") {
                match of {
                    // Query-key products have no scale.
                    "gemma4" => self.insert(name("self_attn.q_norm.weight"), &[head_size], 0.2, 0.04),
                    _ => self.norm(&name("self_attn.q_norm"), head_size),
                }
                if !self.shares(index) {
                    self.norm(&name("self_attn.k_norm"), head_size);
                }
            }
            if of == "gemma4" {
                self.draw_gemma4_layer(&layer);
            }
            if of == "gemma3" {
                self.norm(&name("pre_feedforward_layernorm"), HIDDEN);
                self.norm(&name("post_feedforward_layernorm"), HIDDEN);
            }
        }
    }

    /// Names and widths of a layer's feed-forward networks.
    fn networks(&self, layer: usize) -> Vec<(String, usize)> {
        if self.architecture == "gpt-oss" {
            return Vec::new();
        }
        if self.architecture != "qwen3moe" {
            return vec![("mlp".to_owned(), self.intermediate_of(layer))];
        }
        let of = |expert| (format!("mlp.experts.{expert}"), self.size("moe_intermediate_size"));
        (0..self.size("num_experts")).map(of).collect()
    }

    /// Returns whether every feed-forward network is replaced by experts, and nothing else.
    fn has_plain_experts(&self) -> bool {
        matches!(self.architecture, "qwen3moe" | "qwen3vlmoe")
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) {
        self.insert(format!("{name}.weight"), &[rows, columns], 0.0, 0.05);
    }

    /// Inserts a norm's weights, which are near 1.
    fn norm(&mut self, name: &str, length: usize) {
        let above_one = match self.architecture {
            "gemma3" | "qwen35" | "qwen35moe" => true,
            "muse-glimmer" => name != "model.norm",
            _ => false,
        };
        let centre = if above_one { 0.0 } else { 1.0 };
        self.insert(format!("{name}.weight"), &[length], centre, 0.2);
    }

    /// Inserts a tensor of values around `centre` that are derived from its name: the same in every
    /// run.
    fn insert(&mut self, name: String, shape: &[usize], centre: f32, deviation: f32) {
        if self.is_made_up() {
            let most = deviation * 3f32.sqrt();
            let tensor = made_up_tensor(&format!("{}/{name}", self.label), shape, centre, most);
            self.tensors.insert(name, tensor);
            return;
        }
        let mut hasher = DefaultHasher::new();
        (self.label, &name).hash(&mut hasher);
        let mut generator = StdRng::seed_from_u64(hasher.finish());
        let most = deviation * 3f32.sqrt();
        let numbers = (0..shape.iter().product()).map(|_| centre + generator.random_range(-most..most));
        let values = Tensor::from_vec(numbers.collect::<Vec<f32>>(), shape, &Device::Cpu).unwrap();
        self.tensors.insert(name, values);
    }

    /// Message with which a folder is rejected after a change.
    pub fn refused(mut self, change: &dyn Fn(&mut Self)) -> String {
        change(&mut self);
        let folder = tempfile::tempdir().unwrap();
        ModelSource::open(&self.write_folder(folder.path(), DType::F32)).err().unwrap().to_string()
    }

    /// Asserts that a folder is rejected with the given message if a key of its config.json has the
    /// given value, or if a tensor is missing.
    #[track_caller]
    pub fn assert_refused(&self, settings: &[(&str, serde_json::Value, &str)], lacking: &[(&str, &str)]) {
        for (key, value, expected) in settings {
            let message = self.clone().refused(&|family| family.config[*key] = value.clone());
            assert!(message.contains(expected), "{key} {value}: {message}");
        }
        for (name, expected) in lacking {
            let message = self.clone().refused(&|family| drop(family.tensors.remove(*name).unwrap()));
            assert!(message.contains(expected), "{name}: {message}");
        }
    }

    /// Writes a Hugging Face folder in the given type.
    pub fn folder(&self, path: &Path, dtype: DType) -> ModelSource {
        ModelSource::open(&self.write_folder(path, dtype)).unwrap()
    }

    pub fn write_folder(&self, path: &Path, dtype: DType) -> PathBuf {
        let folder = path.join(format!("{} {dtype:?}", self.label));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        let stored = |(name, tensor): (&String, &Tensor)| (name.clone(), tensor.to_dtype(dtype).unwrap());
        let tensors: HashMap<String, Tensor> = self.tensors.iter().map(stored).collect();
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        folder
    }

    /// Returns the family with a chat template in its GGUF files.
    pub fn with_template(&self, template: &str) -> Self {
        let mut family = self.clone();
        family.config["chat_template"] = json!(template);
        family
    }

    /// Writes a GGUF file; vectors stay in f32.
    pub fn gguf(&self, path: &Path, quantisation: GgmlDType) -> ModelSource {
        let path = path.join(format!("{} {quantisation:?}.gguf", self.label));
        self.write_gguf(&path, quantisation, |_| true);
        ModelSource::open(&path).unwrap()
    }

    /// Writes a GGUF file of the tensors whose GGUF names are `kept`.
    pub(crate) fn write_gguf(&self, path: &Path, quantisation: GgmlDType, kept: impl Fn(&str) -> bool) {
        let converted = self.converted_tensors().into_iter().filter(|(name, _)| kept(name));
        let converted = converted.map(|(name, tensor)| {
            let parts = ["conv.weight", "conv1d", "ffn_gate_inp", "ssm_a", "ssm_d", "ssm_norm"];
            let plain = parts.iter().any(|part| name.contains(part) && !name.contains("ssm_alpha"))
                || tensor.rank() == 1
                || name.ends_with(".bias");
            let dtype = if plain { GgmlDType::F32 } else { quantisation };
            (name, QTensor::quantize(&tensor, dtype).unwrap())
        });
        let rope = &self.config["rope_scaling"];
        let factors = ["long", "short"].into_iter().filter_map(|kind| {
            let factors = rope[format!("{kind}_factor")].as_array()?.iter();
            let factors: Vec<f32> = factors.map(|factor| factor.as_f64().unwrap() as f32).collect();
            let factors = Tensor::new(factors, &Device::Cpu).unwrap();
            let tensor = QTensor::quantize(&factors, GgmlDType::F32).unwrap();
            Some((format!("rope_factors_{kind}.weight"), tensor))
        });
        let tensors: Vec<(String, QTensor)> = converted.chain(factors).collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let metadata = self.metadata();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
    }

    /// Tensors of a GGUF file, except RoPE frequency factors.
    fn converted_tensors(&self) -> Vec<(String, Tensor)> {
        let own = self.tensors.iter().filter(|(name, _)| !name.contains(".experts."));
        let own = own.flat_map(|(name, tensor)| {
            let one = || vec![(self.gguf_name(name), self.converted(name, tensor))];
            let recurrent = self.mtp_tensor(name, tensor).or_else(|| self.recurrent_tensor(name, tensor));
            let recurrent = recurrent.map(|converted| vec![converted]);
            let hybrid = || {
                let is_hybrid = self.is_granite_hybrid();
                is_hybrid.then(|| self.granite_hybrid_tensors(name, tensor)).flatten()
            };
            let recurrent = recurrent.or_else(|| self.latent_tensors(name, tensor));
            recurrent.or_else(hybrid).or_else(|| self.recent_tensors(name, tensor)).unwrap_or_else(one)
        });
        own.chain(self.stacked_experts())
            .chain(self.fixed_norms())
            .chain(self.gemma4_factors())
            .chain(self.recurrent_experts())
            .chain(self.latent_experts())
            .collect()
    }

    /// Stacks the matrices of each layer's experts into one tensor each.
    fn stacked_experts(&self) -> Vec<(String, Tensor)> {
        let layers = 0..self.size("num_hidden_layers");
        if self.architecture == "gpt-oss" {
            return layers.flat_map(|layer| self.gpt_oss_experts(layer)).collect();
        }
        if self.architecture == "gemma4" {
            return layers.flat_map(|layer| self.gemma4_experts(layer)).collect();
        }
        if !self.has_plain_experts() {
            return Vec::new();
        }
        let stacked = |layer: usize, part: &str| {
            let of = |expert| {
                &self.tensors[&format!("model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight")]
            };
            let all: Vec<&Tensor> = (0..self.size("num_experts")).map(of).collect();
            (format!("blk.{layer}.ffn_{part}_exps.weight"), Tensor::stack(&all, 0).unwrap())
        };
        layers.flat_map(|layer| ["gate", "up", "down"].map(|part| stacked(layer, part))).collect()
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let text = |text: &str| Value::String(text.into());
        let number = |key: &str| Value::U32(self.size(key) as u32);
        let float = |key: &str| Value::F32(self.config[key].as_f64().unwrap() as f32);
        let head_size = Value::U32(self.head_size() as u32);
        let mut own = vec![
            ("context_length", number("max_position_embeddings")),
            ("embedding_length", number("hidden_size")),
            ("feed_forward_length", number("intermediate_size")),
            ("block_count", number("num_hidden_layers")),
            ("attention.head_count", number("num_attention_heads")),
            ("attention.head_count_kv", number("num_key_value_heads")),
            ("attention.layer_norm_rms_epsilon", float("rms_norm_eps")),
            ("rope.freq_base", float("rope_theta")),
        ];
        if self.config["head_dim"].is_u64() {
            own.push(("attention.key_length", head_size.clone()));
            own.push(("attention.value_length", head_size));
        }
        if self.config["sliding_window"].is_u64() && self.architecture != "qwen2" {
            own.push(("attention.sliding_window", number("sliding_window")));
        }
        if self.has_plain_experts() {
            own.push(("expert_count", number("num_experts")));
            own.push(("expert_used_count", number("num_experts_per_tok")));
            own.push(("expert_feed_forward_length", number("moe_intermediate_size")));
        }
        if self.architecture == "phi3" {
            let part = self.config["partial_rotary_factor"].as_f64().unwrap_or(1.0);
            let turned = (part * self.head_size() as f64) as u32;
            own.push(("rope.dimension_count", Value::U32(turned)));
            own.push(("attention.sliding_window", Value::U32(0)));
            own.push(("rope.scaling.original_context_length", number("original_max_position_embeddings")));
            let factor = self.config["rope_scaling"]["attention_factor"].as_f64();
            own.extend(factor.map(|factor| ("rope.scaling.attn_factor", Value::F32(factor as f32))));
        }
        let mut recent = self.recent_keys();
        recent.extend(self.recurrent_keys());
        recent.extend(self.latent_keys());
        recent.extend(self.mtp_keys());
        own.retain(|(key, _)| recent.iter().all(|(replaced, _)| replaced != key));
        own.extend(recent);
        let mut all: Vec<(String, Value)> =
            own.into_iter().map(|(key, value)| (format!("{}.{key}", self.architecture), value)).collect();
        let template = self.config["chat_template"].as_str();
        all.extend(template.map(|template| ("tokenizer.chat_template".to_owned(), text(template))));
        let mut tokens = byte_level_tokens(VOCABULARY);
        let mut types = vec![Value::I32(NORMAL); VOCABULARY];
        let special = self.config["special_tokens"].as_array().into_iter().flatten().rev();
        for ((token, kind), special) in tokens.iter_mut().zip(&mut types).rev().zip(special) {
            (*token, *kind) = (text(special.as_str().unwrap()), Value::I32(CONTROL));
        }
        all.extend(
            [
                ("general.architecture", text(self.architecture)),
                ("tokenizer.ggml.model", text("gpt2")),
                ("tokenizer.ggml.pre", text("gpt-2")),
                ("tokenizer.ggml.tokens", Value::Array(tokens)),
                ("tokenizer.ggml.token_type", Value::Array(types)),
                ("tokenizer.ggml.merges", Value::Array(vec![text("t h")])),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        all
    }

    fn gguf_name(&self, name: &str) -> String {
        let post_norms =
            matches!(self.architecture, "gemma3" | "gemma4" | "olmo2" | "muse-glimmer" | "gpt-oss");
        let after_attention = if post_norms { "post_attention_norm" } else { "ffn_norm" };
        let parts = [
            ("model.embed_tokens", "token_embd"),
            ("model.norm", "output_norm"),
            ("lm_head", "output"),
            ("model.layers", "blk"),
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", after_attention),
            ("pre_feedforward_layernorm", "ffn_norm"),
            ("post_feedforward_layernorm", "post_ffw_norm"),
            ("self_attn.qkv_proj", "attn_qkv"),
            ("self_attn.q_proj", "attn_q"),
            ("self_attn.k_proj", "attn_k"),
            ("self_attn.v_proj", "attn_v"),
            ("self_attn.q_norm", "attn_q_norm"),
            ("self_attn.k_norm", "attn_k_norm"),
            ("self_attn.o_proj", "attn_output"),
            ("self_attn.gate_proj", "attn_gate"),
            ("self_attn.sinks", "attn_sinks.weight"),
            ("mlp.router", "ffn_gate_inp"),
            ("shared_mlp.output_linear", "ffn_down"),
            ("mlp.gate_up_proj", "ffn_up"),
            ("mlp.gate.", "ffn_gate_inp."),
            ("mlp.gate_proj", "ffn_gate"),
            ("mlp.up_proj", "ffn_up"),
            ("mlp.down_proj", "ffn_down"),
        ];
        gemma4::NAMES.iter().chain(&parts).fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
    }

    /// Values of a tensor after conversion to GGUF.
    fn converted(&self, name: &str, tensor: &Tensor) -> Tensor {
        let permuted = |heads: usize| {
            // Llama's heads, with the two halves of a head interleaved row by row.
            let (rows, columns) = tensor.dims2().unwrap();
            let halves = tensor.reshape((heads, 2, rows / heads / 2, columns)).unwrap();
            halves.transpose(1, 2).unwrap().contiguous().unwrap().reshape((rows, columns)).unwrap()
        };
        let interleaved = matches!(
            self.architecture,
            "llama" | "mistral3" | "smollm3" | "granite" | "granitehybrid" | "muse-glimmer"
        );
        match self.architecture {
            _ if interleaved && name.ends_with("q_proj.weight") => permuted(HEADS),
            _ if interleaved && name.ends_with("k_proj.weight") => permuted(KV_HEADS),
            "gemma3" if name.ends_with("norm.weight") => (tensor + 1.0).unwrap(),
            "muse-glimmer" if name.ends_with("layernorm.weight") => (tensor + 1.0).unwrap(),
            _ => tensor.clone(),
        }
    }
}
