//! Recurrent layers and experts in one model: LFM2 with experts, and Granite 4.

use candle_core::{DType, Device};
use foretoken_engine::forward::TensorModel;
use foretoken_tests::{RandomFamily, family, loaded, logits_in_chunks};
use serde_json::json;

use crate::families::tokens;

/// Sets a key of a config.json.
fn set(key: &'static str, value: serde_json::Value) -> impl Fn(&mut RandomFamily) {
    move |family: &mut RandomFamily| family.config[key] = value.clone()
}

/// Takes a tensor away.
fn without(name: &'static str) -> impl Fn(&mut RandomFamily) {
    move |family: &mut RandomFamily| drop(family.tensors.remove(name).unwrap())
}

#[test]
fn experts_by_themselves_and_stacked_are_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let one = family("lfm2moe");
    let [one, stacked] =
        [one.folder(folder.path(), DType::F32), one.with_stacked_experts().folder(folder.path(), DType::F32)];
    let logits = |source| logits_in_chunks(loaded(source).as_mut(), &tokens(), &[7]);
    assert!(logits(&one) == logits(&stacked));
}

#[test]
fn experts_may_be_chosen_without_a_bias() {
    let folder = tempfile::tempdir().unwrap();
    let mut zero = RandomFamily { label: "a bias of zero", ..family("lfm2moe") };
    for (name, tensor) in &mut zero.tensors {
        if name.ends_with("expert_bias") {
            *tensor = tensor.zeros_like().unwrap();
        }
    }
    let mut none = RandomFamily { label: "no bias", ..zero.clone() };
    none.config["use_expert_bias"] = json!(false);
    none.tensors.retain(|name, _| !name.ends_with("expert_bias"));
    let logits = |family: &RandomFamily| {
        let source = family.folder(folder.path(), DType::F32);
        logits_in_chunks(&mut TensorModel::load(&source, &Device::Cpu).unwrap(), &tokens(), &[7])
    };
    assert!(logits(&zero) == logits(&none));
    assert!(logits(&zero) != logits(&family("lfm2moe")));
}

#[test]
fn what_lfm2_with_experts_lacks_is_said_in_a_sentence() {
    for (key, value, expected) in [
        ("num_experts", json!(0), "a size in num_experts, found none"),
        ("num_experts", json!(1u64 << 32), "num_experts of at most 16777216, found 4294967296"),
        ("num_experts", json!(9), "ffn_gate_inp.weight of shape [9, 256], found [8, 256]"),
        ("num_experts_per_tok", json!(9), "up to 8 experts per token, found 9"),
        ("num_dense_layers", json!(4), "experts after fewer than 4 layers, found 4 layers without"),
        ("num_dense_layers", json!(2), "the tensor blk.1.ffn_gate.weight"),
        ("num_dense_layers", json!(0.5), "a whole number for num_dense_layers"),
        ("moe_intermediate_size", json!(64), "blk.1.ffn_gate.0.weight of shape [64, 256]"),
        ("intermediate_size", json!(4096), "blk.0.ffn_gate.weight of shape [4096, 256]"),
        ("routed_scaling_factor", json!(-1.0), "a positive scale of experts, found -1"),
        ("layer_types", json!(vec!["conv"; 4]), "attention in some of the layers"),
        ("layer_types", json!(["conv", "full_attention"]), "layer_types for every layer"),
        (
            "use_expert_bias",
            json!(false),
            "only the tensors of lfm2moe, found blk.1.exp_probs_b.bias as well",
        ),
    ] {
        let message = family("lfm2moe").refused(&set(key, value.clone()));
        assert!(message.contains(expected), "{key} {value}: {message}");
    }
    for (name, expected) in [
        ("model.layers.1.feed_forward.expert_bias", "blk.1.exp_probs_b.bias"),
        ("model.layers.3.feed_forward.gate.weight", "blk.3.ffn_gate_inp.weight"),
        ("model.layers.2.feed_forward.experts.7.w3.weight", "blk.2.ffn_up.7.weight"),
        ("model.layers.1.conv.conv.weight", "blk.1.shortconv.conv.weight"),
    ] {
        let message = family("lfm2moe").refused(&without(name));
        assert!(message.contains(&format!("the tensor {expected}")), "{name}: {message}");
    }
}
