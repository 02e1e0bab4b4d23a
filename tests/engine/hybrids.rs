//! Models that combine experts with recurrent layers or MLA: LFM2 with experts, Granite 4, and
//! GLM-4.7-Flash.

use candle_core::{DType, Device};
use foretoken_forward::TensorModel;
use foretoken_tests::{RandomFamily, family, loaded, logits_in_chunks};
use serde_json::json;

use super::families::{IN_HALVES, tokens};
use super::invariance::difference;

#[test]
fn separate_and_stacked_experts_are_the_same_model() {
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
fn lfm2_with_experts_is_rejected_with_a_message_if_parts_are_missing() {
    let settings = [
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
    ];
    let lacking = [
        ("model.layers.1.feed_forward.expert_bias", "the tensor blk.1.exp_probs_b.bias"),
        ("model.layers.3.feed_forward.gate.weight", "the tensor blk.3.ffn_gate_inp.weight"),
        ("model.layers.2.feed_forward.experts.7.w3.weight", "the tensor blk.2.ffn_up.7.weight"),
        ("model.layers.1.conv.conv.weight", "the tensor blk.1.shortconv.conv.weight"),
    ];
    family("lfm2moe").assert_refused(&settings, &lacking);
}

#[test]
fn granite_4_is_rejected_with_a_message_if_parts_are_missing() {
    let settings = [
        ("layer_types", json!(vec!["mamba"; 4]), "attention in some of the layers"),
        ("layer_types", json!(["mamba", "attention"]), "layer_types for every layer"),
        ("mamba_n_groups", json!(3), "key heads of recurrent layers that divide their value heads"),
        ("mamba_n_groups", json!(0), "a size in mamba_n_groups, found none"),
        ("mamba_n_heads", json!(1u64 << 32), "mamba_n_heads of at most 16777216, found 4294967296"),
        ("mamba_n_heads", json!(4), "blk.0.ssm_in.weight of shape [644, 256], found [1160, 256]"),
        ("mamba_d_head", json!(24), "heads of recurrent layers of a multiple of 32, found 24"),
        ("mamba_d_state", json!(40), "heads of recurrent layers of a multiple of 32, found 40"),
        ("mamba_d_conv", json!(1), "a convolution over 2 to 16 rows, found 1"),
        ("mamba_d_conv", json!(3), "blk.0.ssm_conv1d.weight of shape [640, 3], found [640, 4]"),
        (
            "mamba_conv_bias",
            json!(false),
            "only the tensors of granitehybrid, found blk.0.ssm_conv1d.bias as well",
        ),
        ("mamba_proj_bias", json!(true), "no biases in the matrices of Mamba layers"),
        ("time_step_limit", json!([1.0, 0.5]), "two limits that ascend, found 1 and 0.5"),
        ("time_step_limit", json!([1.0]), "two numbers for time_step_limit"),
        ("num_local_experts", json!(1u64 << 32), "num_local_experts of at most 16777216"),
        ("num_local_experts", json!(0), "only the tensors of granitehybrid, found blk.0.ffn_"),
        ("num_experts_per_tok", json!(7), "up to 6 experts per token, found 7"),
        ("intermediate_size", json!(64), "of shape [6, 256, 64], found [6, 256, 96]"),
        (
            "shared_intermediate_size",
            json!(96),
            "blk.0.ffn_gate_up_shexp.weight of shape [192, 256], found [128, 256]",
        ),
        ("residual_multiplier", json!(0.0), "a positive number for residual scale, found 0"),
    ];
    let lacking = [
        ("model.layers.0.mamba.in_proj.weight", "the tensor blk.0.ssm_gate.weight"),
        ("model.layers.1.mamba.D", "the tensor blk.1.ssm_d"),
        ("model.layers.3.mamba.A_log", "the tensor blk.3.ssm_a"),
        ("model.layers.3.mamba.conv1d.bias", "the tensor blk.3.ssm_conv1d.bias"),
        ("model.layers.0.mamba.norm.weight", "the tensor blk.0.ssm_norm.weight"),
        ("model.layers.2.self_attn.k_proj.weight", "the tensor blk.2.attn_k.weight"),
        ("model.layers.2.shared_mlp.output_linear.weight", "the tensor blk.2.ffn_down_shexp.weight"),
        ("model.layers.1.block_sparse_moe.router.layer.weight", "the tensor blk.1.ffn_gate_inp.weight"),
    ];
    family("granitehybrid with experts").assert_refused(&settings, &lacking);
}

#[test]
fn steps_stay_between_the_limits_that_a_file_gives() {
    let folder = tempfile::tempdir().unwrap();
    let plain = family("granitehybrid");
    let mut limited = RandomFamily { label: "limited steps", ..plain.clone() };
    limited.config["time_step_limit"] = json!([0.2, 0.3]);
    let sources = [&plain, &limited].map(|family| family.folder(folder.path(), DType::F32));
    let on_the_cpu =
        sources.each_ref().map(|source| logits_in_chunks(loaded(source).as_mut(), &tokens(), &[7]));
    let mut tensors = TensorModel::load(&sources[1], &Device::Cpu).unwrap();
    let on_tensors = logits_in_chunks(&mut tensors, &tokens(), &[7]);
    assert!(difference(&on_the_cpu[1], &on_tensors) < IN_HALVES);
    assert!(difference(&on_the_cpu[1], &on_the_cpu[0]) > 0.05);
}

#[test]
fn models_with_mla_are_rejected_with_a_message_if_parts_are_missing() {
    let settings = [
        ("kv_lora_rank", json!(0), "a size in kv_lora_rank, found none"),
        ("kv_lora_rank", json!(1u64 << 32), "kv_lora_rank of at most 16777216, found 4294967296"),
        ("kv_lora_rank", json!(1 << 20), "a head size of at most 8192, found"),
        ("kv_lora_rank", json!(72), "latents of a multiple of 16 numbers, found 72"),
        ("kv_lora_rank", json!(48), "blk.0.attn_kv_b.weight of shape [320, 48], found [320, 64]"),
        ("qk_rope_head_dim", json!(23), "an even part of keys that turns, found 23"),
        ("qk_rope_head_dim", json!(56), "blk.0.attn_q_b.weight of shape [352, 96], found [224, 96]"),
        ("v_head_dim", json!(null), "a size in v_head_dim, found none"),
        ("v_head_dim", json!(40), "values of a multiple of 16 numbers, found 40"),
        ("q_lora_rank", json!(null), "the tensor blk.0.attn_q.weight"),
        ("n_group", json!(4), "experts without groups, found n_group = 4"),
        ("n_routed_experts", json!(1u64 << 32), "n_routed_experts of at most 16777216"),
        ("num_experts_per_tok", json!(9), "up to 8 experts per token, found 9"),
        ("n_shared_experts", json!(0), "a size in n_shared_experts, found none"),
        ("n_shared_experts", json!(2), "blk.1.ffn_gate_shexp.weight of shape [192, 256], found [96, 256]"),
        ("mlp_layer_types", json!(["dense"]), "experts in every layer after the first ones"),
        (
            "mlp_layer_types",
            json!(["dense", "sparse", "dense"]),
            "experts in every layer after the first ones",
        ),
        ("mlp_layer_types", json!(vec!["dense"; 3]), "experts after fewer than 3 layers"),
        ("routed_scaling_factor", json!(-1.0), "a positive scale of experts, found -1"),
    ];
    let lacking = [
        ("model.layers.1.mlp.gate.e_score_correction_bias", "the tensor blk.1.exp_probs_b.bias"),
        ("model.layers.2.mlp.shared_experts.up_proj.weight", "the tensor blk.2.ffn_up_shexp.weight"),
        ("model.layers.0.self_attn.kv_b_proj.weight", "the tensor blk.0.attn_k_b.0.weight"),
        ("model.layers.0.self_attn.kv_a_layernorm.weight", "the tensor blk.0.attn_kv_a_norm.weight"),
    ];
    family("glm").assert_refused(&settings, &lacking);
}
