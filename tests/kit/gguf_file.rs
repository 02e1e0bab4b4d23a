//! GGUF files with tensors of every format, which candle alone cannot write.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{self, Value};
use candle_core::{Device, Tensor};
use foretoken_model::format::{Format, random_blocks};

/// A tensor as stored in the file.
#[derive(Clone)]
pub struct Stored {
    pub name: String,
    /// Outermost dimension first.
    pub shape: Vec<usize>,
    pub format: Format,
    pub bytes: Vec<u8>,
}

impl Stored {
    /// Values of a tensor in 32 bits, rounded to one of candle's formats.
    pub fn of(name: String, numbers: &Tensor, format: Format) -> Self {
        let rounded = QTensor::quantize(numbers, format.candle().unwrap()).unwrap();
        Self { name, shape: numbers.dims().to_vec(), format, bytes: rounded.data().unwrap().into_owned() }
    }

    /// Random weights.
    pub fn random(name: String, [rows, columns]: [usize; 2], format: Format, deviation: f32) -> Self {
        if format.candle().is_some() {
            let numbers = Tensor::randn(0f32, deviation, (rows, columns), &Device::Cpu).unwrap();
            return Self::of(name, &numbers, format);
        }
        let bytes = random_blocks(format, deviation, rows * columns, &mut rand::rng());
        Self { name, shape: vec![rows, columns], format, bytes }
    }

    /// Copy of the tensor, rounded to another of candle's formats.
    pub fn rounded_to(&self, format: Format) -> Self {
        let numbers = Tensor::from_vec(self.format.dequantise(&self.bytes), self.shape.clone(), &Device::Cpu);
        Self::of(self.name.clone(), &numbers.unwrap(), format)
    }
}

/// Writes a file.
pub fn write(path: &Path, values: &[(&str, Value)], tensors: &[Stored]) {
    // candle writes the values and pads to 32 bytes; a value at their end separates them from the
    // padding.
    let end = ("tests.end", Value::String("of the values".into()));
    let values: Vec<_> = values.iter().chain([&end]).map(|(key, value)| (*key, value)).collect();
    let mut file = Cursor::new(Vec::new());
    gguf_file::write(&mut file, &values, &[]).unwrap();
    let mut file = file.into_inner();
    let filling = file.iter().rev().take_while(|byte| **byte == 0).count();
    file.truncate(file.len() - filling);
    file[8..16].copy_from_slice(&(tensors.len() as u64).to_le_bytes());
    let mut offset = 0;
    for tensor in tensors {
        file.extend((tensor.name.len() as u64).to_le_bytes());
        file.extend(tensor.name.bytes());
        file.extend((tensor.shape.len() as u32).to_le_bytes());
        tensor.shape.iter().rev().for_each(|&size| file.extend((size as u64).to_le_bytes()));
        file.extend(tensor.format.number().to_le_bytes());
        file.extend((offset as u64).to_le_bytes());
        offset += tensor.bytes.len().next_multiple_of(32);
    }
    for tensor in tensors {
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(&tensor.bytes);
    }
    fs::write(path, file).unwrap();
}
