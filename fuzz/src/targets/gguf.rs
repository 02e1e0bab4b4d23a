//! GGUF files: damaged headers, and vocabularies with inconsistent lists.

use std::fs;
use std::path::Path;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use foretoken_model::Error;
use foretoken_model::format::Format;
use foretoken_model::{ModelSource, Special};

use super::{Memory, Target, folder};
use crate::random::Random;

#[allow(dead_code)]
use foretoken_testkit::{Gguf, HEAD_SIZE, HEADS, HIDDEN, text};

const WORDS: &[&str] = &[
    "llama",
    "qwen3",
    "gemma2",
    "phi3",
    "mistral3",
    "smollm3",
    "granite",
    "olmo2",
    "muse-glimmer",
    "lfm2",
    "lfm2moe",
    "granitehybrid",
    "qwen35",
    "qwen35moe",
    "qwen3moe",
    "gpt-oss",
    "gemma4",
    "deepseek2",
    "llama.expert_count",
    "llama.expert_used_count",
    "gemma4-assistant",
    "gemma4-assistant.embedding_length_out",
    "gemma4-assistant.nextn_predict_layers",
    "gemma4-assistant.block_count",
    "masked_embd_centroids.weight",
    "masked_embd_ordering",
    "gemma4.attention.shared_kv_layers",
    "gemma4.embedding_length_per_layer_input",
    "gemma4.feed_forward_length",
    "gpt2",
    "general.architecture",
    "tokenizer.ggml.tokens",
    "scores",
    "token_type",
    "merges",
    "llama.block_count",
    "llama.rope.scaling.type",
    "yarn",
    "llama.rope.scaling.factor",
    "llama.attention.temperature_scale",
    "qwen35.ssm.state_size",
    "qwen35.full_attention_interval",
    "qwen35.nextn_predict_layers",
    "qwen35.block_count",
    "blk.2.nextn.eh_proj.weight",
    "blk.2.nextn.embed_tokens.weight",
    "blk.2.nextn.shared_head_head.weight",
    "blk.0.attn_norm.weight",
    "gpt-oss.attention.sliding_window",
    "gpt-oss.expert_feed_forward_length",
    "blk.0.attn_sinks.weight",
    "lfm2.shortconv.l_cache",
    "lfm2moe.leading_dense_block_count",
    "lfm2moe.expert_gating_func",
    "lfm2moe.expert_weights_scale",
    "exp_probs_b.bias",
    "granitehybrid.ssm.inner_size",
    "granitehybrid.ssm.group_count",
    "granitehybrid.expert_shared_feed_forward_length",
    "granitehybrid.rope.scaling.finetuned",
    "ssm_conv1d.bias",
    "deepseek2.attention.kv_lora_rank",
    "deepseek2.attention.q_lora_rank",
    "deepseek2.attention.key_length_mla",
    "deepseek2.attention.value_length_mla",
    "deepseek2.expert_shared_count",
    "deepseek2.expert_group_count",
    "attn_k_b.weight",
    "qwen35moe.expert_shared_feed_forward_length",
    "token_embd.weight",
    "output.weight",
    "blk.0.attn_q.weight",
];

/// Reads every part of a model's metadata.
pub(super) fn look(path: &Path) -> Result<(), Error> {
    let source = ModelSource::open(path)?;
    source.describe();
    if source.speaks_of_mtp() {
        drop(source.mtp_head());
    }
    source.special_tokens()?;
    let tokenizer = source.tokenizer()?;
    for text in ["Hello, hell </s>", "a\u{301} 12345 \n\n  ▁世界 <tag>"] {
        let tokens = tokenizer.encode(text, Special::Parse)?;
        tokenizer.decode(&tokens);
    }
    source.config().map(|_| ())
}

pub fn target() -> Target {
    let folder = folder();
    let mut gguf = Gguf::tiny();
    gguf.set("tokenizer.chat_template", text("{% for m in messages %}{{ m.content }}{% endfor %}"));
    let path = gguf.write(folder.path());
    let whole = fs::read(&path).unwrap();
    let last = b"token_embd.weight";
    let head = whole.windows(last.len()).position(|window| window == last).unwrap() + 64;
    let retyped: Vec<Vec<u8>> = Format::ALL.iter().map(|format| with_type(&whole, format.number())).collect();
    let pieces = [("▁", -3.0), ("a", -2.0), ("▁a", -1.0), ("he", -1.5)];
    let pieces = fs::read(Gguf::sentence_piece(&pieces).write(folder.path())).unwrap();
    let families = [experts(), assistant(), block(), gpt_oss(), lfm2moe(), granite_hybrid(), glm()];
    let families = families.map(|gguf| fs::read(gguf.write(folder.path())).unwrap());
    Target {
        name: "gguf",
        longest: 2 * whole.len(),
        seeds: [whole, pieces].into_iter().chain(families).chain(retyped).collect(),
        words: WORDS,
        head,
        memory: Memory { each: 16, beside: 1 << 20 },
        run: Box::new(move |input| {
            fs::write(folder.path().join("model.gguf"), input).unwrap();
            look(&path).err().map(|error| error.to_string())
        }),
    }
}

/// Creates the tiny Llama as `architecture`, with these keys in addition to the common ones.
pub(super) fn as_family<const N: usize>(architecture: &str, numbers: [(&str, u32); N]) -> Gguf {
    let mut gguf = Gguf::tiny();
    let renamed = |key: String| key.replacen("llama.", &format!("{architecture}."), 1);
    gguf.values = gguf.values.into_iter().map(|(key, value)| (renamed(key), value)).collect();
    gguf.set("general.architecture", text(architecture));
    for (key, number) in numbers {
        gguf.set(&format!("{architecture}.{key}"), Value::U32(number));
    }
    gguf
}

/// Returns the numbers as an array value.
pub(super) fn list(numbers: &[u32]) -> Value {
    Value::Array(numbers.iter().map(|&number| Value::U32(number)).collect())
}

/// Creates a file with all keys of an assistant.
fn assistant() -> Gguf {
    let mut gguf = experts();
    let renamed = |key: String| key.replacen("gemma4.", "gemma4-assistant.", 1);
    gguf.values = gguf.values.into_iter().map(|(key, value)| (renamed(key), value)).collect();
    gguf.set("general.architecture", text("gemma4-assistant"));
    for (key, number) in
        [("embedding_length_out", 8), ("nextn_predict_layers", 2), ("attention.shared_kv_layers", 2)]
    {
        gguf.set(&format!("gemma4-assistant.{key}"), Value::U32(number));
    }
    gguf
}

/// Creates a file with all keys of a Gemma 4 with experts, shared caches and per-layer embeddings.
fn experts() -> Gguf {
    let mut gguf = as_family(
        "gemma4",
        [
            ("block_count", 2),
            ("expert_count", 4),
            ("expert_used_count", 2),
            ("expert_feed_forward_length", 32),
            ("attention.shared_kv_layers", 1),
            ("attention.key_length_swa", 4),
            ("rope.dimension_count_swa", 4),
            ("embedding_length_per_layer_input", 8),
        ],
    );
    for key in ["feed_forward_length", "attention.head_count_kv"] {
        gguf.set(&format!("gemma4.{key}"), list(&[2; 2]));
    }
    gguf.set("gemma4.attention.sliding_window_pattern", Value::Array(vec![Value::Bool(true); 2]));
    gguf
}

/// Creates a complete file with only the MTP block of a Qwen3.5.
fn block() -> Gguf {
    let mut gguf = as_family(
        "qwen35",
        [
            ("block_count", 3),
            ("nextn_predict_layers", 1),
            ("full_attention_interval", 2),
            ("attention.key_length", HEAD_SIZE as u32),
            ("attention.value_length", HEAD_SIZE as u32),
            ("ssm.conv_kernel", 4),
            ("ssm.state_size", 32),
            ("ssm.group_count", 1),
            ("ssm.time_step_rank", 2),
            ("ssm.inner_size", 64),
        ],
    );
    let layer = gguf.tensors.extract_if(.., |name, _| name.starts_with("blk.")).collect::<Vec<_>>();
    for (name, tensor) in layer {
        let name = name.replacen("blk.0.", "blk.2.", 1).replace("ffn_norm", "post_attention_norm");
        gguf.tensors.insert(name, tensor);
    }
    for (name, shape) in [
        ("attn_q", &[2 * HEADS * HEAD_SIZE, HIDDEN][..]),
        ("attn_q_norm", &[HEAD_SIZE]),
        ("attn_k_norm", &[HEAD_SIZE]),
        ("nextn.eh_proj", &[HIDDEN, 2 * HIDDEN]),
        ("nextn.enorm", &[HIDDEN]),
        ("nextn.hnorm", &[HIDDEN]),
        ("nextn.shared_head_norm", &[HIDDEN]),
    ] {
        gguf.add(&format!("blk.2.{name}.weight"), shape, GgmlDType::F32);
    }
    gguf
}

/// Creates a file with all keys of a gpt-oss.
fn gpt_oss() -> Gguf {
    let numbers = [
        ("expert_count", 4),
        ("expert_used_count", 2),
        ("expert_feed_forward_length", 32),
        ("attention.sliding_window", 16),
        ("attention.key_length", HEAD_SIZE as u32),
        ("attention.value_length", HEAD_SIZE as u32),
        ("rope.scaling.original_context_length", 32),
    ];
    let mut gguf = as_family("gpt-oss", numbers);
    gguf.set("gpt-oss.rope.scaling.type", text("yarn"));
    gguf.set("gpt-oss.rope.scaling.factor", Value::F32(2.0));
    gguf.set("gpt-oss.rope.freq_base", Value::F32(15e4));
    gguf
}

/// Creates a file with all keys of an LFM2 with experts.
fn lfm2moe() -> Gguf {
    let numbers = [
        ("block_count", 2),
        ("expert_count", 4),
        ("expert_used_count", 2),
        ("expert_feed_forward_length", 32),
        ("leading_dense_block_count", 1),
        ("expert_gating_func", 2),
        ("shortconv.l_cache", 3),
    ];
    let mut gguf = as_family("lfm2moe", numbers);
    gguf.set("lfm2moe.attention.head_count_kv", list(&[0, 2]));
    gguf.set("lfm2moe.expert_weights_scale", Value::F32(1.5));
    gguf.set("lfm2moe.expert_weights_norm", Value::Bool(true));
    gguf
}

/// Creates a file with all keys of a Granite 4 with Mamba layers and experts.
fn granite_hybrid() -> Gguf {
    let numbers = [
        ("block_count", 2),
        ("expert_count", 4),
        ("expert_used_count", 2),
        ("expert_feed_forward_length", 32),
        ("expert_shared_feed_forward_length", 64),
        ("ssm.conv_kernel", 4),
        ("ssm.state_size", 32),
        ("ssm.group_count", 1),
        ("ssm.time_step_rank", 2),
        ("ssm.inner_size", 64),
    ];
    let mut gguf = as_family("granitehybrid", numbers);
    gguf.set("granitehybrid.attention.head_count_kv", list(&[0, 2]));
    for (key, number) in [
        ("attention.scale", 0.0625),
        ("embedding_scale", 12.0),
        ("residual_scale", 0.5),
        ("logit_scale", 4.0),
    ] {
        gguf.set(&format!("granitehybrid.{key}"), Value::F32(number));
    }
    gguf.set("granitehybrid.rope.scaling.finetuned", Value::Bool(false));
    gguf
}

/// Creates a file with all keys of a GLM-4.7-Flash with latent attention (MLA).
fn glm() -> Gguf {
    let numbers = [
        ("block_count", 3),
        ("nextn_predict_layers", 1),
        ("attention.head_count_kv", 1),
        ("attention.key_length", 36),
        ("attention.value_length", 32),
        ("attention.key_length_mla", 12),
        ("attention.value_length_mla", 16),
        ("attention.kv_lora_rank", 32),
        ("attention.q_lora_rank", 24),
        ("rope.dimension_count", 4),
        ("expert_count", 4),
        ("expert_used_count", 2),
        ("expert_feed_forward_length", 32),
        ("expert_shared_count", 1),
        ("expert_gating_func", 2),
        ("leading_dense_block_count", 1),
    ];
    let mut gguf = as_family("deepseek2", numbers);
    gguf.set("deepseek2.expert_weights_scale", Value::F32(1.8));
    gguf.set("deepseek2.expert_weights_norm", Value::Bool(true));
    gguf
}

/// Changes the type of one matrix, whose rows are whole blocks in some types.
fn with_type(file: &[u8], number: u32) -> Vec<u8> {
    let name = b"blk.0.ffn_down.weight";
    let at = file.windows(name.len()).position(|window| window == name).unwrap() + name.len();
    let mut file = file.to_vec();
    // Skips the name, the number of dimensions and both dimensions.
    file[at + 20..at + 24].copy_from_slice(&number.to_le_bytes());
    file
}

/// Creates a target whose input bytes choose changes of a vocabulary's lists.
pub fn vocabulary() -> Target {
    let folder = folder();
    Target {
        name: "vocabulary",
        seeds: (0..8u8).map(|seed| vec![seed; 16]).collect(),
        words: &[],
        head: usize::MAX,
        longest: 64,
        // The file is built from the choices and is as large as a complete vocabulary.
        // The tokenizers crate keeps an entry for each tokenizer that a thread ever encoded with.
        // Its table doubles after 57,000 of them to 4.8 MB, and after 115,000 to 9.6 MB.
        memory: Memory { each: 16, beside: 12 << 20 },
        run: Box::new(move |input| {
            let mut random =
                input.iter().fold(Random(1), |seed, byte| Random(Random(seed.0 ^ u64::from(*byte)).draw()));
            let path = disagreeing(&mut random).write(folder.path());
            look(&path).err().map(|error| error.to_string())
        }),
    }
}

/// Creates a vocabulary without weights, with some of its lists changed.
fn disagreeing(random: &mut Random) -> Gguf {
    let mut gguf = match random.below(2) {
        0 => Gguf::tiny(),
        _ => Gguf::sentence_piece(&[("▁", -3.0), ("a", -2.0), ("▁a", -1.0), ("he", -1.5)]),
    };
    gguf.tensors.clear();
    for _ in 0..=random.below(3) {
        let key = format!("tokenizer.ggml.{}", random.of(&["tokens", "token_type", "scores", "merges"]));
        if let Some(Value::Array(list)) = gguf.values.get_mut(&key) {
            disagree(list, random);
        }
    }
    gguf
}

/// Makes lists inconsistent: shortened, repeated, shuffled, with other values.
fn disagree(list: &mut Vec<Value>, random: &mut Random) {
    let len = list.len();
    match random.below(7) {
        0 => list.truncate(random.below(len)),
        1 => list.extend_from_within(..random.below(len)),
        2 if len > 1 => list.swap(random.below(len), random.below(len)),
        3 if len > 0 => {
            let at = random.below(len);
            list[at] = match list[at].clone() {
                Value::String(text) => Value::String(text.chars().rev().chain(" x".chars()).collect()),
                Value::F32(_) => Value::F32([f32::NAN, f32::INFINITY, -1e30, 0.0][random.below(4)]),
                _ => Value::I32(random.below(9) as i32 - 1),
            };
        }
        4 if len > 1 => {
            let (from, to) = (random.below(len), random.below(len));
            list[to] = list[from].clone();
        }
        5 => list.reverse(),
        _ => list.clear(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::peak_of;

    #[test]
    fn a_block_alone_is_read_completely() {
        let folder = folder();
        assert!(ModelSource::open(&block().write(folder.path())).unwrap().is_draft_head());
    }

    #[test]
    fn a_long_list_takes_no_more_memory_than_its_bytes_while_it_is_read() {
        let folder = folder();
        let mut gguf = Gguf::tiny();
        gguf.set("a.list", Value::Array(vec![Value::U8(1); 8 << 20]));
        let path = gguf.write(folder.path());
        let bytes = fs::metadata(&path).unwrap().len() as usize;
        let (peak, source) = peak_of(|| ModelSource::open(&path));
        // Once as read so far, and once in its next, larger allocation.
        assert!(source.is_ok() && peak < 2 * bytes + (1 << 20), "{peak} for {bytes}");
    }
}
