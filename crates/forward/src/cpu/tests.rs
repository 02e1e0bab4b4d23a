//! Kernels against f64 arithmetic, against candle, and against each other: results have the same
//! bits for all instruction sets and whatever else is in the pass.

mod attention;
mod math;
mod packing;
mod products;
mod step;

use foretoken_model::format::set_halves;
use half::f16;
use rand::RngExt;
use rand::rngs::StdRng;

use super::isa::Isa;
use super::panels::Format;

/// All instruction sets of this processor.
fn sets() -> impl Iterator<Item = Isa> {
    Isa::ALL.iter().copied().filter(|isa| isa.available())
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Random numbers between -1 and 1.
fn numbers(random: &mut StdRng, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
}

/// Random bytes of a matrix in a file, with scales or numbers between -1 and 1.
fn file(random: &mut StdRng, format: Format, rows: usize, inputs: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..rows * inputs / format.inputs() * format.stored()).map(|_| random.random()).collect();
    for block in bytes.chunks_exact_mut(format.stored()) {
        let number: f32 = random.random_range(-1.0..1.0);
        match format {
            Format::F16 => block.copy_from_slice(&f16::from_f32(number).to_le_bytes()),
            Format::Bf16 => block.copy_from_slice(&half::bf16::from_f32(number).to_le_bytes()),
            Format::F32 => block.copy_from_slice(&number.to_le_bytes()),
            _ => set_halves(format, block, [0; 2].map(|_| f16::from_f32(random.random_range(-1.0..1.0)))),
        }
    }
    bytes
}

/// Weights dequantised by candle, `[rows, inputs]`, or by our port of ggml where candle lacks the
/// format.
fn dequantised(format: Format, rows: usize, inputs: usize, bytes: &[u8]) -> Vec<f32> {
    use candle_core::quantized::{QStorage, QTensor};
    use candle_core::{DType, Device};
    let Some(dtype) = format.candle() else { return format.dequantise(bytes) };
    let storage = QStorage::from_data(bytes.into(), &Device::Cpu, dtype).unwrap();
    let tensor = QTensor::new(storage, (rows, inputs)).unwrap().dequantize(&Device::Cpu).unwrap();
    tensor.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}
