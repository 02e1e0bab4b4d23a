//! Small model files generated for tests: a complete Llama of a few kilobytes that each test
//! modifies. Contains no assertions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod vision;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

pub use vision::VisionSizes;

pub const VOCABULARY: usize = 261;
pub const HIDDEN: usize = 32;
pub const INTERMEDIATE: usize = 64;
pub const HEADS: usize = 4;
pub const KV_HEADS: usize = 2;
pub const HEAD_SIZE: usize = 8;

/// Contents of a GGUF file before it is written.
#[derive(Default)]
pub struct Gguf {
    pub values: BTreeMap<String, Value>,
    pub tensors: BTreeMap<String, QTensor>,
}

/// GPT-2's byte-to-character alphabet, in the order of the bytes.
pub fn alphabet() -> Vec<String> {
    let printable = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let spell = |byte: u32| {
        let code = if printable(byte) {
            byte
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).unwrap().to_string()
    };
    (0..256).map(spell).collect()
}

pub fn text(text: &str) -> Value {
    Value::String(text.into())
}

pub fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
    Value::Array(texts.into_iter().map(text).collect())
}

impl Gguf {
    /// Llama with one layer and byte-level tokens: 0..256 the bytes, 256 "he", 257 "hel", 258
    /// `<s>`, 259 `</s>`, 260 the added token `<tag>`.
    pub fn tiny() -> Self {
        let mut tokens = alphabet();
        tokens.extend(["he", "hel", "<s>", "</s>", "<tag>"].map(String::from));
        let types = (0..VOCABULARY).map(|id| match id {
            258 | 259 => Value::I32(3),
            260 => Value::I32(4),
            _ => Value::I32(1),
        });
        let size = |n: usize| Value::U32(n as u32);
        let values = [
            ("general.architecture", text("llama")),
            ("general.name", text("Tiny")),
            ("llama.block_count", size(1)),
            ("llama.context_length", size(64)),
            ("llama.embedding_length", size(HIDDEN)),
            ("llama.feed_forward_length", size(INTERMEDIATE)),
            ("llama.attention.head_count", size(HEADS)),
            ("llama.attention.head_count_kv", size(KV_HEADS)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("gpt-2")),
            ("tokenizer.ggml.tokens", texts(tokens.iter().map(String::as_str))),
            ("tokenizer.ggml.token_type", Value::Array(types.collect())),
            ("tokenizer.ggml.merges", texts(["h e", "he l"])),
            ("tokenizer.ggml.bos_token_id", size(258)),
            ("tokenizer.ggml.eos_token_id", size(259)),
        ];
        let mut gguf = Self {
            values: values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            tensors: BTreeMap::new(),
        };
        gguf.add("token_embd.weight", &[VOCABULARY, HIDDEN], GgmlDType::Q8_0);
        gguf.add("output_norm.weight", &[HIDDEN], GgmlDType::F32);
        for (name, shape) in [
            ("attn_q", [HEADS * HEAD_SIZE, HIDDEN]),
            ("attn_k", [KV_HEADS * HEAD_SIZE, HIDDEN]),
            ("attn_v", [KV_HEADS * HEAD_SIZE, HIDDEN]),
            ("attn_output", [HIDDEN, HEADS * HEAD_SIZE]),
            ("ffn_gate", [INTERMEDIATE, HIDDEN]),
            ("ffn_up", [INTERMEDIATE, HIDDEN]),
            ("ffn_down", [HIDDEN, INTERMEDIATE]),
        ] {
            gguf.add(&format!("blk.0.{name}.weight"), &shape, GgmlDType::F16);
        }
        gguf.add("blk.0.attn_norm.weight", &[HIDDEN], GgmlDType::F32);
        gguf.add("blk.0.ffn_norm.weight", &[HIDDEN], GgmlDType::F32);
        gguf
    }

    /// SentencePiece vocabulary without weights; byte b has token 3 + b.
    pub fn sentence_piece(pieces: &[(&str, f32)]) -> Self {
        let bytes: Vec<String> = (0..256).map(|byte| format!("<0x{byte:02X}>")).collect();
        let mut tokens = vec![("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)];
        tokens.extend(bytes.iter().map(|byte| (byte.as_str(), 0.0, 6)));
        tokens.extend(pieces.iter().map(|&(piece, score)| (piece, score, 1)));
        let values = [
            ("general.architecture", text("llama")),
            ("tokenizer.ggml.model", text("llama")),
            ("tokenizer.ggml.tokens", texts(tokens.iter().map(|t| t.0))),
            ("tokenizer.ggml.scores", Value::Array(tokens.iter().map(|t| Value::F32(t.1)).collect())),
            ("tokenizer.ggml.token_type", Value::Array(tokens.iter().map(|t| Value::I32(t.2)).collect())),
            ("tokenizer.ggml.bos_token_id", Value::U32(1)),
            ("tokenizer.ggml.eos_token_id", Value::U32(2)),
            ("tokenizer.ggml.unknown_token_id", Value::U32(0)),
        ];
        Self {
            values: values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            tensors: BTreeMap::new(),
        }
    }

    /// Adds or replaces a tensor whose values rise from -1 to 1.
    pub fn add(&mut self, name: &str, shape: &[usize], dtype: GgmlDType) {
        let tensor = QTensor::quantize(&ramp(shape), dtype).unwrap();
        self.tensors.insert(name.to_owned(), tensor);
    }

    pub fn set(&mut self, key: &str, value: Value) {
        self.values.insert(key.to_owned(), value);
    }

    /// Appends tokens to the vocabulary, each with GGUF's number of its type; returns the first id.
    /// Drops the tensors, which no longer fit.
    pub fn extend_vocabulary(&mut self, more: impl IntoIterator<Item = (String, i32)>) -> u32 {
        self.tensors.clear();
        let (names, types): (Vec<Value>, Vec<Value>) =
            more.into_iter().map(|(token, number)| (Value::String(token), Value::I32(number))).unzip();
        let mut first = 0;
        for (key, values) in [("tokens", names), ("token_type", types)] {
            let list = self.values.get_mut(&format!("tokenizer.ggml.{key}"));
            let Some(Value::Array(list)) = list else { panic!("{key}") };
            first = list.len() as u32;
            list.extend(values);
        }
        first
    }

    pub fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("model.gguf");
        let values: Vec<(&str, &Value)> = self.values.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let tensors: Vec<(&str, &QTensor)> = self.tensors.iter().map(|(k, v)| (k.as_str(), v)).collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &values, &tensors).unwrap();
        path
    }
}

/// Values that rise from -1 to 1.
pub fn ramp(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| 2.0 * i as f32 / count as f32 - 1.0).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// Path of a file in the test data.
pub fn data(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}
