//! Small random embedding models of every kind, written as Hugging Face folders and as GGUF files.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use candle_core::Tensor;
use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use serde_json::{Value as Json, json};

use crate::head_files::made_up_tensor;

const WIDTH: usize = 32;
const INTERMEDIATE: usize = 64;
const HEADS: usize = 4;
const POSITIONS: usize = 130;
/// Number of the padding token.
const PADDING: usize = 1;

/// Tokens of the vocabulary, as WordPiece has them.
const TOKENS: [&str; 18] = [
    "[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]", "the", "fox", "hen", "##s", "run", "sleep", "does", "not",
    "and", ";", "##ing", "a", "b",
];

/// An embedding model before it is written.
pub struct RandomEmbedder {
    /// `model_type` in config.json.
    pub label: &'static str,
    tensors: BTreeMap<String, Tensor>,
}

impl RandomEmbedder {
    /// Every kind of embedding model.
    pub fn all() -> Vec<Self> {
        ["bert", "modernbert", "nomic_bert", "xlm-roberta"].map(Self::new).into()
    }

    /// The kind with this `model_type`.
    pub fn new(label: &'static str) -> Self {
        let tensors = shapes(label).into_iter().map(|(name, shape)| {
            let centre =
                if name.to_lowercase().contains("norm") && name.ends_with("weight") { 1.0 } else { 0.0 };
            let tensor = made_up_tensor(&name, &shape, centre, 0.3);
            (name, tensor)
        });
        Self { label, tensors: tensors.collect() }
    }

    /// Writes a folder below `path` and returns its path.
    pub fn write_folder(&self, path: &Path) -> PathBuf {
        let folder = path.join(self.label);
        fs::create_dir_all(folder.join("1_Pooling")).unwrap();
        let write = |name: &str, json: Json| fs::write(folder.join(name), json.to_string()).unwrap();
        write("config.json", self.config());
        write("tokenizer.json", tokenizer());
        let first = self.label == "modernbert";
        write(
            "1_Pooling/config.json",
            json!({"pooling_mode_cls_token": first, "pooling_mode_mean_tokens": !first}),
        );
        let step = |name: &str| json!({"type": format!("sentence_transformers.models.{name}")});
        write("modules.json", json!([step("Transformer"), step("Pooling"), step("Normalize")]));
        let tensors: HashMap<_, _> = self.tensors.clone().into_iter().collect();
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        folder
    }

    fn config(&self) -> Json {
        let sizes = json!({
            "model_type": self.label, "vocab_size": TOKENS.len(), "pad_token_id": PADDING,
            "hidden_size": WIDTH, "intermediate_size": INTERMEDIATE, "num_hidden_layers": layers(self.label),
            "num_attention_heads": HEADS, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
            "hidden_act": "gelu", "layer_norm_eps": 1e-5,
        });
        let own = match self.label {
            "modernbert" => json!({
                "norm_eps": 1e-5, "hidden_activation": "gelu", "local_attention": 16, "global_attn_every_n_layers": 3,
                "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0, "cls_token_id": 0, "sep_token_id": 2,
                "bos_token_id": 0, "eos_token_id": 2,
            }),
            // The names of published files, and those of transformers.
            "nomic_bert" => json!({
                "hidden_act": "silu", "activation_function": "swiglu", "n_embd": WIDTH, "n_inner": INTERMEDIATE,
                "n_layer": layers(self.label), "n_head": HEADS, "n_positions": POSITIONS, "rotary_emb_base": 1000.0,
                "layer_norm_epsilon": 1e-5, "rotary_emb_fraction": 1.0,
            }),
            _ => json!({}),
        };
        let both = sizes.as_object().into_iter().chain(own.as_object()).flatten();
        both.map(|(key, value)| (key.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
    }

    /// Writes a GGUF file below `path` and returns its path.
    pub fn write_gguf(&self, path: &Path, quantisation: GgmlDType) -> PathBuf {
        let file = path.join(format!("{}.gguf", self.label));
        let tensors: Vec<(String, QTensor)> = self
            .tensors
            .iter()
            .filter_map(|(name, tensor)| {
                let kind = if tensor.rank() == 2 { quantisation } else { GgmlDType::F32 };
                Some((in_gguf(name)?, QTensor::quantize(tensor, kind).unwrap()))
            })
            .collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let metadata = self.metadata();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        gguf_file::write(&mut File::create(&file).unwrap(), &metadata, &tensors).unwrap();
        file
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let architecture = self.label.replace('_', "-");
        let size = |size: usize| Value::U32(size as u32);
        let text = |text: &str| Value::String(text.to_owned());
        let own = [
            ("embedding_length", size(WIDTH)),
            ("feed_forward_length", size(INTERMEDIATE)),
            ("block_count", size(layers(self.label))),
            ("context_length", size(POSITIONS)),
            ("attention.head_count", size(HEADS)),
            ("attention.layer_norm_epsilon", Value::F32(1e-5)),
            ("pooling_type", size(1)),
            ("rope.freq_base", Value::F32(1000.0)),
        ];
        let own = own.map(|(key, value)| (format!("{architecture}.{key}"), value));
        let token = |token: &&str| match token.strip_prefix("##") {
            Some(rest) => text(rest),
            None if token.starts_with('[') => text(token),
            None => text(&format!("\u{2581}{token}")),
        };
        let general = [
            ("general.architecture", text(&architecture)),
            ("tokenizer.ggml.model", text("bert")),
            ("tokenizer.ggml.tokens", Value::Array(TOKENS.iter().map(token).collect())),
            ("tokenizer.ggml.token_type_count", size(2)),
            ("tokenizer.ggml.cls_token_id", size(0)),
            ("tokenizer.ggml.seperator_token_id", size(2)),
            ("tokenizer.ggml.unknown_token_id", size(3)),
        ];
        general.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(own).collect()
    }
}

fn layers(label: &str) -> usize {
    // Of ModernBERT one more without a window, after two with.
    if label == "modernbert" { 4 } else { 2 }
}

/// Names of the tensors, those of published files, and their shapes.
fn shapes(label: &str) -> Vec<(String, Vec<usize>)> {
    let mut shapes = Vec::new();
    let mut add = |name: String, shape: &[usize]| shapes.push((name, shape.to_vec()));
    let prefix = if label == "xlm-roberta" { "roberta." } else { "" };
    if label == "modernbert" {
        add("embeddings.tok_embeddings.weight".into(), &[TOKENS.len(), WIDTH]);
        add("embeddings.norm.weight".into(), &[WIDTH]);
        add("final_norm.weight".into(), &[WIDTH]);
    } else {
        for (name, rows) in [("word", TOKENS.len()), ("token_type", 2)] {
            add(format!("{prefix}embeddings.{name}_embeddings.weight"), &[rows, WIDTH]);
        }
    }
    for layer in 0..layers(label) {
        match label {
            "modernbert" => {
                let name = |part: &str| format!("layers.{layer}.{part}.weight");
                add(name("attn.Wqkv"), &[3 * WIDTH, WIDTH]);
                add(name("attn.Wo"), &[WIDTH, WIDTH]);
                add(name("mlp.Wi"), &[2 * INTERMEDIATE, WIDTH]);
                add(name("mlp.Wo"), &[WIDTH, INTERMEDIATE]);
                add(name("mlp_norm"), &[WIDTH]);
                if layer > 0 {
                    add(name("attn_norm"), &[WIDTH]);
                }
            }
            "nomic_bert" => {
                let name = |part: &str| format!("encoder.layers.{layer}.{part}");
                add(name("attn.Wqkv.weight"), &[3 * WIDTH, WIDTH]);
                add(name("attn.out_proj.weight"), &[WIDTH, WIDTH]);
                add(name("mlp.fc11.weight"), &[INTERMEDIATE, WIDTH]);
                add(name("mlp.fc12.weight"), &[INTERMEDIATE, WIDTH]);
                add(name("mlp.fc2.weight"), &[WIDTH, INTERMEDIATE]);
                for part in ["norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"] {
                    add(name(part), &[WIDTH]);
                }
            }
            _ => {
                let name = |part: &str| format!("{prefix}encoder.layer.{layer}.{part}");
                let mut linear = |part: &str, outputs: usize, inputs: usize| {
                    add(name(&format!("{part}.weight")), &[outputs, inputs]);
                    add(name(&format!("{part}.bias")), &[outputs]);
                };
                for part in ["self.query", "self.key", "self.value", "output.dense"] {
                    linear(&format!("attention.{part}"), WIDTH, WIDTH);
                }
                linear("intermediate.dense", INTERMEDIATE, WIDTH);
                linear("output.dense", WIDTH, INTERMEDIATE);
                for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
                    add(name(&format!("{part}.weight")), &[WIDTH]);
                    add(name(&format!("{part}.bias")), &[WIDTH]);
                }
            }
        }
    }
    match label {
        "modernbert" => {}
        "nomic_bert" => ["weight", "bias"].iter().for_each(|part| add(format!("emb_ln.{part}"), &[WIDTH])),
        _ => {
            add(format!("{prefix}embeddings.position_embeddings.weight"), &[POSITIONS, WIDTH]);
            ["weight", "bias"]
                .iter()
                .for_each(|part| add(format!("{prefix}embeddings.LayerNorm.{part}"), &[WIDTH]));
            // Not needed for an embedding.
            add(format!("{prefix}pooler.dense.weight"), &[WIDTH, WIDTH]);
            add(format!("{prefix}pooler.dense.bias"), &[WIDTH]);
        }
    }
    shapes
}

/// Name of a tensor in llama.cpp's files; `None` for one that these do not have.
fn in_gguf(name: &str) -> Option<String> {
    const PARTS: [(&str, &str); 21] = [
        ("embeddings.word_embeddings", "token_embd"),
        ("embeddings.token_type_embeddings", "token_types"),
        ("embeddings.position_embeddings", "position_embd"),
        ("embeddings.LayerNorm", "token_embd_norm"),
        ("emb_ln", "token_embd_norm"),
        ("attention.self.query", "attn_q"),
        ("attention.self.key", "attn_k"),
        ("attention.self.value", "attn_v"),
        ("attention.output.dense", "attn_output"),
        ("attention.output.LayerNorm", "attn_output_norm"),
        ("intermediate.dense", "ffn_up"),
        ("output.dense", "ffn_down"),
        ("output.LayerNorm", "layer_output_norm"),
        ("attn.Wqkv", "attn_qkv"),
        ("attn.out_proj", "attn_output"),
        ("norm1", "attn_output_norm"),
        ("mlp.fc11", "ffn_up"),
        ("mlp.fc12", "ffn_gate"),
        ("mlp.fc2", "ffn_down"),
        ("norm2", "layer_output_norm"),
        ("pooler.dense", ""),
    ];
    let (part, kind) = name.rsplit_once('.')?;
    let (layer, part) =
        match part.strip_prefix("encoder.layer").map(|rest| rest.trim_start_matches(['s', '.'])) {
            Some(rest) => rest.split_once('.').map(|(layer, part)| (Some(layer), part))?,
            None => (None, part),
        };
    let theirs = PARTS.iter().find(|(ours, _)| *ours == part)?.1;
    let layer = layer.map(|layer| format!("blk.{layer}.")).unwrap_or_default();
    (!theirs.is_empty()).then(|| format!("{layer}{theirs}.{kind}"))
}

/// A tokenizer.json with the vocabulary.
fn tokenizer() -> Json {
    let special = |id: usize| json!({"id": TOKENS[id], "type_id": 0});
    json!({
        "version": "1.0",
        // As in published files; embeddings need neither.
        "truncation": {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": PADDING,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "added_tokens": (0..5).map(|id| json!({
            "id": id, "content": TOKENS[id], "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true,
        })).collect::<Vec<_>>(),
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": special(0)}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": special(2)}],
            "pair": [],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [0], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]},
            },
        },
        "decoder": null,
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": TOKENS.iter().enumerate().map(|(id, token)| ((*token).to_owned(), json!(id)))
                .collect::<serde_json::Map<_, _>>(),
        },
    })
}
