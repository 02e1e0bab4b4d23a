//! Tests of GGUF headers of models with latent attention, valid and rejected.

use super::*;
use crate::tables::latent::{of_keys, of_values};

use crate::{FeedForwardSpec, SharedExpert};
const LATENT: usize = 32;
const TURNED: usize = 4;
const PLAIN: usize = 8;
const VALUE: usize = 16;
const QUERIES: usize = 24;
const EXPERTS: usize = 4;
const WIDTH: usize = 16;

/// A tiny GLM-4.7-Flash: a dense layer and a layer with experts.
fn glm() -> Gguf {
    let mut gguf = as_family("deepseek2");
    for (key, number) in [
        ("block_count", 2),
        ("attention.head_count_kv", 1),
        ("attention.key_length", LATENT + TURNED),
        ("attention.value_length", LATENT),
        ("attention.key_length_mla", PLAIN + TURNED),
        ("attention.value_length_mla", VALUE),
        ("attention.kv_lora_rank", LATENT),
        ("attention.q_lora_rank", QUERIES),
        ("rope.dimension_count", TURNED),
        ("expert_count", EXPERTS),
        ("expert_used_count", 2),
        ("expert_feed_forward_length", WIDTH),
        ("expert_shared_count", 2),
        ("expert_gating_func", 2),
        ("leading_dense_block_count", 1),
    ] {
        gguf.set(&format!("deepseek2.{key}"), Value::U32(number as u32));
    }
    gguf.tensors.retain(|name, _| !name.starts_with("blk."));
    for (name, shape) in [
        ("0.ffn_gate", &[INTERMEDIATE, HIDDEN][..]),
        ("0.ffn_up", &[INTERMEDIATE, HIDDEN]),
        ("0.ffn_down", &[HIDDEN, INTERMEDIATE]),
        ("1.ffn_gate_inp", &[EXPERTS, HIDDEN]),
        ("1.ffn_gate_exps", &[EXPERTS, WIDTH, HIDDEN]),
        ("1.ffn_up_exps", &[EXPERTS, WIDTH, HIDDEN]),
        ("1.ffn_down_exps", &[EXPERTS, HIDDEN, WIDTH]),
        ("1.ffn_gate_shexp", &[2 * WIDTH, HIDDEN]),
        ("1.ffn_up_shexp", &[2 * WIDTH, HIDDEN]),
        ("1.ffn_down_shexp", &[HIDDEN, 2 * WIDTH]),
    ] {
        gguf.add(&format!("blk.{name}.weight"), shape, GgmlDType::F32);
    }
    gguf.add("blk.1.exp_probs_b.bias", &[EXPERTS], GgmlDType::F32);
    for layer in 0..2 {
        for (name, shape) in [
            ("attn_norm", &[HIDDEN][..]),
            ("ffn_norm", &[HIDDEN]),
            ("attn_q_a", &[QUERIES, HIDDEN]),
            ("attn_q_a_norm", &[QUERIES]),
            ("attn_q_b", &[HEADS * (PLAIN + TURNED), QUERIES]),
            ("attn_kv_a_mqa", &[LATENT + TURNED, HIDDEN]),
            ("attn_kv_a_norm", &[LATENT]),
            ("attn_k_b", &[HEADS, LATENT, PLAIN]),
            ("attn_v_b", &[HEADS, VALUE, LATENT]),
            ("attn_output", &[HIDDEN, HEADS * VALUE]),
        ] {
            gguf.add(&format!("blk.{layer}.{name}.weight"), shape, GgmlDType::F32);
        }
    }
    gguf
}

/// A tiny model with queries projected from the hidden state, as in DeepSeek-V2-Lite.
fn without_query_rank() -> Gguf {
    let mut gguf = glm();
    gguf.values.remove("deepseek2.attention.q_lora_rank");
    gguf.tensors.retain(|name, _| !name.contains("attn_q_"));
    for layer in 0..2 {
        let name = format!("blk.{layer}.attn_q.weight");
        gguf.add(&name, &[HEADS * (PLAIN + TURNED), HIDDEN], GgmlDType::F32);
    }
    gguf
}

#[test]
fn the_sizes_of_latents_are_among_the_keys() {
    let config = open(&glm()).unwrap().config().unwrap().clone();
    let latent = config.latent().unwrap();
    let sizes = (latent.size, latent.turned, latent.plain, latent.value, latent.queries);
    assert_eq!(sizes, (LATENT, TURNED, PLAIN, VALUE, Some(QUERIES)));
    // All heads share one key, which contains their value.
    let keys = config.attention(0).unwrap().keys;
    assert_eq!((keys.count, keys.size, keys.hold_values), (1, LATENT + TURNED, Some(LATENT)));
    assert_eq!(config.attention_kinds[0].rotary.layout, RotaryLayout::Interleaved);
    assert!((config.query_scale - 1.0 / (12f32).sqrt()).abs() < 1e-7);
    let [dense, routed] = [0, 1].map(|layer| &config.layers[layer].feed_forward);
    assert_eq!(*dense, FeedForwardSpec::Dense { width: INTERMEDIATE });
    assert_eq!(routed.shared(), Some(SharedExpert { width: 2 * WIDTH, gated: false }));
    let experts = routed.experts().unwrap();
    assert_eq!((experts.count, experts.top_k, experts.width), (EXPERTS, 2, WIDTH));
    assert!(experts.has_selection_bias() && !experts.normalised);

    let config = open(&without_query_rank()).unwrap().config().unwrap().clone();
    assert_eq!(config.latent().unwrap().queries, None);
}

#[test]
fn every_head_has_matrices_of_its_own() {
    let source = open(&glm()).unwrap();
    let weights = source.weights(&Device::Cpu).unwrap();
    let rows = |name: &str| -> Vec<Vec<f32>> {
        let matrix = weights.matrix(&format!("blk.1.{name}.weight")).unwrap();
        matrix.dequantize(&Device::Cpu).unwrap().to_vec2().unwrap()
    };
    let all = |shape: [usize; 3]| ramp(&shape).to_vec3::<f32>().unwrap();
    let (keys, values) = (all([HEADS, LATENT, PLAIN]), all([HEADS, VALUE, LATENT]));
    for head in 0..HEADS {
        assert!(rows(&of_keys(head)) == keys[head] && rows(&of_values(head)) == values[head]);
    }
}

#[test]
fn a_token_takes_the_memory_of_a_latent_and_what_turns() {
    let source = open(&glm()).unwrap();
    let more = source.memory_bytes(48).unwrap() - source.memory_bytes(16).unwrap();
    // Two layers in 16 bits.
    assert_eq!(more, 32 * 2 * (LATENT as u64 + TURNED as u64) * 2);
}

#[test]
fn deepseeks_first_files_of_latents_have_yarns_weight_a_tenth_as_large() {
    let mut gguf = without_query_rank();
    gguf.set("deepseek2.rope.scaling.type", text("yarn"));
    gguf.set("deepseek2.rope.scaling.original_context_length", Value::U32(16));
    for (key, number) in [("factor", 40.0), ("yarn_log_multiplier", 0.0707)] {
        gguf.set(&format!("deepseek2.rope.scaling.{key}"), Value::F32(number));
    }
    let config = open(&gguf).unwrap().config().unwrap().clone();
    // DeepSeek-V2-Lite scales scores by (0.1 * 0.707 * ln 40 + 1)^2; cosines and sines stay
    // unscaled.
    let expected = (0.0707 * 40f32.ln() + 1.0).powi(2) / 12f32.sqrt();
    assert!((config.query_scale - expected).abs() < 1e-6, "{} {expected}", config.query_scale);
    assert_eq!(config.attention_kinds[0].rotary.scale, 1.0);
    // The multiplier applies only with YaRN.
    gguf.set("deepseek2.rope.scaling.type", text("none"));
    let config = open(&gguf).unwrap().config().unwrap().clone();
    assert!((config.query_scale - 1.0 / 12f32.sqrt()).abs() < 1e-7);
}

#[test]
fn numbers_of_latents_that_cannot_be_computed_with_are_refused() {
    let large = || Value::U64(1 << 32);
    for (key, value, expected) in [
        ("attention.kv_lora_rank", Value::U32(0), "a size in deepseek2.attention.kv_lora_rank, found none"),
        ("attention.kv_lora_rank", large(), "deepseek2.attention.kv_lora_rank of at most"),
        ("attention.kv_lora_rank", Value::U32(40), "latents of a multiple of 16 numbers, found 40"),
        ("attention.kv_lora_rank", Value::U32(16), "attn_k_b.weight of shape [4, 16, 8], found [4, 32, 8]"),
        ("attention.kv_lora_rank", Value::U32(1 << 20), "a head size of at most"),
        ("attention.value_length_mla", Value::U32(8), "values of a multiple of 16 numbers, found 8"),
        ("attention.value_length_mla", Value::U32(32), "attn_v_b.weight of shape [4, 32, 32], found"),
        ("attention.value_length_mla", Value::U32(0), "a size in deepseek2.attention.value_length_mla"),
        ("attention.key_length_mla", Value::U32(4), "rope.dimension_count below 4, found 4"),
        ("attention.key_length_mla", large(), "deepseek2.attention.key_length_mla of at most"),
        (
            "attention.key_length_mla",
            Value::U32(14),
            "attn_k_b.weight of shape [4, 32, 10], found [4, 32, 8]",
        ),
        ("rope.dimension_count", Value::U32(0), "a size in deepseek2.rope.dimension_count, found none"),
        ("rope.dimension_count", Value::U32(3), "an even part of keys that turns, found 3"),
        ("attention.q_lora_rank", Value::U32(0), "the tensor blk.0.attn_q.weight"),
        ("attention.q_lora_rank", large(), "deepseek2.attention.q_lora_rank of at most"),
        ("attention.q_lora_rank", Value::U32(8), "attn_q_a.weight of shape [8, 32], found [24, 32]"),
        ("expert_count", Value::U32(0), "a size in deepseek2.expert_count, found none"),
        ("expert_count", large(), "deepseek2.expert_count of at most"),
        ("expert_used_count", Value::U32(5), "up to 4 experts per token, found 5"),
        ("expert_shared_count", Value::U32(0), "a size in deepseek2.expert_shared_count, found none"),
        (
            "expert_shared_count",
            Value::U32(1),
            "blk.1.ffn_gate_shexp.weight of shape [16, 32], found [32, 32]",
        ),
        ("expert_shared_count", Value::U32(1 << 24), "deepseek2.expert_shared_count of at most"),
        (
            "expert_group_count",
            Value::U32(8),
            "experts without groups, found deepseek2.expert_group_count = 8",
        ),
        ("expert_gating_func", Value::U32(3), "deepseek2.expert_gating_func of 1 or 2, found 3"),
        ("leading_dense_block_count", Value::U32(2), "experts after fewer than 2 layers"),
        ("leading_dense_block_count", Value::U32(0), "the tensor blk.0.ffn_"),
        ("leading_dense_block_count", large(), "at most 4096 layers"),
    ] {
        let mut gguf = glm();
        gguf.set(&format!("deepseek2.{key}"), value);
        let message = message(open(&gguf));
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn one_group_of_experts_is_none() {
    let mut gguf = glm();
    gguf.set("deepseek2.expert_group_count", Value::U32(1));
    gguf.set("deepseek2.expert_group_used_count", Value::U32(1));
    assert!(open(&gguf).is_ok());
}

#[test]
fn files_of_before_matrices_were_split_are_told_from_newer_ones() {
    let whole = |dtype| {
        let mut gguf = glm();
        gguf.tensors.retain(|name, _| !name.contains("attn_k_b") && !name.contains("attn_v_b"));
        for layer in 0..2 {
            let name = format!("blk.{layer}.attn_kv_b.weight");
            gguf.add(&name, &[HEADS * (PLAIN + VALUE), LATENT], dtype);
        }
        gguf
    };
    let mut old = whole(GgmlDType::Q8_0);
    for key in ["key_length_mla", "value_length_mla"] {
        old.values.remove(&format!("deepseek2.attention.{key}"));
    }
    let said = message(open(&old));
    assert!(said.contains("its matrices split in attn_k_b and attn_v_b"), "{said}");
    assert!(said.contains("Choose a newer GGUF file of this model"), "{said}");
    // The combined matrix is split if it is not quantised.
    assert!(open(&whole(GgmlDType::F32)).is_ok());
    let said = message(open(&whole(GgmlDType::Q8_0)));
    assert!(
        said.contains("blk.0.attn_kv_b.weight that is not quantised") && said.contains("found Q8_0"),
        "{said}"
    );
}

#[test]
fn tensors_of_latents_that_are_missing_or_too_many_are_named() {
    for name in
        ["attn_q_a_norm", "attn_q_b", "attn_kv_a_mqa", "attn_kv_a_norm", "attn_output", "ffn_up_shexp"]
    {
        let mut gguf = glm();
        gguf.tensors.remove(&format!("blk.1.{name}.weight"));
        let said = message(open(&gguf));
        assert!(said.contains(&format!("expected the tensor blk.1.{name}.weight")), "{said}");
    }
    for (name, first) in [("attn_k_b", of_keys(0)), ("attn_v_b", of_values(0))] {
        let mut gguf = glm();
        gguf.tensors.remove(&format!("blk.1.{name}.weight"));
        let said = message(open(&gguf));
        assert!(said.contains(&format!("the tensor blk.1.{first}.weight")), "{said}");
    }
    // Without a selection bias the gating function is softmax, unless the file declares sigmoid.
    let mut gguf = glm();
    gguf.tensors.remove("blk.1.exp_probs_b.bias");
    let config = open(&gguf).unwrap().config().unwrap().clone();
    assert!(config.experts().unwrap().sigmoid.is_some_and(|gating| !gating.selection_bias));
    gguf.add("blk.1.attn_k.weight", &[HEADS, HIDDEN], GgmlDType::F32);
    assert!(message(open(&gguf)).contains("only the tensors of deepseek2, found blk.1.attn_k.weight"));
}
