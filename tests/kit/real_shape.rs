//! Random models with the heads of Qwen3.5 9B. One has its widths but fewer layers and a small
//! vocabulary, to measure the cost of recurrent layers; one is small.

use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Device, Tensor};
use foretoken_model::ModelSource;
use foretoken_model::format::Format;

use crate::byte_level_tokens;
use crate::gguf_file::{self, Stored};

const VOCABULARY: usize = 2048;

/// Size of the heads of recurrent layers, and of attention.
const SIZE: usize = 128;
const HEAD: usize = 256;

/// Widths, and numbers of heads.
struct Shape {
    hidden: usize,
    intermediate: usize,
    /// Heads of keys and values in recurrent layers.
    keys: usize,
    values: usize,
    /// Heads in attention, for queries and for keys.
    heads: usize,
    kv_heads: usize,
}

/// Writes a model of `layers` layers, every fourth of which has attention.
pub fn qwen35_9b(folder: &Path, layers: usize) -> ModelSource {
    let shape = Shape { hidden: 4096, intermediate: 12_288, keys: 16, values: 32, heads: 16, kv_heads: 4 };
    write(folder, layers, &shape)
}

/// Writes a small model of four layers.
pub fn small_qwen35(folder: &Path) -> ModelSource {
    write(folder, 4, &Shape { hidden: 256, intermediate: 512, keys: 2, values: 4, heads: 2, kv_heads: 1 })
}

fn write(folder: &Path, layers: usize, shape: &Shape) -> ModelSource {
    let Shape { hidden, intermediate, keys, values, heads, kv_heads } = *shape;
    let width = values * SIZE;
    let channels = 2 * keys * SIZE + width;
    let mut tensors = vec![matrix("token_embd.weight".to_owned(), VOCABULARY, hidden)];
    tensors.push(ones("output_norm.weight".to_owned(), hidden, 1.0));
    for layer in 0..layers {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let mut add = |part: &str, rows, columns| tensors.push(matrix(name(part), rows, columns));
        if (layer + 1) % 4 == 0 {
            add("attn_q.weight", 2 * heads * HEAD, hidden);
            add("attn_k.weight", kv_heads * HEAD, hidden);
            add("attn_v.weight", kv_heads * HEAD, hidden);
            add("attn_output.weight", hidden, heads * HEAD);
            tensors.push(ones(name("attn_q_norm.weight"), HEAD, 1.0));
            tensors.push(ones(name("attn_k_norm.weight"), HEAD, 1.0));
        } else {
            add("attn_qkv.weight", channels, hidden);
            add("attn_gate.weight", width, hidden);
            add("ssm_beta.weight", values, hidden);
            add("ssm_alpha.weight", values, hidden);
            add("ssm_out.weight", hidden, width);
            let kernel = Tensor::randn(0f32, 0.5, (channels, 4), &Device::Cpu).unwrap();
            tensors.push(Stored::of(name("ssm_conv1d.weight"), &kernel, Format::F32));
            tensors.push(ones(name("ssm_dt.bias"), values, 0.5));
            tensors.push(ones(name("ssm_a"), values, -0.1));
            tensors.push(ones(name("ssm_norm.weight"), SIZE, 1.0));
        }
        for (part, rows, columns) in [
            ("ffn_gate.weight", intermediate, hidden),
            ("ffn_up.weight", intermediate, hidden),
            ("ffn_down.weight", hidden, intermediate),
        ] {
            tensors.push(matrix(name(part), rows, columns));
        }
        tensors.push(ones(name("attn_norm.weight"), hidden, 1.0));
        tensors.push(ones(name("post_attention_norm.weight"), hidden, 1.0));
    }
    let number = |value: usize| Value::U32(value as u32);
    let text = |text: &str| Value::String(text.into());
    let entries = [
        ("general.architecture", text("qwen35")),
        ("qwen35.context_length", number(32_768)),
        ("qwen35.embedding_length", number(hidden)),
        ("qwen35.feed_forward_length", number(intermediate)),
        ("qwen35.block_count", number(layers)),
        ("qwen35.attention.head_count", number(heads)),
        ("qwen35.attention.head_count_kv", number(kv_heads)),
        ("qwen35.attention.key_length", number(HEAD)),
        ("qwen35.attention.value_length", number(HEAD)),
        ("qwen35.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
        ("qwen35.full_attention_interval", number(4)),
        ("qwen35.rope.dimension_count", number(64)),
        ("qwen35.ssm.conv_kernel", number(4)),
        ("qwen35.ssm.state_size", number(SIZE)),
        ("qwen35.ssm.group_count", number(keys)),
        ("qwen35.ssm.time_step_rank", number(values)),
        ("qwen35.ssm.inner_size", number(width)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("qwen35")),
        ("tokenizer.ggml.tokens", Value::Array(byte_level_tokens(VOCABULARY))),
        ("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(1); VOCABULARY])),
        ("tokenizer.ggml.merges", Value::Array(vec![text("t h")])),
    ];
    let path = folder.join(format!("qwen35-{hidden}-{layers}.gguf"));
    gguf_file::write(&path, &entries, &tensors);
    ModelSource::open(&path).unwrap()
}

fn matrix(name: String, rows: usize, columns: usize) -> Stored {
    // One part many times over: the values do not matter here.
    let count = rows.min(32);
    let part = Stored::random(name, [count, columns], Format::Q4K, 0.02);
    Stored { shape: vec![rows, columns], bytes: part.bytes.repeat(rows / count), ..part }
}

fn ones(name: String, length: usize, number: f64) -> Stored {
    let numbers = (Tensor::ones(length, DType::F32, &Device::Cpu).unwrap() * number).unwrap();
    Stored::of(name, &numbers, Format::F32)
}
