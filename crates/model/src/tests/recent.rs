//! Tests of GGUF headers of the families of late 2026, valid and rejected.

use super::*;
use crate::config::AttnTemperature;

/// A tiny Granite, whose file has multipliers.
fn granite() -> Gguf {
    let mut gguf = as_family("granite");
    for (name, number) in
        [("embedding_scale", 12.0), ("residual_scale", 0.5), ("attention.scale", 0.25), ("logit_scale", 8.0)]
    {
        gguf.set(&format!("granite.{name}"), Value::F32(number));
    }
    gguf
}

#[test]
fn states_that_are_divided_by_what_branches_are_multiplied_with_need_no_multiplication() {
    let source = open(&granite()).unwrap();
    let config = source.config().unwrap();
    assert_eq!((config.embedding_scale, config.state_scale, config.query_scale), (24.0, 0.5, 0.25));
    assert_eq!(config.scoring, Scoring { scale: 0.125, cap: None });
    assert!((config.norm_epsilon - 4e-5).abs() < 1e-9, "{}", config.norm_epsilon);
    // A multiplier of 0 counts as missing.
    let mut gguf = granite();
    gguf.set("granite.attention.scale", Value::F32(0.0));
    let source = open(&gguf).unwrap();
    assert_eq!(source.config().unwrap().query_scale, 1.0 / (HEAD_SIZE as f32).sqrt());
}

#[test]
fn numbers_that_cannot_be_multiplied_with_are_refused() {
    for (key, number, expected) in [
        ("embedding_scale", f32::NAN, "a positive number for embedding scale, found NaN"),
        ("residual_scale", -1.0, "a positive number for residual scale, found -1"),
        ("residual_scale", 1e-20, "an RMS norm epsilon between 0 and 1"),
        ("attention.scale", f32::INFINITY, "a positive number for attention scale, found inf"),
        ("logit_scale", -8.0, "a positive number for logit scale, found -8"),
    ] {
        let mut gguf = granite();
        gguf.set(&format!("granite.{key}"), Value::F32(number));
        let message = message(open(&gguf));
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn key_value_heads_may_be_listed_if_all_layers_have_as_many() {
    let with = |listed: Vec<Value>| {
        let mut gguf = granite();
        gguf.set("granite.attention.head_count_kv", Value::Array(listed));
        open(&gguf)
    };
    let source = with(vec![Value::U32(KV_HEADS as u32)]).unwrap();
    assert_eq!(source.config().unwrap().kv_heads(), KV_HEADS);
    for listed in [vec![], vec![Value::U32(2); 2], vec![Value::F32(1.0)]] {
        let message = message(with(listed));
        assert!(message.contains("a number for each of 1 layers"), "{message}");
    }
    assert!(
        message(with(vec![Value::U32(0)])).contains("a size in granite.attention.head_count_kv, found none")
    );
}

/// A tiny Ministral, with YaRN and query scaling by position.
fn ministral() -> Gguf {
    let mut gguf = as_family("mistral3");
    gguf.set("mistral3.rope.scaling.type", text("yarn"));
    gguf.set("mistral3.rope.scaling.original_context_length", Value::U32(16));
    for (name, number) in [
        ("rope.scaling.factor", 4.0),
        ("rope.scaling.yarn_log_multiplier", 1.0),
        ("attention.temperature_scale", 0.1),
    ] {
        gguf.set(&format!("mistral3.{name}"), Value::F32(number));
    }
    gguf
}

#[test]
fn what_ministral_does_to_positions_is_among_the_keys() {
    let rotary = |gguf: &Gguf| open(gguf).unwrap().config().unwrap().attention_kinds[0].rotary.clone();
    let found = rotary(&ministral());
    assert_eq!((found.scale, found.attn_temperature), (1.0, Some(AttnTemperature { beta: 0.1, period: 16 })));
    assert_eq!(found.scaling, Some(RopeScaling::Yarn { factor: 4.0, original: 16 }));
    // No component makes more than 32 rotations in 16 tokens, and the last makes less than one.
    let (first, last) = (found.inverse_frequencies[0], found.inverse_frequencies[HEAD_SIZE / 2 - 1]);
    let plain = 1e6_f32.powf(-((HEAD_SIZE - 2) as f32) / HEAD_SIZE as f32);
    assert!(first <= 1.0 && (last / (plain / 4.0) - 1.0).abs() < 1e-6, "{first} {last}");
    let mut unequal = ministral();
    unequal.set("mistral3.rope.scaling.yarn_log_multiplier", Value::F32(0.0));
    // 0.1 ln 4 + 1
    assert!((rotary(&unequal).scale - 1.138_629_4).abs() < 1e-6);
}

#[test]
fn positions_that_cannot_be_computed_are_refused() {
    for (key, value, expected) in [
        (
            "rope.scaling.factor",
            Value::F32(0.0),
            "a positive number for mistral3.rope.scaling.factor, found 0",
        ),
        ("rope.scaling.factor", Value::F32(f32::NAN), "found NaN"),
        ("rope.scaling.yarn_beta_fast", Value::F32(-1.0), "yarn_beta_fast, found -1"),
        ("rope.scaling.yarn_beta_slow", Value::F32(f32::INFINITY), "yarn_beta_slow, found inf"),
        ("rope.scaling.yarn_ext_factor", Value::F32(0.5), "yarn_ext_factor of 1, found 0.5"),
        ("rope.scaling.yarn_log_multiplier", Value::F32(-10.0), "positive rotary frequencies"),
        (
            "rope.scaling.original_context_length",
            Value::U32(0),
            "a size in mistral3.rope.scaling.original_context_length, found none",
        ),
        ("rope.scaling.type", text("ntk"), "'yarn' or 'longrope', found 'ntk'"),
        ("attention.temperature_scale", Value::F32(-0.5), "temperature_scale, found -0.5"),
        ("attention.temperature_scale", Value::F32(f32::NAN), "temperature_scale, found NaN"),
        ("rope.dimension_count", Value::U32(2), "rotary positions on whole heads"),
        ("rope.freq_base", Value::F32(f32::NAN), "positive rotary frequencies"),
    ] {
        let mut gguf = ministral();
        gguf.set(&format!("mistral3.{key}"), value);
        let message = message(open(&gguf));
        assert!(message.contains(expected), "{key}: {message}");
    }
}
