//! Tests with devices that are made to fail. Each failure is an error with a message, never a
//! panic, and cached tokens stay.

use std::sync::Arc;
use std::time::Duration;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use foretoken_model::ModelSource;
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_testkit::{Gguf, HEAD_SIZE, HIDDEN, INTERMEDIATE, text};
use wgpu::{Features, Limits};

use super::device::GpuDevice;
use super::kernels::Arithmetic;
use super::model::GpuModel;
use super::opening::{adapters, missing, unfound};
use super::tests::tiny;
use crate::cpu::CpuModel;
use crate::tree::TokenTree;
use crate::{Model, Want};

fn opened() -> Arc<GpuDevice> {
    GpuDevice::open(0, true).unwrap()
}

fn run(model: &mut dyn Model, tokens: impl IntoIterator<Item = TokenId>) -> Result<Vec<f32>> {
    let tree = TokenTree::chain(tokens);
    let pass = model.run(&tree, &Want::all_rows())?;
    let logits = pass.logits();
    let mut all = Vec::new();
    for row in 0..tree.len() {
        all.extend(logits.row(row).logits()?.iter());
    }
    Ok(all)
}

#[test]
fn missing_features_of_a_driver_are_named() {
    let whole =
        Limits { max_immediate_size: 128, max_storage_buffers_per_shader_stage: 8, ..Limits::default() };
    assert_eq!(missing(Features::IMMEDIATES, &whole), None);
    for (features, limits, words) in [
        (Features::empty(), whole.clone(), "immediate data"),
        (Features::IMMEDIATES, Limits { max_immediate_size: 32, ..whole.clone() }, "immediate data"),
        (
            Features::IMMEDIATES,
            Limits { max_compute_workgroup_storage_size: 8 << 10, ..whole.clone() },
            "16 KB of memory",
        ),
        (
            Features::IMMEDIATES,
            Limits { max_compute_invocations_per_workgroup: 128, ..whole.clone() },
            "groups of 256 threads",
        ),
        (
            Features::IMMEDIATES,
            Limits { max_storage_buffers_per_shader_stage: 4, ..whole.clone() },
            "8 buffers",
        ),
    ] {
        let found = missing(features, &limits).unwrap_or_default();
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn a_gpu_that_computes_wrongly_is_not_opened() {
    let (found, _) = adapters(true);
    let reason = GpuDevice::of(&found[0], "a GPU", &[Arithmetic::Wrong]).err().unwrap();
    assert!(reason.ends_with("computes wrongly"), "{reason}");
}

#[test]
fn a_backend_without_gpus_is_named() {
    assert!(unfound("abacus").starts_with("WGPU_BACKEND is 'abacus', by which no GPU was found"));
}

/// A model with many experts in this format.
fn experts(dtype: GgmlDType) -> Gguf {
    const EXPERTS: usize = 100;
    let mut gguf = Gguf::tiny();
    let values = std::mem::take(&mut gguf.values).into_iter();
    gguf.values = values.map(|(key, value)| (key.replace("llama.", "qwen3moe."), value)).collect();
    gguf.set("general.architecture", text("qwen3moe"));
    for (key, size) in
        [("expert_count", EXPERTS), ("expert_used_count", 3), ("expert_feed_forward_length", INTERMEDIATE)]
    {
        gguf.set(&format!("qwen3moe.{key}"), Value::U32(size as u32));
    }
    gguf.tensors.retain(|name, _| !name.contains(".ffn_") || name.contains("norm"));
    gguf.add("blk.0.ffn_gate_inp.weight", &[EXPERTS, HIDDEN], GgmlDType::F32);
    gguf.add("blk.0.ffn_gate_exps.weight", &[EXPERTS, INTERMEDIATE, HIDDEN], dtype);
    gguf.add("blk.0.ffn_up_exps.weight", &[EXPERTS, INTERMEDIATE, HIDDEN], dtype);
    gguf.add("blk.0.ffn_down_exps.weight", &[EXPERTS, HIDDEN, INTERMEDIATE], dtype);
    gguf.add("blk.0.attn_q_norm.weight", &[HEAD_SIZE], GgmlDType::F32);
    gguf.add("blk.0.attn_k_norm.weight", &[HEAD_SIZE], GgmlDType::F32);
    gguf
}

// The largest buffers are those of activations.
#[test]
fn matrices_larger_than_a_buffer_are_split_and_give_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let device = opened();
    let buffer = 100 << 10;
    for dtype in [GgmlDType::Q8_0, GgmlDType::F32] {
        let gguf = experts(dtype);
        let source = ModelSource::open(&gguf.write(folder.path())).unwrap();
        device.bound(|bounds| bounds.buffer = buffer / 2);
        let refused = GpuModel::load(&source, &device).map(|_| ()).unwrap_err();
        assert!(refused.is_out_of_memory(), "smaller buffers than a pass needs: {refused}");
        device.bound(|bounds| bounds.buffer = buffer);
        let tokens = (0..40).map(|token| token * 7 % 250);
        let found = run(&mut GpuModel::load(&source, &device).unwrap(), tokens.clone()).unwrap();
        let expected = run(&mut CpuModel::load(&source).unwrap(), tokens).unwrap();
        let differ = found.iter().zip(&expected).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        assert!(differ == 0 || !device.guarantees().cpu_bits, "{differ} of {} differ", expected.len());
    }
}

#[test]
fn running_out_of_memory_in_mid_reply_is_an_error_and_keeps_cached_tokens() {
    let device = opened();
    let mut gguf = Gguf::tiny();
    gguf.set("llama.context_length", Value::U32(2000));
    let folder = tempfile::tempdir().unwrap();
    let source = ModelSource::open(&gguf.write(folder.path())).unwrap();
    let mut model = GpuModel::load(&source, &device).unwrap();
    run(&mut model, (0..250).map(|token| token % 250)).unwrap();
    let whole = device.largest_buffer();
    device.bound(|bounds| bounds.buffer = 16);
    let error = run(&mut model, [1; 10]).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!(model.cached().len(), 250);
    // Room that exists is not allocated again.
    run(&mut model, [1; 6]).unwrap();
    device.bound(|bounds| bounds.buffer = whole);
    let found = run(&mut model, [1; 10]).unwrap();
    let mut cpu = CpuModel::load(&source).unwrap();
    run(&mut cpu, (0..250).map(|token| token % 250).chain([1; 6])).unwrap();
    assert!(found == run(&mut cpu, [1; 10]).unwrap() || !device.guarantees().cpu_bits);
}

// Free memory equals the reserve, so nothing is left for the model.
#[test]
fn an_integrated_gpu_leaves_system_memory_free() {
    let device = opened();
    device.bound(|bounds| bounds.free_memory = || 256 << 20);
    let error = device.buffer(2 << 20).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    device.buffer(1000).unwrap();
    device.bound(|bounds| bounds.free_memory = || u64::MAX);
    device.buffer(2 << 20).unwrap();
}

#[test]
fn a_gpu_that_hangs_fails_after_the_timeout_and_stays_failed() {
    let device = opened();
    let mut model = tiny(&device);
    run(&mut model, [5, 6, 7]).unwrap();
    device.bound(|bounds| bounds.timeout = Duration::ZERO);
    let error = run(&mut model, 0..30).unwrap_err();
    assert!(matches!(error, Error::Compute(_)), "{error}");
    assert_eq!(error.to_string(), "the computation failed: the GPU did not answer for 0 seconds.");
    assert_eq!(model.cached(), [5, 6, 7]);
    // The device may have finished meanwhile, but its failure is permanent.
    device.bound(|bounds| bounds.timeout = Duration::from_secs(20));
    assert!(run(&mut model, [8]).is_err() && model.wait().is_err());
    assert!(device.buffer(1000).is_ok() && device.check().is_err());
}

// The device is so slow that every layer is submitted alone.
#[test]
fn a_pass_in_many_submissions_has_the_bits_of_one_in_few() {
    let device = opened();
    let mut model = tiny(&device);
    let tokens = || (0..40).map(|token| token * 7 % 250);
    let few = run(&mut model, tokens()).unwrap();
    model.truncate(0);
    device.slow_down();
    assert_eq!(device.at_once(), 0);
    let many = run(&mut model, tokens()).unwrap();
    assert!(few == many);
}
