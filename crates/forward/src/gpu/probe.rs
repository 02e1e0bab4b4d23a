//! Probes what a GPU guarantees: runs kernels on generated numbers and compares them with each
//! other and with the CPU engine. Rows here are multiples of a whole vector.

use foretoken_model::Activation;
use foretoken_model::error::Result;
use serde::Serialize;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::guarantees::Guarantees;
use super::kernels::{Kernel, TILES};
use super::matrix::Matrix;
use super::norm::Norm;
use super::product::{Out, Product, activation_mode};
use super::state::Rows;
use super::step::{Quantise, Step};
use crate::cpu::panels::{Format, Panels};
use crate::cpu::reference;
use crate::cpu::simd::LANES;

/// Size of the generated matrices.
const INPUTS: usize = 256;
const OUTPUTS: usize = 32;
const ROWS: usize = 8;

/// Results of one kind on the device, beside the CPU's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Kind of operation: "multiply-add", "norm".
    pub operation: &'static str,
    pub numbers: usize,
    /// Numbers whose bits differ.
    pub different: usize,
    /// Largest difference, relative to the largest number; NaN if a result is not a number.
    pub error: f32,
    /// Index, device's and CPU's value of the first number that differs.
    pub first: Option<(usize, f32, f32)>,
}

impl Comparison {
    fn of(operation: &'static str, ours: &[f32], theirs: &[f32]) -> Self {
        let pairs = || ours.iter().copied().zip(theirs.iter().copied());
        let differs = |&(_, (ours, theirs)): &(usize, (f32, f32))| ours.to_bits() != theirs.to_bits();
        let size = theirs.iter().map(|number| number.abs()).fold(0.0, f32::max);
        let error = pairs().map(|(ours, theirs)| (ours - theirs).abs() / size);
        Self {
            operation,
            numbers: theirs.len(),
            different: pairs().enumerate().filter(differs).count(),
            error: error
                .fold(0.0, |most: f32, error| if most.is_nan() || error <= most { most } else { error }),
            first: pairs().enumerate().find(differs).map(|(at, (ours, theirs))| (at, ours, theirs)),
        }
    }
}

/// Returns whether `device` multiplies and adds with one rounding.
///
/// # Errors
/// `Error::Compute` when the device fails, as for the other functions.
pub fn rounds_once(device: &GpuDevice) -> Result<bool> {
    Ok(multiply_add(device)?.different == 0)
}

/// Compares multiply-adds that show a second rounding.
fn multiply_add(device: &GpuDevice) -> Result<Comparison> {
    // The third number nearly cancels the product of the first two, so only its lower half is left.
    let three = |&[a, b]: &[f32; 2]| [a, b, -a * b];
    // Products halfway between two floats; the addend decides how they round.
    let middle = |m: u16| {
        let [a, b] = [1.0, f32::from(2 * m + 1)].map(|number| 1.0 + number / 4096.0);
        [[a, b, 1e-12], [a, b, -1e-12], [a, -b, 1e-24], [a, -b, -1e-24]]
    };
    let made_up = made_up(1024);
    let x = made_up.as_chunks().0.iter().map(three).chain((0..64).flat_map(middle));
    let x: Vec<f32> = x.flatten().collect();
    let count = x.len() / 3;
    let (from, out) = (upload(device, &x)?, device.buffer(4 * count)?);
    let step = Step::new(device, Kernel::Probe, &[&from, &out])?;
    let groups = [count.div_ceil(64), 1];
    let found = compute(device, &out, count, |pass| step.run(pass, &[count as u32], groups))?;
    let expected = x.as_chunks().0.iter().map(|&[a, b, c]| f32::mul_add(a, b, c));
    Ok(Comparison::of("multiply-add", &found, &expected.collect::<Vec<_>>()))
}

/// Probes `device`.
///
/// # Errors
/// `Error::Compute` when the device fails, as for the other functions.
pub fn measure(device: &GpuDevice) -> Result<Guarantees> {
    let (comparisons, any_tile) = compare(device)?;
    Ok(Guarantees {
        computes: comparisons.iter().skip(1).all(|comparison| comparison.error <= 1e-3),
        any_tile,
        cpu_bits: comparisons.iter().all(|comparison| comparison.different == 0),
    })
}

/// Compares the results of each kind of operation with the CPU's: multiply-adds first.
///
/// # Errors
/// `Error::Compute` when the device fails, as for the other functions.
pub fn comparisons(device: &GpuDevice) -> Result<Vec<Comparison>> {
    Ok(compare(device)?.0)
}

/// Comparisons, and whether tiles of all sizes give a row the same bits.
fn compare(device: &GpuDevice) -> Result<(Vec<Comparison>, bool)> {
    let tiles = TILES.map(|tile| Kernel::Product(Format::F32, tile));
    let others = [Kernel::Norm, Kernel::Activate, Kernel::Quantise, Kernel::Product(Format::Q8_0, 1)];
    device.pipelines().prepare(device, &[&tiles[..], &others].concat())?;
    let (rows, weight) = (made_up(ROWS * INPUTS), made_up(INPUTS));
    let weights: Vec<u8> = made_up(OUTPUTS * INPUTS).iter().flat_map(|number| number.to_le_bytes()).collect();
    let numbers = pack(Format::F32, &weights);
    let quants = pack(Format::Q8_0, &with_scales(weights[..OUTPUTS * INPUTS / 32 * 34].to_vec(), 34));
    let by_tile = products(device, &numbers, &rows, &TILES)?;
    let of_rows = |operation, ours: &[f32], theirs: &dyn Fn(&[f32]) -> Vec<f32>| {
        let theirs: Vec<f32> = rows.chunks(INPUTS).flat_map(theirs).collect();
        Comparison::of(operation, ours, &theirs)
    };
    let comparisons = vec![
        multiply_add(device)?,
        of_rows("norm", &norm(device, &rows, &weight, 1e-6)?, &|row| reference::rms_norm(row, &weight, 1e-6)),
        of_rows("activation", &activate(device, Activation::Silu, &rows, &weight.repeat(ROWS))?, &|row| {
            reference::activate(Activation::Silu, row, &weight)
        }),
        of_rows("product", &by_tile[0], &|row| reference::product(&numbers, row)),
        quantisation(device, &rows)?,
        of_rows("product in 8 bits", &products(device, &quants, &rows, &TILES[..1])?[0], &|row| {
            reference::product(&quants, row)
        }),
    ];
    Ok((comparisons, by_tile.iter().all(|tile| bits(tile) == bits(&by_tile[0]))))
}

/// Compares the scales of eight rows quantised to 8 bits, which are together for each block.
fn quantisation(device: &GpuDevice, rows: &[f32]) -> Result<Comparison> {
    let x = Rows::new(device, ROWS, INPUTS)?;
    device.write(&x.plain, rows.iter().map(|number| number.to_bits()));
    let quantise = Quantise::new(device, &x)?;
    let found = compute(device, &x.scales, 2 * rows.len() / 32, |pass| quantise.run(pass, ROWS))?;
    let of_rows = |block: usize| rows.chunks(INPUTS).map(move |row| &row[32 * block..][..32]);
    let expected: Vec<f32> = (0..INPUTS / 32).flat_map(of_rows).flat_map(reference::scales).collect();
    Ok(Comparison::of("quantisation", &found, &expected))
}

/// A generated matrix.
fn pack(format: Format, weights: &[u8]) -> Panels {
    Panels::pack(format, OUTPUTS, INPUTS, weights).unwrap_or_else(|_| unreachable!("scales are finite"))
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Numbers of several magnitudes.
#[allow(
    clippy::disallowed_methods,
    reason = "both sides of a comparison take these numbers, whatever their bits"
)]
fn made_up(count: usize) -> Vec<f32> {
    (0..count).map(|n| (n as f32 * 0.7).sin() * ((n % 9) as f32 - 4.0).exp2()).collect()
}

/// Makes the half-precision scale at the beginning of each block one between 1/8 and 2.
fn with_scales(mut blocks: Vec<u8>, block: usize) -> Vec<u8> {
    blocks.chunks_exact_mut(block).for_each(|block| block[1] = 0x30 | (block[1] & 0x0f));
    blocks
}

/// Uploads numbers into a new buffer.
///
/// # Errors
/// `Error::Compute` when the device fails, as for the other functions.
pub fn upload(device: &GpuDevice, numbers: &[f32]) -> Result<Buffer> {
    let buffer = device.buffer(4 * numbers.len())?;
    device.write(&buffer, numbers.iter().map(|number| number.to_bits()));
    Ok(buffer)
}

/// Runs what `encode` encodes, then reads the first `count` numbers of `from`.
pub fn compute(
    device: &GpuDevice,
    from: &Buffer,
    count: usize,
    encode: impl FnOnce(&mut Dispatches),
) -> Result<Vec<f32>> {
    let to = device.readable(4 * count)?;
    let mut encoder = device.raw().create_command_encoder(&Default::default());
    encode(&mut Dispatches::begin(device, &mut encoder));
    encoder.copy_buffer_to_buffer(from, 0, &to, 0, 4 * count as u64);
    device.submit(encoder, 0);
    device.fetch(&to, count)
}

/// RMS norm of `rows`, which are as long as `weight`.
pub fn norm(device: &GpuDevice, rows: &[f32], weight: &[f32], epsilon: f32) -> Result<Vec<f32>> {
    let (length, count) = (weight.len(), rows.len() / weight.len());
    let stride = length.next_multiple_of(LANES);
    let mut padded = vec![0.0; count * stride];
    for (row, to) in rows.chunks(length).zip(padded.chunks_mut(stride)) {
        to[..length].copy_from_slice(row);
    }
    let (state, vectors) = (upload(device, &padded)?, upload(device, weight)?);
    let to = Rows::new(device, count, length)?;
    let branch = device.buffer(16)?;
    let step =
        Step::new(device, Kernel::Norm, &[&state, &branch, &vectors, &to.plain, &to.quants, &to.scales])?;
    let params = Norm::plain(length, f64::from(epsilon)).params();
    let found = compute(device, &to.plain, padded.len(), |pass| step.run(pass, &params, [count, 1]))?;
    Ok(found.chunks(stride).flat_map(|row| &row[..length]).copied().collect())
}

/// `activation(gate) * up`, as one row.
pub fn activate(device: &GpuDevice, activation: Activation, gate: &[f32], up: &[f32]) -> Result<Vec<f32>> {
    let (length, to) = (gate.len() as u32, Rows::new(device, 1, gate.len())?);
    let (gate, up) = (upload(device, gate)?, upload(device, up)?);
    let step = Step::new(device, Kernel::Activate, &[&gate, &up, &to.plain, &to.quants, &to.scales])?;
    let blocks = length.div_ceil(32);
    let params = [blocks, 1, length, length, length, activation_mode(activation), length, 0];
    let groups = [blocks.div_ceil(64) as usize, 1];
    compute(device, &to.plain, length as usize, |pass| step.run(pass, &params, groups))
}

/// Products of a matrix with up to eight `rows`, in tiles of each size.
pub fn products(device: &GpuDevice, matrix: &Panels, rows: &[f32], tiles: &[usize]) -> Result<Vec<Vec<f32>>> {
    let (inputs, count) = (matrix.inputs(), rows.len() / matrix.inputs());
    let x = Rows::new(device, TILES[TILES.len() - 1], inputs)?;
    let stride = matrix.panels() * 16;
    let out = device.buffer(4 * count * stride)?;
    device.write(&x.plain, rows.iter().map(|number| number.to_bits()));
    let quantise = Quantise::new(device, &x)?;
    let matrices = [Matrix::upload(device, matrix)?];
    let product = Product::in_tiles(device, tiles, &matrices, &x, Out::Store(&out))?;
    let of_tile = |&tile: &usize| {
        let found = compute(device, &out, count * stride, |pass| {
            quantise.run(pass, count);
            product.run_in_tiles(pass, 0..count, tile, 0);
        })?;
        Ok(found.chunks(stride).flat_map(|row| &row[..matrix.rows()]).copied().collect())
    };
    tiles.iter().map(of_tile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_not_a_number_is_an_error_wherever_it_is() {
        for at in 0..3 {
            let mut ours = [1.0, 2.0, 4.0];
            ours[at] = f32::NAN;
            let found = Comparison::of("product", &ours, &[1.0, 2.0, 4.0]);
            assert!(found.error.is_nan() && found.different == 1, "{found:?}");
        }
        let found = Comparison::of("product", &[1.0, 2.5, 4.0], &[1.0, 2.0, 4.0]);
        assert_eq!((found.error, found.first), (0.125, Some((1, 2.5, 2.0))));
    }
}
