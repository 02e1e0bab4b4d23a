//! Files of draft heads with random weights, of any kind: layer sizes, token tables, folders and
//! GGUF files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use foretoken_model::ModelSource;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use serde_json::Value as Json;

pub const INTERMEDIATE: usize = 352;
pub const HEADS: usize = 4;
pub const KV_HEADS: usize = 2;
pub const HEAD_SIZE: usize = 64;

/// Numbers between -1 and 1, derived from a name.
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

/// A tensor of numbers derived from its name, within `most` of `centre`.
pub fn made_up_tensor(name: &str, shape: &[usize], centre: f32, most: f32) -> Tensor {
    let numbers = made_up(name, shape.iter().product()).into_iter().map(|number| centre + most * number);
    Tensor::from_vec(numbers.collect(), shape, &Device::Cpu).unwrap()
}

/// Names, rows and columns of a layer's matrices; attention reads `mixed` numbers per token.
pub fn matrices(hidden: usize, mixed: usize) -> [(&'static str, usize, usize); 7] {
    let (queries, keys) = (HEADS * HEAD_SIZE, KV_HEADS * HEAD_SIZE);
    [
        ("self_attn.q_proj", queries, mixed),
        ("self_attn.k_proj", keys, mixed),
        ("self_attn.v_proj", keys, mixed),
        ("self_attn.o_proj", hidden, queries),
        ("mlp.gate_proj", INTERMEDIATE, hidden),
        ("mlp.up_proj", INTERMEDIATE, hidden),
        ("mlp.down_proj", hidden, INTERMEDIATE),
    ]
}

/// Writes a folder of safetensors. `guessed` are the head's tokens and the size of the target's
/// vocabulary, unless it has all tokens.
///
/// # Errors
/// Those of [`ModelSource::open`].
pub fn write_folder(
    folder: &Path,
    config: &Json,
    mut tensors: HashMap<String, Tensor>,
    guessed: Option<(&[TokenId], usize)>,
) -> Result<ModelSource> {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    if let Some((guessed, vocabulary)) = guessed {
        let offsets = guessed.iter().enumerate().map(|(row, &token)| i64::from(token) - row as i64);
        tensors.insert("d2t".to_owned(), Tensor::from_iter(offsets, &Device::Cpu).unwrap());
        let known = (0..vocabulary as TokenId).map(|token| u8::from(guessed.contains(&token)));
        tensors.insert("t2d".to_owned(), Tensor::from_iter(known, &Device::Cpu).unwrap());
    }
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    ModelSource::open(folder)
}

/// Writes a GGUF file. `guessed` are the head's tokens, unless it has all tokens.
///
/// # Errors
/// Those of [`ModelSource::open`].
pub fn write_gguf(
    path: &Path,
    metadata: &[(String, Value)],
    tensors: Vec<(String, QTensor)>,
    guessed: Option<&[TokenId]>,
) -> Result<ModelSource> {
    write_gguf_with(path, metadata, tensors, guessed.map(|guessed| ("d2t", guessed)))
}

/// Writes a GGUF file with an optional list of tokens under a name.
///
/// # Errors
/// Those of [`ModelSource::open`].
pub fn write_gguf_with(
    path: &Path,
    metadata: &[(String, Value)],
    mut tensors: Vec<(String, QTensor)>,
    list: Option<(&str, &[TokenId])>,
) -> Result<ModelSource> {
    if let Some((name, list)) = list {
        let halves = |&token: &TokenId| [token, 0].map(f32::from_bits);
        let halves: Vec<f32> = list.iter().flat_map(halves).collect();
        let halves = Tensor::new(halves, &Device::Cpu).unwrap();
        tensors.push((name.to_owned(), QTensor::quantize(&halves, GgmlDType::F32).unwrap()));
    }
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
    if let Some((name, list)) = list {
        let mut file = fs::read(path).unwrap();
        widen(&mut file, name, list.len());
        fs::write(path, file).unwrap();
    }
    ModelSource::open(path)
}

/// GGUF metadata of a head of an architecture: its number of layers, and the target layers
/// `entering` that it reads.
pub fn metadata(
    architecture: &str,
    layers: usize,
    hidden: usize,
    vocabulary: usize,
    entering: &[usize],
) -> Vec<(String, Value)> {
    let size = |size: usize| Value::U32(size as u32);
    let entering = entering.iter().map(|&layer| Value::I32(layer as i32)).collect();
    let own = [
        ("block_count", size(layers)),
        ("context_length", size(512)),
        ("embedding_length", size(hidden)),
        ("feed_forward_length", size(INTERMEDIATE)),
        ("attention.head_count", size(HEADS)),
        ("attention.head_count_kv", size(KV_HEADS)),
        ("attention.key_length", size(HEAD_SIZE)),
        ("attention.value_length", size(HEAD_SIZE)),
        ("attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        ("rope.freq_base", Value::F32(1e4)),
        ("vocab_size", size(vocabulary)),
        ("target_layers", Value::Array(entering)),
    ];
    let name = ("general.architecture".to_owned(), Value::String(architecture.to_owned()));
    let own = own.map(|(key, value)| (format!("{architecture}.{key}"), value));
    [name].into_iter().chain(own).collect()
}

/// Converts a 32-bit tensor in a file to half as many 64-bit integers, which candle cannot write.
fn widen(file: &mut [u8], name: &str, count: usize) {
    let place = [&(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
    let at = file.windows(place.len()).position(|bytes| bytes == place).unwrap() + place.len();
    // The number of dimensions, the only one, the type.
    file[at + 4..at + 12].copy_from_slice(&(count as u64).to_le_bytes());
    file[at + 12..at + 16].copy_from_slice(&27u32.to_le_bytes());
}
