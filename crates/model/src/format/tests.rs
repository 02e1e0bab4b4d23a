//! Dequantisation against candle, where it has the format, and against ggml.

use candle_core::quantized::{QStorage, QTensor};
use candle_core::{DType, Device};
use rand::SeedableRng;
use rand::rngs::StdRng;
use safetensors::SafeTensors;

use super::{Format, random_blocks};

/// Blocks and weights written by `tests/goldens/formats.py`.
const GOLDENS: &[u8] = include_bytes!("../../../../tests/goldens/formats.safetensors");

fn quantised() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| format.quantised())
}

fn by_candle(format: Format, bytes: &[u8]) -> Option<Vec<f32>> {
    let count = bytes.len() / format.stored() * format.inputs();
    let storage = QStorage::from_data(bytes.into(), &Device::Cpu, format.candle()?).unwrap();
    let tensor = QTensor::new(storage, count).unwrap().dequantize(&Device::Cpu).unwrap();
    Some(tensor.to_dtype(DType::F32).unwrap().to_vec1().unwrap())
}

#[test]
fn weights_are_those_that_candle_reads() {
    let mut random = StdRng::seed_from_u64(1);
    for format in quantised() {
        let blocks = random_blocks(format, 0.3, 32 * format.inputs(), &mut random);
        if let Some(expected) = by_candle(format, &blocks) {
            assert_eq!(format.dequantise(&blocks), expected, "{}", format.name());
        }
    }
}

#[test]
fn weights_have_the_bits_that_ggml_reads() {
    let goldens = SafeTensors::deserialize(GOLDENS).unwrap();
    let bytes = |name: &str| goldens.tensor(name).map(|tensor| tensor.data().to_vec());
    let mut compared = 0;
    for format in quantised() {
        let name = format.name();
        let Ok(blocks) = bytes(&format!("{name} blocks")) else { continue };
        let found = format.dequantise(&blocks);
        let expected = bytes(name).unwrap();
        let expected = expected.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(*found, expected, "{name}, weight {index}");
        }
        let add = |sum: u64, (index, weight): (u64, &f32)| {
            // Adding 0 turns -0 into 0.
            sum.wrapping_add(u64::from((weight + 0.0).to_bits()).wrapping_mul(2 * index + 1))
        };
        let sum = (0..).zip(&found).fold(0, add);
        assert_eq!(bytes(&format!("{name} sum")).unwrap(), sum.to_le_bytes(), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 17);
}

#[test]
fn random_blocks_have_the_size_that_was_wished_for() {
    let mut random = StdRng::seed_from_u64(2);
    for format in quantised() {
        let weights = format.dequantise(&random_blocks(format, 0.05, 64 * format.inputs(), &mut random));
        let squares: f32 = weights.iter().map(|weight| weight * weight).sum();
        let found = (squares / weights.len() as f32).sqrt();
        assert!((0.035..0.071).contains(&found), "{}: {found}", format.name());
    }
}

#[test]
fn rows_that_are_no_whole_blocks_have_no_size() {
    for format in quantised() {
        let (inputs, stored) = (format.inputs(), format.stored());
        assert_eq!(format.size(&[3, 2 * inputs]), Some(6 * stored), "{}", format.name());
        for shape in [[4, inputs / 2], [1, inputs + 1], [usize::MAX, 2 * inputs]] {
            assert_eq!(format.size(&shape), None, "{}: {shape:?}", format.name());
        }
    }
}
