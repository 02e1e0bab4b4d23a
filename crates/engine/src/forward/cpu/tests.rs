//! The kernels against arithmetic in 64 bits, against candle, and against each other: whatever the
//! instructions and whatever else is in the pass, the bits are the same.

mod attention;
mod math;
mod packing;
mod products;

use half::f16;
use rand::RngExt;
use rand::rngs::StdRng;

use super::isa::Isa;
use super::panels::Format;

/// All instruction sets this processor has.
fn sets() -> impl Iterator<Item = Isa> {
    Isa::ALL.iter().copied().filter(|isa| isa.available())
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Numbers between -1 and 1.
fn numbers(random: &mut StdRng, count: usize) -> Vec<f32> {
    (0..count).map(|_| random.random_range(-1.0..1.0)).collect()
}

/// Where a row's block has halves, that is, its scale and its minimum.
fn halves(format: Format) -> &'static [usize] {
    match format {
        Format::Q8_0 | Format::Q4_0 | Format::Q5_0 => &[0],
        Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
        Format::Q6K => &[208],
        Format::F16 | Format::Bf16 | Format::F32 => &[],
    }
}

/// A matrix as a file holds it: any quants, and halves or numbers between -1 and 1.
fn file(random: &mut StdRng, format: Format, rows: usize, inputs: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..rows * inputs / format.inputs() * format.row_block()).map(|_| random.random()).collect();
    for block in bytes.chunks_exact_mut(format.row_block()) {
        let number: f32 = random.random_range(-1.0..1.0);
        match format {
            Format::F16 => block.copy_from_slice(&f16::from_f32(number).to_le_bytes()),
            Format::Bf16 => block.copy_from_slice(&half::bf16::from_f32(number).to_le_bytes()),
            Format::F32 => block.copy_from_slice(&number.to_le_bytes()),
            _ => set_halves(format, block, |_| f16::from_f32(random.random_range(-1.0..1.0))),
        }
    }
    bytes
}

/// Changes the halves of a row's block.
fn set_halves(format: Format, block: &mut [u8], mut half: impl FnMut(usize) -> f16) {
    for (index, &at) in halves(format).iter().enumerate() {
        block[at..at + 2].copy_from_slice(&half(index).to_le_bytes());
    }
}

/// The weights as candle reads them, `[rows, inputs]`.
fn dequantised(format: Format, rows: usize, inputs: usize, bytes: &[u8]) -> Vec<f32> {
    use candle_core::quantized::{GgmlDType, QStorage, QTensor};
    use candle_core::{DType, Device};
    let dtype = match format {
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q4K => GgmlDType::Q4K,
        Format::Q5K => GgmlDType::Q5K,
        Format::Q6K => GgmlDType::Q6K,
        Format::F16 => GgmlDType::F16,
        Format::Bf16 => GgmlDType::BF16,
        Format::F32 => GgmlDType::F32,
    };
    let storage = QStorage::from_data(bytes.into(), &Device::Cpu, dtype).unwrap();
    let tensor = QTensor::new(storage, (rows, inputs)).unwrap().dequantize(&Device::Cpu).unwrap();
    tensor.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}
