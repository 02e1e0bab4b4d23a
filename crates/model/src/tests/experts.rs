//! Tests of GGUF headers of gpt-oss and Gemma 4, valid and rejected.

use super::*;

/// A tiny file of a family with experts, with Llama's tensors.
fn experts(name: &str) -> Gguf {
    let mut gguf = as_family(name);
    for (key, number) in [("expert_count", 4), ("expert_used_count", 2), ("expert_feed_forward_length", 32)] {
        gguf.set(&format!("{name}.{key}"), Value::U32(number));
    }
    gguf
}

/// Error message for a file with one key changed.
fn refused(name: &str, key: &str, value: Value) -> String {
    let mut gguf = experts(name);
    gguf.set(&format!("{name}.{key}"), value);
    message(open(&gguf))
}

#[test]
fn numbers_of_experts_that_cannot_be_are_refused() {
    for name in ["gpt-oss", "qwen3moe", "gemma4"] {
        for (key, value, expected) in [
            ("expert_count", Value::U64(1 << 32), format!("{name}.expert_count of at most")),
            ("expert_used_count", Value::U32(0), format!("a size in {name}.expert_used_count, found none")),
            ("expert_used_count", Value::U32(5), "up to 4 experts per token, found 5".to_owned()),
            ("expert_feed_forward_length", Value::U64(1 << 40), "of at most".to_owned()),
        ] {
            let message = refused(name, key, value);
            assert!(message.contains(&expected), "{name} {key}: {message}");
        }
        if name != "gemma4" {
            let message = refused(name, "expert_count", Value::U32(0));
            assert!(message.contains("expert_count, found none"), "{message}");
        }
        let message = message(open(&experts(name)));
        assert!(message.contains("expected the tensor"), "{name}: {message}");
    }
}

#[test]
fn lists_that_are_not_of_every_layer_are_refused_and_so_is_sharing_with_nobody() {
    let two = || Value::Array(vec![Value::U32(2); 2]);
    for (key, value, expected) in [
        ("attention.head_count_kv", two(), "a number for each of 1 layers in gemma4.attention.head_count_kv"),
        ("feed_forward_length", two(), "a number for each of 1 layers in gemma4.feed_forward_length"),
        ("feed_forward_length", Value::Array(vec![Value::I32(-1)]), "a size in gemma4.feed_forward_length"),
        ("attention.sliding_window_pattern", Value::Array(vec![]), "for every layer"),
        ("attention.shared_kv_layers", Value::U32(1), "gemma4.attention.shared_kv_layers below 1, found 1"),
        ("attention.shared_kv_layers", Value::U64(1 << 32), "shared_kv_layers below 1"),
        ("attention.key_length_swa", Value::U32(7), "an even rotary size"),
        ("attention.value_length_swa", Value::U32(2), "value_length_swa equal to the head size"),
        (
            "embedding_length_per_layer_input",
            Value::U64(1 << 32),
            "embedding_length_per_layer_input of at most",
        ),
        ("final_logit_softcapping", Value::F32(-1.0), "a positive bound for logits"),
    ] {
        let message = refused("gemma4", key, value);
        assert!(message.contains(expected), "{key}: {message}");
    }
}

#[test]
fn more_experts_than_any_model_has_are_refused_before_any_tensor_is_looked_up() {
    let message = refused("qwen3moe", "expert_count", Value::U32(1 << 20));
    assert!(message.contains("at most 4096 experts in a layer, found 1048576"), "{message}");
    let mut gguf = experts("qwen3moe");
    gguf.set("qwen3moe.expert_count", Value::U32(4096));
    gguf.set("qwen3moe.block_count", Value::U32(64));
    let message = super::message(open(&gguf));
    assert!(message.contains("at most 131072 experts in all layers, found 262144"), "{message}");
}
