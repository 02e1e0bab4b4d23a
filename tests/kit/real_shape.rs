//! Random model with the sizes of Qwen3.5 9B but fewer layers and a small vocabulary, to measure
//! the cost of recurrent layers.

use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use candle_core::{DType, Device, Tensor};
use foretoken_model::ModelSource;
use foretoken_model::format::Format;

use crate::byte_level_tokens;
use crate::gguf_file::{self, Stored};

const HIDDEN: usize = 4096;
const INTERMEDIATE: usize = 12_288;
const VOCABULARY: usize = 2048;
/// Sizes of all values, and of a convolved row.
const VALUES: usize = 32 * 128;
const CHANNELS: usize = 2 * 16 * 128 + VALUES;

/// Writes a model of `layers` layers, every fourth of which has attention.
pub fn qwen35_9b(folder: &Path, layers: usize) -> ModelSource {
    let mut tensors = vec![matrix("token_embd.weight".to_owned(), VOCABULARY, HIDDEN)];
    tensors.push(ones("output_norm.weight".to_owned(), HIDDEN, 1.0));
    for layer in 0..layers {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let mut add = |part: &str, rows, columns| tensors.push(matrix(name(part), rows, columns));
        if (layer + 1) % 4 == 0 {
            add("attn_q.weight", 2 * 4096, HIDDEN);
            add("attn_k.weight", 1024, HIDDEN);
            add("attn_v.weight", 1024, HIDDEN);
            add("attn_output.weight", HIDDEN, 4096);
            tensors.push(ones(name("attn_q_norm.weight"), 256, 1.0));
            tensors.push(ones(name("attn_k_norm.weight"), 256, 1.0));
        } else {
            add("attn_qkv.weight", CHANNELS, HIDDEN);
            add("attn_gate.weight", VALUES, HIDDEN);
            add("ssm_beta.weight", 32, HIDDEN);
            add("ssm_alpha.weight", 32, HIDDEN);
            add("ssm_out.weight", HIDDEN, VALUES);
            let kernel = Tensor::randn(0f32, 0.5, (CHANNELS, 4), &Device::Cpu).unwrap();
            tensors.push(Stored::of(name("ssm_conv1d.weight"), &kernel, Format::F32));
            tensors.push(ones(name("ssm_dt.bias"), 32, 0.5));
            tensors.push(ones(name("ssm_a"), 32, -0.1));
            tensors.push(ones(name("ssm_norm.weight"), 128, 1.0));
        }
        for (part, rows, columns) in [
            ("ffn_gate.weight", INTERMEDIATE, HIDDEN),
            ("ffn_up.weight", INTERMEDIATE, HIDDEN),
            ("ffn_down.weight", HIDDEN, INTERMEDIATE),
        ] {
            tensors.push(matrix(name(part), rows, columns));
        }
        tensors.push(ones(name("attn_norm.weight"), HIDDEN, 1.0));
        tensors.push(ones(name("post_attention_norm.weight"), HIDDEN, 1.0));
    }
    let number = |value: usize| Value::U32(value as u32);
    let text = |text: &str| Value::String(text.into());
    let values = [
        ("general.architecture", text("qwen35")),
        ("qwen35.context_length", number(32_768)),
        ("qwen35.embedding_length", number(HIDDEN)),
        ("qwen35.feed_forward_length", number(INTERMEDIATE)),
        ("qwen35.block_count", number(layers)),
        ("qwen35.attention.head_count", number(16)),
        ("qwen35.attention.head_count_kv", number(4)),
        ("qwen35.attention.key_length", number(256)),
        ("qwen35.attention.value_length", number(256)),
        ("qwen35.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
        ("qwen35.full_attention_interval", number(4)),
        ("qwen35.rope.dimension_count", number(64)),
        ("qwen35.ssm.conv_kernel", number(4)),
        ("qwen35.ssm.state_size", number(128)),
        ("qwen35.ssm.group_count", number(16)),
        ("qwen35.ssm.time_step_rank", number(32)),
        ("qwen35.ssm.inner_size", number(VALUES)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("qwen35")),
        ("tokenizer.ggml.tokens", Value::Array(byte_level_tokens(VOCABULARY))),
        ("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(1); VOCABULARY])),
        ("tokenizer.ggml.merges", Value::Array(vec![text("t h")])),
    ];
    let path = folder.join(format!("qwen35-9b-{layers}.gguf"));
    gguf_file::write(&path, &values, &tensors);
    ModelSource::open(&path).unwrap()
}

fn matrix(name: String, rows: usize, columns: usize) -> Stored {
    // One part many times over: the values do not matter here.
    let part = Stored::random(name, [32, columns], Format::Q4K, 0.02);
    Stored { shape: vec![rows, columns], bytes: part.bytes.repeat(rows / 32), ..part }
}

fn ones(name: String, length: usize, number: f64) -> Stored {
    let numbers = (Tensor::ones(length, DType::F32, &Device::Cpu).unwrap() * number).unwrap();
    Stored::of(name, &numbers, Format::F32)
}
