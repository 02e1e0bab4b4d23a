//! Matrices with a common input, stacked vertically: fewer kernel launches, and the input is
//! quantised once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::quantized::{GgmlDType, QMatMul, QStorage, QTensor};
use candle_core::{DType, Device, Module, Result, Tensor};

/// Most rows that candle's matrix-vector kernels take on CUDA; more rows go to the matrix kernels.
const MAX_VECTOR_ROWS: usize = 8;

#[derive(Debug)]
pub struct Stack {
    /// Several parts if formats differ, or in [pieces](Self::in_pieces).
    parts: Vec<QMatMul>,
    quantised: bool,
}

/// Arithmetic of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// candle's kernels for the weights' format, which quantise activations too.
    Kernels,
    /// 32-bit floats, with the weights dequantised.
    Exact,
}

/// Number of rows from which rows of zeros are added, so that a product goes to the matrix kernels
/// because they take less time. Plain decoding, with one row, is never padded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Padding {
    from: usize,
}

impl Padding {
    pub const NONE: Self = Self { from: MAX_VECTOR_ROWS + 1 };

    /// Measures with `stack`, the largest one, and inputs of `width` numbers. Outside CUDA, and for
    /// weights that are not quantised, padding gains nothing: two rows use the same kernels as
    /// nine.
    pub fn measured(stack: &Stack, width: usize, device: &Device) -> Result<Self> {
        if !device.is_cuda() || !stack.quantised {
            return Ok(Self::NONE);
        }
        let time = |rows: usize, padding: Self| -> Result<Duration> {
            let x = Tensor::ones((rows, width), DType::F32, device)?;
            let mut best = Duration::MAX;
            for _ in 0..TRIALS {
                device.synchronize()?;
                let started = Instant::now();
                (0..PRODUCTS_PER_TRIAL).try_for_each(|_| stack.forward(&x, padding).map(drop))?;
                device.synchronize()?;
                best = best.min(started.elapsed());
            }
            Ok(best)
        };
        for rows in 2..=MAX_VECTOR_ROWS {
            if time(rows, Self { from: rows })?.mul_f64(MIN_SPEEDUP) < time(rows, Self::NONE)? {
                return Ok(Self { from: rows });
            }
        }
        Ok(Self::NONE)
    }
}

/// Required speedup, so that a few percent of noise do not count.
const MIN_SPEEDUP: f64 = 1.05;

/// Trials for each number of rows, and products per trial.
const TRIALS: usize = 3;
const PRODUCTS_PER_TRIAL: usize = 10;

/// Pieces of a matrix whose first rows may be needed without the rest.
const PIECES: usize = 4;

impl Stack {
    /// Stacks matrices of the same width on `device`, the first at the top. They are on that device
    /// or on the CPU. Neighbours of the same format become one part.
    pub fn new(matrices: Vec<Arc<QTensor>>, arithmetic: Arithmetic, device: &Device) -> Result<Self> {
        if arithmetic == Arithmetic::Exact {
            let widened = matrices.iter().map(|matrix| matrix.dequantize(device));
            let widened = Tensor::cat(&widened.collect::<Result<Vec<_>>>()?, 0)?;
            return Ok(Self { parts: vec![QMatMul::Tensor(widened)], quantised: false });
        }
        let quantised = matrices.iter().all(|matrix| !is_plain(matrix.dtype()));
        let mut runs: Vec<Vec<Arc<QTensor>>> = Vec::new();
        for matrix in matrices {
            match runs.last_mut().filter(|run| run[0].dtype() == matrix.dtype()) {
                Some(run) => run.push(matrix),
                None => runs.push(vec![matrix]),
            }
        }
        let parts = runs
            .into_iter()
            .map(|run| QMatMul::from_arc(concatenated(run, device)?))
            .collect::<Result<_>>()?;
        Ok(Self { parts, quantised })
    }

    /// Splits a matrix into pieces on `device`, so that the [first](Self::first_outputs) outputs
    /// cost less than all.
    pub fn in_pieces(matrix: &QTensor, arithmetic: Arithmetic, device: &Device) -> Result<Self> {
        let (height, width) = matrix.shape().dims2()?;
        let bytes = matrix.data()?;
        let row = bytes.len() / height;
        let (mut parts, mut quantised) = (Vec::new(), false);
        for bytes in bytes.chunks(height.div_ceil(PIECES) * row) {
            let storage = QStorage::from_data(bytes.to_vec().into(), device, matrix.dtype())?;
            let piece = QTensor::new(storage, (bytes.len() / row, width))?;
            let piece = Self::new(vec![Arc::new(piece)], arithmetic, device)?;
            quantised = piece.quantised;
            parts.extend(piece.parts);
        }
        Ok(Self { parts, quantised })
    }

    /// Maps `[rows, width]` to `[rows, heights of all]`.
    pub fn forward(&self, x: &Tensor, padding: Padding) -> Result<Tensor> {
        self.first_outputs(x, usize::MAX, padding)
    }

    /// Computes at least the first `count` outputs of each row: `[rows, count or more]`.
    pub fn first_outputs(&self, x: &Tensor, count: usize, padding: Padding) -> Result<Tensor> {
        let rows = x.dim(0)?;
        if self.quantised && (padding.from..=MAX_VECTOR_ROWS).contains(&rows) {
            let padded = x.pad_with_zeros(0, 0, MAX_VECTOR_ROWS + 1 - rows)?;
            return self.product(&padded, count)?.narrow(0, 0, rows);
        }
        self.product(x, count)
    }

    fn product(&self, x: &Tensor, count: usize) -> Result<Tensor> {
        let (mut products, mut found) = (Vec::new(), 0);
        for part in &self.parts {
            let product = part.forward(x)?;
            found += product.dim(1)?;
            products.push(product);
            if found >= count {
                break;
            }
        }
        if let [whole] = &products[..] { Ok(whole.clone()) } else { Tensor::cat(&products, 1) }
    }
}

fn is_plain(dtype: GgmlDType) -> bool {
    matches!(dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16)
}

/// Concatenates matrices of one format as bytes, because blocks do not cross rows.
fn concatenated(run: Vec<Arc<QTensor>>, device: &Device) -> Result<Arc<QTensor>> {
    if let [matrix] = &run[..]
        && matrix.device().same_device(device)
    {
        return Ok(Arc::clone(matrix));
    }
    let (_, width) = run[0].shape().dims2()?;
    let mut bytes = Vec::new();
    let mut height = 0;
    for matrix in &run {
        bytes.extend_from_slice(&matrix.data()?);
        height += matrix.shape().dims2()?.0;
    }
    let storage = QStorage::from_data(bytes.into(), device, run[0].dtype())?;
    Ok(Arc::new(QTensor::new(storage, (height, width))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(height: usize, dtype: GgmlDType) -> Arc<QTensor> {
        let numbers = (0..height * 256).map(|n| ((n * 37 % 101) as f32 - 50.0) / 50.0);
        let tensor = Tensor::from_iter(numbers, &Device::Cpu).unwrap().reshape((height, 256)).unwrap();
        Arc::new(QTensor::quantize(&tensor, dtype).unwrap())
    }

    #[test]
    fn a_stack_computes_its_matrices_products_in_every_format_and_padding() {
        let x = Tensor::from_iter((0..3 * 256).map(|n| (n % 13) as f32 / 13.0), &Device::Cpu).unwrap();
        let x = x.reshape((3, 256)).unwrap();
        for formats in
            [[GgmlDType::Q4K; 3], [GgmlDType::Q4K, GgmlDType::Q4K, GgmlDType::Q6K], [GgmlDType::F16; 3]]
        {
            let matrices = formats.map(|format| matrix(5, format));
            let separate =
                matrices.clone().map(|matrix| QMatMul::from_arc(matrix).unwrap().forward(&x).unwrap());
            let separate: Vec<Vec<f32>> = Tensor::cat(&separate, 1).unwrap().to_vec2().unwrap();
            let stack = Stack::new(matrices.to_vec(), Arithmetic::Kernels, &Device::Cpu).unwrap();
            assert_eq!(stack.parts.len(), if formats[0] == formats[2] { 1 } else { 2 });
            for padding in [Padding::NONE, Padding { from: 2 }] {
                let found = stack.forward(&x, padding).unwrap();
                assert_eq!(found.dims(), [3, 15]);
                assert_eq!(found.to_vec2::<f32>().unwrap(), separate);
            }
        }
    }

    #[test]
    fn a_matrix_in_pieces_computes_the_first_outputs_and_no_more_pieces_than_needed() {
        let x = Tensor::from_iter((0..3 * 256).map(|n| (n % 13) as f32 / 13.0), &Device::Cpu).unwrap();
        let x = x.reshape((3, 256)).unwrap();
        for (arithmetic, height, heights) in
            [(Arithmetic::Kernels, 22, [6, 12, 18, 22]), (Arithmetic::Exact, 5, [2, 4, 5, 5])]
        {
            let matrix = matrix(height, GgmlDType::Q6K);
            let pieces = Stack::in_pieces(&matrix, arithmetic, &Device::Cpu).unwrap();
            let whole = Stack::new(vec![matrix], arithmetic, &Device::Cpu).unwrap();
            let expected = whole.forward(&x, Padding::NONE).unwrap();
            for (count, most) in [(1, heights[0]), (7, heights[1]), (13, heights[2]), (19, height)] {
                let count = count.min(height);
                let found = pieces.first_outputs(&x, count, Padding { from: 2 }).unwrap();
                let found_width = found.dim(1).unwrap();
                assert!((count..=most.max(count)).contains(&found_width), "{found_width} of {count}");
                let expected = expected.narrow(1, 0, found_width).unwrap();
                assert_eq!(found.to_vec2::<f32>().unwrap(), expected.to_vec2::<f32>().unwrap());
            }
            let all = pieces.forward(&x, Padding::NONE).unwrap();
            assert_eq!(all.to_vec2::<f32>().unwrap(), expected.to_vec2::<f32>().unwrap());
        }
    }
}
