//! The head of a GGUF file, version 3: its metadata and the offsets of its tensors. Writes no
//! weights.

use super::tensor::Tensor;

/// Alignment of the tensors, and of the head's length, in bytes.
const ALIGNMENT: usize = 32;

/// A metadata value.
#[derive(Clone)]
pub enum Value {
    Number(u32),
    Float(f32),
    Flag(bool),
    Text(String),
    Numbers(Vec<i32>),
    Texts(Vec<String>),
}

/// Bytes before the first tensor.
pub fn head(values: &[(String, Value)], tensors: &[Tensor]) -> Vec<u8> {
    let mut head = Head(b"GGUF".to_vec());
    head.u32(3);
    head.u64(tensors.len());
    head.u64(values.len());
    for (key, value) in values {
        head.text(key);
        head.value(value);
    }
    let mut offset = 0;
    for tensor in tensors {
        head.text(&tensor.name);
        head.u32(tensor.shape.len() as u32);
        // The innermost dimension first.
        tensor.shape.iter().rev().for_each(|&size| head.u64(size));
        head.u32(tensor.format.number());
        head.u64(offset);
        offset += aligned(tensor.bytes());
    }
    head.0.resize(aligned(head.0.len()), 0);
    head.0
}

/// `bytes` rounded up to the alignment.
pub fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

struct Head(Vec<u8>);

impl Head {
    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: usize) {
        self.0.extend((number as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u64(text.len());
        self.0.extend(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        const LIST: u32 = 9;
        self.u32(match value {
            Value::Numbers(_) | Value::Texts(_) => LIST,
            single => single.kind(),
        });
        match value {
            Value::Number(number) => self.u32(*number),
            Value::Float(number) => self.0.extend(number.to_le_bytes()),
            Value::Flag(flag) => self.0.push(u8::from(*flag)),
            Value::Text(text) => self.text(text),
            Value::Numbers(numbers) => {
                self.u32(value.kind());
                self.u64(numbers.len());
                numbers.iter().for_each(|number| self.0.extend(number.to_le_bytes()));
            }
            Value::Texts(texts) => {
                self.u32(value.kind());
                self.u64(texts.len());
                texts.iter().for_each(|text| self.text(text));
            }
        }
    }
}

impl Value {
    /// GGUF's type number; in a list, that of its elements.
    fn kind(&self) -> u32 {
        match self {
            Self::Number(_) => 4,
            Self::Numbers(_) => 5,
            Self::Float(_) => 6,
            Self::Flag(_) => 7,
            Self::Text(_) | Self::Texts(_) => 8,
        }
    }
}
