//! Tests of GGUF headers of models with recurrent layers and MTP blocks, valid and rejected.

use super::*;
use crate::{Heads, RecurrentKind};

const CHANNELS: usize = 2 * 32 + 64;

/// A tiny Qwen3.5: a recurrent layer and a layer with attention.
fn qwen35() -> Gguf {
    let mut gguf = as_family("qwen35");
    for (key, number) in [
        ("block_count", 2),
        ("full_attention_interval", 2),
        ("attention.key_length", HEAD_SIZE),
        ("attention.value_length", HEAD_SIZE),
        ("ssm.conv_kernel", 4),
        ("ssm.state_size", 32),
        ("ssm.group_count", 1),
        ("ssm.time_step_rank", 2),
        ("ssm.inner_size", 64),
    ] {
        gguf.set(&format!("qwen35.{key}"), Value::U32(number as u32));
    }
    gguf.tensors.retain(|name, _| !name.starts_with("blk."));
    for (name, shape) in [
        ("0.attn_qkv.weight", &[CHANNELS, HIDDEN][..]),
        ("0.attn_gate.weight", &[64, HIDDEN]),
        ("0.ssm_beta.weight", &[2, HIDDEN]),
        ("0.ssm_alpha.weight", &[2, HIDDEN]),
        ("0.ssm_conv1d.weight", &[CHANNELS, 4]),
        ("0.ssm_dt.bias", &[2]),
        ("0.ssm_a", &[2]),
        ("0.ssm_norm.weight", &[32]),
        ("0.ssm_out.weight", &[HIDDEN, 64]),
        ("1.attn_q.weight", &[2 * HEADS * HEAD_SIZE, HIDDEN]),
        ("1.attn_k.weight", &[KV_HEADS * HEAD_SIZE, HIDDEN]),
        ("1.attn_v.weight", &[KV_HEADS * HEAD_SIZE, HIDDEN]),
        ("1.attn_output.weight", &[HIDDEN, HEADS * HEAD_SIZE]),
        ("1.attn_q_norm.weight", &[HEAD_SIZE]),
        ("1.attn_k_norm.weight", &[HEAD_SIZE]),
    ] {
        gguf.add(&format!("blk.{name}"), shape, GgmlDType::F32);
    }
    for layer in 0..2 {
        for (name, shape) in [
            ("attn_norm", &[HIDDEN][..]),
            ("post_attention_norm", &[HIDDEN]),
            ("ffn_gate", &[INTERMEDIATE, HIDDEN]),
            ("ffn_up", &[INTERMEDIATE, HIDDEN]),
            ("ffn_down", &[HIDDEN, INTERMEDIATE]),
        ] {
            gguf.add(&format!("blk.{layer}.{name}.weight"), shape, GgmlDType::F32);
        }
    }
    gguf
}

/// Adds an MTP block as block number `block`.
fn with_block(gguf: &mut Gguf, block: usize) {
    gguf.set("qwen35.nextn_predict_layers", Value::U32(1));
    gguf.add(&format!("blk.{block}.nextn.eh_proj.weight"), &[HIDDEN, 2 * HIDDEN], GgmlDType::F32);
    for (name, shape) in [
        ("nextn.enorm", &[HIDDEN][..]),
        ("nextn.hnorm", &[HIDDEN]),
        ("nextn.shared_head_norm", &[HIDDEN]),
        ("attn_norm", &[HIDDEN]),
        ("post_attention_norm", &[HIDDEN]),
        ("attn_q", &[2 * HEADS * HEAD_SIZE, HIDDEN]),
        ("attn_k", &[KV_HEADS * HEAD_SIZE, HIDDEN]),
        ("attn_v", &[KV_HEADS * HEAD_SIZE, HIDDEN]),
        ("attn_output", &[HIDDEN, HEADS * HEAD_SIZE]),
        ("attn_q_norm", &[HEAD_SIZE]),
        ("attn_k_norm", &[HEAD_SIZE]),
        ("ffn_gate", &[INTERMEDIATE, HIDDEN]),
        ("ffn_up", &[INTERMEDIATE, HIDDEN]),
        ("ffn_down", &[HIDDEN, INTERMEDIATE]),
    ] {
        gguf.add(&format!("blk.{block}.{name}.weight"), shape, GgmlDType::F32);
    }
}

#[test]
fn the_layers_of_a_recurrent_model_are_among_the_keys() {
    let source = open(&qwen35()).unwrap();
    let config = source.config().unwrap();
    assert_eq!([0, 1].map(|layer| config.attention(layer).is_some()), [false, true]);
    let recurrence = config.recurrence().unwrap();
    assert_eq!(recurrence.kind, RecurrentKind::Delta);
    assert_eq!((recurrence.taps, recurrence.channels), (4, CHANNELS));
    let heads = Heads { keys: 1, values: 2, key_size: 32, value_size: 32, grouped: false };
    assert_eq!(recurrence.heads, heads);
    assert_eq!([0, 1].map(|layer| config.cached_keys(layer).map(|keys| keys.count)), [None, Some(KV_HEADS)]);
    // The query matrix contains the gates between its heads.
    let weights = source.weights(&candle_core::Device::Cpu).unwrap();
    let rows = |name: &str| -> Vec<Vec<f32>> {
        let matrix = weights.matrix(name).unwrap().dequantize(&candle_core::Device::Cpu).unwrap();
        matrix.to_vec2().unwrap()
    };
    let both = ramp(&[2 * HEADS * HEAD_SIZE, HIDDEN]).to_vec2::<f32>().unwrap();
    let (queries, gates) = (rows("blk.1.attn_q.weight"), rows("blk.1.attn_gate.weight"));
    for head in 0..HEADS {
        let own = |rows: &[Vec<f32>]| rows[head * HEAD_SIZE..][..HEAD_SIZE].to_vec();
        assert!(own(&queries) == both[2 * head * HEAD_SIZE..][..HEAD_SIZE]);
        assert!(own(&gates) == both[(2 * head + 1) * HEAD_SIZE..][..HEAD_SIZE]);
    }
}

#[test]
fn a_list_says_which_layers_are_recurrent_too() {
    let mut listed = qwen35();
    listed.set("qwen35.full_attention_interval", Value::U32(1));
    let flags = |flags: &[bool]| Value::Array(flags.iter().map(|&flag| Value::Bool(flag)).collect());
    listed.set("qwen35.attention.recurrent_layers", flags(&[true, false]));
    let is_recurrent =
        |gguf: &Gguf| open(gguf).unwrap().config().unwrap().layers[0].mixer.recurrence().is_some();
    assert!(is_recurrent(&listed));
    let mut counted = qwen35();
    counted.set("qwen35.full_attention_interval", Value::U32(1));
    let heads = Value::Array(vec![Value::U32(0), Value::U32(KV_HEADS as u32)]);
    counted.set("qwen35.attention.head_count_kv", heads);
    assert!(is_recurrent(&counted));
}

#[test]
fn blocks_that_predict_further_tokens_are_no_layers_whether_they_are_counted_or_not() {
    let layers = |gguf: &Gguf| {
        let source = open(gguf).unwrap();
        let blocks = source.tensors.stored.keys().filter(|name| name.starts_with("blk.2.")).count();
        let head = source.mtp_head().map(|head| {
            let head = head.for_target(&source).unwrap();
            let config = head.config().unwrap();
            (config.depth(), config.recurrence().is_none(), config.draft_head.as_ref().unwrap().states())
        });
        (source.config().unwrap().depth(), blocks, head.ok())
    };
    let mut uncounted = qwen35();
    with_block(&mut uncounted, 2);
    let head = Some((1, true, HIDDEN));
    assert_eq!(layers(&uncounted), (2, 0, head));
    let mut counted = qwen35();
    with_block(&mut counted, 2);
    counted.set("qwen35.block_count", Value::U32(3));
    assert_eq!(layers(&counted), (2, 0, head));
    // The file may lack the blocks that it declares.
    let mut stripped = qwen35();
    stripped.set("qwen35.nextn_predict_layers", Value::U32(1));
    assert_eq!(layers(&stripped), (2, 0, None));
    stripped.set("qwen35.block_count", Value::U32(3));
    assert_eq!(layers(&stripped), (2, 0, None));
    let mut several = counted;
    with_block(&mut several, 3);
    several.set("qwen35.block_count", Value::U32(4));
    several.set("qwen35.nextn_predict_layers", Value::U32(2));
    assert!(message(open(&several).and_then(|source| source.mtp_head())).contains("one block for MTP"));
    // An undeclared block is an unexpected tensor.
    let mut untold = qwen35();
    with_block(&mut untold, 2);
    untold.set("qwen35.nextn_predict_layers", Value::U32(0));
    assert!(message(open(&untold)).contains("only the tensors of qwen35"));
}

#[test]
fn a_block_alone_is_a_draft_head_whether_it_is_counted_among_the_layers_or_not() {
    for counted in [2, 3] {
        let mut alone = qwen35();
        with_block(&mut alone, 2);
        alone.set("qwen35.block_count", Value::U32(counted));
        alone.tensors.retain(|name, _| !name.starts_with("blk.0.") && !name.starts_with("blk.1."));
        let source = open(&alone).unwrap();
        assert!(source.is_draft_head() && !source.speaks_of_mtp());
        let head = source.for_target(&open(&qwen35()).unwrap()).unwrap();
        assert_eq!(head.config().unwrap().depth(), 1);
        assert!(head.tensors.stored.contains_key("output.weight"));
        // Neither an incomplete block nor an incomplete model is accepted.
        alone.tensors.retain(|name, _| !name.ends_with("nextn.hnorm.weight"));
        assert!(message(open(&alone)).contains("nextn.hnorm.weight in the block for MTP, found none"));
        alone.add("blk.0.attn_norm.weight", &[HIDDEN], GgmlDType::F32);
        assert!(message(open(&alone)).contains("the tensor blk.0."));
    }
}

#[test]
fn numbers_of_recurrent_layers_that_cannot_be_computed_with_are_refused() {
    let flags = |count: usize| Value::Array(vec![Value::Bool(true); count]);
    for (key, value, expected) in [
        ("full_attention_interval", Value::U32(0), "a size in qwen35.full_attention_interval, found none"),
        (
            "full_attention_interval",
            Value::U32(3),
            "attention in some of the layers, found recurrent layers alone",
        ),
        ("full_attention_interval", Value::U32(1), "the tensor blk.0.attn_q.weight"),
        ("attention.recurrent_layers", flags(1), "recurrent_layers for every layer"),
        (
            "attention.recurrent_layers",
            Value::Array(vec![Value::U32(1); 2]),
            "recurrent_layers for every layer",
        ),
        ("attention.recurrent_layers", flags(2), "attention in some of the layers"),
        ("ssm.conv_kernel", Value::U32(0), "a size in qwen35.ssm.conv_kernel, found none"),
        ("ssm.conv_kernel", Value::U32(1), "a convolution over 2 to 16 rows, found 1"),
        ("ssm.conv_kernel", Value::U32(u32::MAX), "qwen35.ssm.conv_kernel of at most"),
        ("ssm.conv_kernel", Value::U32(3), "blk.0.ssm_conv1d.weight of shape [128, 3], found [128, 4]"),
        ("ssm.group_count", Value::U32(0), "a size in qwen35.ssm.group_count, found none"),
        ("ssm.group_count", Value::U32(4), "key heads of recurrent layers that divide their value heads"),
        (
            "ssm.time_step_rank",
            Value::U32(3),
            "qwen35.ssm.inner_size that is a multiple of 3 heads, found 64",
        ),
        ("ssm.state_size", Value::U32(16), "heads of recurrent layers of a multiple of 32, found 16"),
        ("ssm.state_size", Value::U32(1 << 24), "of shape"),
        ("ssm.inner_size", Value::U32(128), "of shape"),
        ("nextn_predict_layers", Value::U32(u32::MAX), "at most 4096 layers"),
        ("block_count", Value::U32(1), "attention in some of the layers"),
    ] {
        let mut gguf = qwen35();
        gguf.set(&format!("qwen35.{key}"), value);
        let message = message(open(&gguf));
        assert!(message.contains(expected), "{key}: {message}");
    }
    let mut ungated = qwen35();
    ungated.add("blk.1.attn_q.weight", &[HEADS * HEAD_SIZE, HIDDEN], GgmlDType::F32);
    assert!(message(open(&ungated)).contains("blk.1.attn_q.weight of shape [64, 32], found [32, 32]"));
    let mut blocks = qwen35();
    with_block(&mut blocks, 0);
    blocks.set("qwen35.block_count", Value::U32(1));
    assert!(message(open(&blocks)).contains("a size in qwen35.block_count, found none"));
}
