//! NVFP4 matrices with a scale of their own: `X.scale` multiplies the weights of `X.weight`.

use candle_core::{Device, Tensor};
use foretoken_forward::{CpuModel, TensorModel};
use foretoken_model::ModelSource;
use foretoken_model::format::Format;
use foretoken_model::token::TokenId;
use foretoken_tests::{
    EVEN, Stored, loaded, logits_in_chunks, random_weights, write_model, write_model_file,
};

/// Exponent and mantissa of a scale of 16 weights, between 2^-5 and 1.
const SCALES: std::ops::Range<u8> = 2 << 3..7 << 3;

/// Weights whose scales can be multiplied by 4 without rounding.
fn weights() -> Vec<Stored> {
    let mut weights = random_weights(Format::Nvfp4, EVEN);
    for matrix in weights.iter_mut().filter(|tensor| tensor.format == Format::Nvfp4) {
        let blocks = matrix.bytes.chunks_exact_mut(Format::Nvfp4.stored());
        for (number, scale) in blocks.flat_map(|block| &mut block[..4]).enumerate() {
            *scale = SCALES.start + number as u8 % (SCALES.end - SCALES.start);
        }
    }
    weights
}

fn is_of_a_layer(tensor: &Stored) -> bool {
    tensor.format == Format::Nvfp4 && tensor.name.starts_with("blk.")
}

/// Multiplies the scales of the blocks by 4.
fn multiplied(mut weights: Vec<Stored>) -> Vec<Stored> {
    for matrix in weights.iter_mut().filter(|tensor| is_of_a_layer(tensor)) {
        let blocks = matrix.bytes.chunks_exact_mut(Format::Nvfp4.stored());
        blocks.flat_map(|block| &mut block[..4]).for_each(|scale| *scale += 2 << 3);
    }
    weights
}

/// Adds `scale` as a tensor beside each matrix of a layer.
fn scaled(weights: Vec<Stored>, scale: &[f32]) -> Vec<Stored> {
    let number = |name: String, numbers: &[f32]| {
        Stored::of(name, &Tensor::new(numbers, &Device::Cpu).unwrap(), Format::F32)
    };
    let matrices = weights.iter().filter(|tensor| is_of_a_layer(tensor));
    let parts = matrices.map(|tensor| tensor.name.strip_suffix(".weight").unwrap().to_owned());
    let scales: Vec<_> = parts
        .flat_map(|part| {
            [number(format!("{part}.scale"), scale), number(format!("{part}.input_scale"), &[0.5])]
        })
        .collect();
    weights.into_iter().chain(scales).collect()
}

#[test]
fn a_matrixs_scale_multiplies_its_weights_on_the_cpu_and_on_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, weights: &[Stored]| write_model(&folder.path().join(name), EVEN, weights, None);
    let weights = weights();
    let plain = write("plain.gguf", &weights);
    let multiplied = write("blocks.gguf", &multiplied(weights.clone()));
    let sources = [multiplied, write("tensors.gguf", &scaled(weights, &[4.0]))];
    let tokens: Vec<TokenId> = (0..40).map(|i| i * 97 % 320).collect();
    let on_the_cpu = |source: &ModelSource| logits_in_chunks(loaded(source).as_mut(), &tokens, &[7]);
    let on_tensors = |source: &ModelSource| {
        logits_in_chunks(&mut TensorModel::load(source, &Device::Cpu).unwrap(), &tokens, &[7])
    };
    let [one, other] = sources.each_ref().map(on_the_cpu);
    // A power of two changes no bits of a sum's mantissa.
    assert!(one == other && one != on_the_cpu(&plain));
    let [one, other] = sources.each_ref().map(on_tensors);
    assert!(one == other);
}

#[test]
fn scales_of_another_shape_or_without_a_value_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let refusal = |scale: &[f32]| {
        write_model_file(&path, EVEN, &scaled(weights(), scale), None);
        let loaded = ModelSource::open(&path).and_then(|source| CpuModel::load(&source).map(|_| ()));
        loaded.unwrap_err().to_string()
    };
    assert!(refusal(&[1.0, 2.0]).contains(".scale"), "{}", refusal(&[1.0, 2.0]));
    for odd in [f32::NAN, f32::INFINITY] {
        assert!(refusal(&[odd]).contains("finite scale"), "{}", refusal(&[odd]));
    }
}
