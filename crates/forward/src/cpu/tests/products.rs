//! Products of packed weights with rows of activations.

use foretoken_model::format::set_halves;
use half::f16;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::super::activations::{Activations, BLOCK};
use super::super::isa::Isa;
use super::super::panels::{Format, Panels};
use super::super::product::{Product, Rows, blocks_per_run};
use super::super::simd::LANES;
use super::{bits, dequantised, file, numbers, sets};

/// A matrix and rows to multiply it with.
#[derive(Debug)]
struct Job {
    panels: Panels,
    /// `[rows, inputs]`, dequantised.
    weights: Vec<f32>,
    /// `[rows of activations, inputs]`
    x: Vec<f32>,
}

impl Job {
    fn new(format: Format, inputs: usize, bytes: &[u8], x: Vec<f32>) -> Self {
        let rows = bytes.len() / (inputs / format.inputs() * format.stored());
        let weights = dequantised(format, rows, inputs, bytes);
        Self { panels: Panels::pack(format, rows, inputs, bytes).unwrap(), weights, x }
    }

    fn random(seed: u64, format: Format, rows: usize, inputs: usize, count: usize) -> Self {
        let random = &mut StdRng::seed_from_u64(seed);
        let bytes = file(random, format, rows, inputs);
        Self::new(format, inputs, &bytes, numbers(random, count * inputs))
    }

    fn inputs(&self) -> usize {
        self.panels.inputs()
    }

    fn stride(&self) -> usize {
        self.panels.panels() * LANES
    }

    fn quantised_rows(&self, isa: Isa, x: &[f32]) -> Activations {
        let (kernels, blocks) = (isa.kernels(), self.inputs() / BLOCK);
        let mut activations = Activations::default();
        activations.resize(x.len() / self.inputs(), self.inputs(), kernels.tile);
        for (row, x) in x.chunks(self.inputs()).enumerate() {
            // SAFETY: the set is available, and there is room for these rows and blocks.
            unsafe { (kernels.quantise)(&activations, activations.tile_row(row), 0, blocks, x.as_ptr()) };
        }
        activations
    }

    /// Multiplies with rows `x`, `[rows of x, stride]`, and adds to `onto` if given.
    fn product(&self, isa: Isa, x: &[f32], onto: Option<&[f32]>) -> Vec<f32> {
        let (kernels, panels, format) = (isa.kernels(), &self.panels, self.panels.format());
        let count = x.len() / self.inputs();
        let rounded = if format.quantised() { self.quantised_rows(isa, x) } else { Activations::default() };
        let mut out = onto.map_or_else(|| vec![f32::NAN; count * self.stride()], <[f32]>::to_vec);
        for first in (0..count).step_by(kernels.tile) {
            let rows = kernels.tile.min(count - first);
            let x = if format.quantised() {
                Rows::Quantised(rounded.tile(first, rows))
            } else {
                Rows::Plain { rows, x: x[first * self.inputs()..].as_ptr(), stride: self.inputs() }
            };
            for panel in 0..panels.panels() {
                let product = Product {
                    panel: panels.panel(panel).as_ptr(),
                    blocks: self.inputs() / format.inputs(),
                    next: panels.panel(0).as_ptr(),
                    x,
                    out: out[first * self.stride() + panel * LANES..].as_mut_ptr(),
                    stride: self.stride(),
                    factor: panels.factor(),
                    add: onto.is_some(),
                };
                // SAFETY: the set is available; tile and result have `rows` rows.
                unsafe { (kernels.product)(format, rows)(&product) };
            }
        }
        out
    }

    /// Activations after quantisation.
    fn effective(&self) -> Vec<f32> {
        if !self.panels.format().quantised() {
            return self.x.clone();
        }
        let mut out = vec![0.0; self.x.len()];
        for (row, out) in out.chunks_mut(self.inputs()).enumerate() {
            // A single row is a tile by itself.
            let rounded = self.quantised_rows(Isa::Scalar, &self.x[row * self.inputs()..][..self.inputs()]);
            for (block, out) in out.chunks_mut(BLOCK).enumerate() {
                let tile = rounded.tile(0, 1);
                for (input, out) in out.iter_mut().enumerate() {
                    // SAFETY: the tile has one row and all its blocks.
                    let (quant, scale) =
                        unsafe { (*tile.quants.add(block * BLOCK + input), *tile.scales.add(block)) };
                    *out = f32::from(quant) * scale;
                }
            }
        }
        out
    }

    /// Compares the product with f64 arithmetic over the same weights and quantised activations.
    fn check(&self) {
        let found = self.product(Isa::Scalar, &self.x, None);
        let format = self.panels.format();
        for (x, found) in self.effective().chunks(self.inputs()).zip(found.chunks(self.stride())) {
            for (row, weights) in self.weights.chunks(self.inputs()).enumerate() {
                let expected: f64 = weights.iter().zip(x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
                let largest = weights.iter().fold(0f32, |largest, weight| largest.max(weight.abs()));
                let size: f64 = x.iter().map(|x| f64::from(x.abs()) * f64::from(largest)).sum();
                // Each block rounds a few times; unquantised numbers round once each.
                let roundings = (self.inputs() / format.inputs().min(BLOCK) + 8) as f64;
                let error = (f64::from(found[row]) - expected).abs();
                let bound = roundings * f64::from(f32::EPSILON) * size + f64::from(f32::MIN_POSITIVE);
                assert!(error <= bound, "{format:?}, row {row}: {} is not {expected}", found[row]);
            }
            assert!(found[self.panels.rows()..].iter().all(|&padding| padding == 0.0));
        }
    }
}

/// Numbers of inputs that are few, many, and no multiple of what a kernel takes at once.
fn inputs(format: Format, blocks: usize) -> usize {
    if format.inputs() == 1 { 13 * blocks } else { blocks * format.inputs() }
}

fn formats() -> impl Strategy<Value = Format> {
    prop::sample::select(&Format::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn products_match_those_of_the_dequantised_weights(
        format in formats(), rows in 1usize..40, blocks in 1usize..12, count in 1usize..5, seed: u64,
    ) {
        Job::random(seed, format, rows, inputs(format, blocks), count).check();
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits(
        format in formats(), rows in 1usize..40, blocks in 1usize..12, count in 1usize..18, seed: u64,
    ) {
        let job = Job::random(seed, format, rows, inputs(format, blocks), count);
        let expected = job.product(Isa::Scalar, &job.x, None);
        for isa in sets() {
            prop_assert_eq!(bits(&job.product(isa, &job.x, None)), bits(&expected), "{}", isa);
        }
    }

    #[test]
    fn a_rows_product_does_not_depend_on_other_rows(
        format in formats(), rows in 1usize..40, blocks in 1usize..12, count in 2usize..18, seed: u64,
    ) {
        let job = Job::random(seed, format, rows, inputs(format, blocks), count);
        for isa in sets() {
            let together = job.product(isa, &job.x, None);
            for (x, together) in job.x.chunks(job.inputs()).zip(together.chunks(job.stride())) {
                prop_assert_eq!(bits(&job.product(isa, x, None)), bits(together), "{}", isa);
            }
        }
    }

    #[test]
    fn the_addend_is_added_once_at_the_end(
        format in formats(), rows in 1usize..40, blocks in 1usize..12, count in 1usize..9, seed: u64,
    ) {
        let job = Job::random(seed, format, rows, inputs(format, blocks), count);
        for isa in sets() {
            let alone = job.product(isa, &job.x, None);
            let onto = numbers(&mut StdRng::seed_from_u64(!seed), alone.len());
            let expected: Vec<f32> = onto.iter().zip(&alone).map(|(onto, alone)| onto + alone).collect();
            prop_assert_eq!(bits(&job.product(isa, &job.x, Some(&onto))), bits(&expected), "{}", isa);
        }
    }
}

/// Extracts the inputs `from` to `to` of a matrix as stored in a file.
fn columns(format: Format, bytes: &[u8], inputs: usize, from: usize, to: usize) -> Vec<u8> {
    let at = |input: usize| input / format.inputs() * format.stored();
    bytes.chunks(at(inputs)).flat_map(|row| &row[at(from)..at(to)]).copied().collect()
}

/// GPU engines rely on the same order.
#[test]
fn a_product_is_the_sum_of_its_runs_in_order() {
    let random = &mut StdRng::seed_from_u64(2);
    for format in Format::ALL {
        let run = blocks_per_run(format) * format.inputs();
        // The last run is short unless a run is one block.
        let inputs = 4 * run + format.inputs();
        let bytes = file(random, format, 16, inputs);
        let x = numbers(random, inputs);
        let mut expected = [0f32; 16];
        for from in (0..inputs).step_by(run) {
            let to = inputs.min(from + run);
            let part = columns(format, &bytes, inputs, from, to);
            let job = Job::new(format, to - from, &part, x[from..to].to_vec());
            let sums = job.product(Isa::Scalar, &job.x, None);
            expected.iter_mut().zip(sums).for_each(|(expected, sum)| *expected += sum);
        }
        let job = Job::new(format, inputs, &bytes, x);
        for isa in sets() {
            assert_eq!(bits(&job.product(isa, &job.x, None)), bits(&expected), "{isa}, {format:?}");
        }
    }
}

/// Runs all kernels on the same job.
fn check_everywhere(job: &Job) {
    job.check();
    let expected = job.product(Isa::Scalar, &job.x, None);
    for isa in sets() {
        assert_eq!(
            bits(&job.product(isa, &job.x, None)),
            bits(&expected),
            "{isa}, {:?}",
            job.panels.format()
        );
    }
}

/// Quantised formats.
fn quantised() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| format.quantised())
}

#[test]
fn blocks_of_zeros_give_zeros() {
    for format in Format::ALL {
        let inputs = 2 * format.inputs();
        let bytes = vec![0; 16 * 2 * format.stored()];
        let job = Job::new(format, inputs, &bytes, vec![1.0; 3 * inputs]);
        check_everywhere(&job);
        let found = job.product(Isa::Scalar, &job.x, None);
        assert!(found.iter().all(|&sum| sum == 0.0), "{format:?}");
    }
}

#[test]
fn the_largest_and_the_smallest_scales_are_exact_enough() {
    let extremes = [f16::MAX, f16::MIN, f16::MIN_POSITIVE_SUBNORMAL, f16::from_bits(0x83ff), f16::NEG_ZERO];
    let random = &mut StdRng::seed_from_u64(1);
    for (format, scale) in quantised().flat_map(|format| extremes.map(|scale| (format, scale))) {
        let inputs = 2 * format.inputs();
        let mut bytes = file(random, format, 16, inputs);
        for block in bytes.chunks_exact_mut(format.stored()) {
            set_halves(format, block, [scale; 2]);
        }
        check_everywhere(&Job::new(format, inputs, &bytes, numbers(random, 5 * inputs)));
    }
}

#[test]
fn extreme_quants_do_not_overflow() {
    for (format, byte) in quantised().flat_map(|format| [0x00, 0x7f, 0x80, 0xff].map(|byte| (format, byte))) {
        let inputs = 2 * format.inputs();
        let mut bytes = vec![byte; 16 * 2 * format.stored()];
        for block in bytes.chunks_exact_mut(format.stored()) {
            set_halves(format, block, [f16::ONE, f16::from_f32(-2.0)]);
        }
        for x in [1.0, -1.0] {
            check_everywhere(&Job::new(format, inputs, &bytes, vec![x; 8 * inputs]));
        }
    }
}

#[test]
fn activations_of_any_size_keep_their_precision() {
    let random = &mut StdRng::seed_from_u64(1);
    for (format, size) in
        Format::ALL.into_iter().flat_map(|format| [1e30, 1e-30, 0.0].map(|size| (format, size)))
    {
        let inputs = 2 * format.inputs();
        let bytes = file(random, format, 16, inputs);
        let x = numbers(random, 8 * inputs).into_iter().map(|x| x * size).collect();
        check_everywhere(&Job::new(format, inputs, &bytes, x));
    }
}

#[test]
fn activations_close_to_zero_are_quantised_to_zero() {
    let random = &mut StdRng::seed_from_u64(1);
    for format in quantised() {
        let inputs = format.inputs();
        let bytes = file(random, format, 16, inputs);
        let job = Job::new(format, inputs, &bytes, vec![1e-38; 3 * inputs]);
        check_everywhere(&job);
        assert!(job.product(Isa::Scalar, &job.x, None).iter().all(|&sum| sum == 0.0), "{format:?}");
    }
}

#[test]
fn quantised_activations_are_within_half_a_step() {
    let random = &mut StdRng::seed_from_u64(1);
    let bytes = file(random, Format::Q8_0, 1, 320);
    for size in [1.0, 1e30, 1e-30, 127.0] {
        let x = numbers(random, 9 * 320).into_iter().map(|x| x * size).collect();
        let job = Job::new(Format::Q8_0, 320, &bytes, x);
        for (block, rounded) in job.x.chunks(BLOCK).zip(job.effective().chunks(BLOCK)) {
            let largest = block.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            for (x, rounded) in block.iter().zip(rounded) {
                assert!((x - rounded).abs() <= largest / 127.0 * 0.50001, "{x} became {rounded}");
            }
        }
    }
}

#[test]
fn nan_and_infinity_affect_their_own_row_only() {
    for format in quantised() {
        let job = Job::random(1, format, 16, format.inputs(), 3);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = job.x.clone();
            let bad_row = &mut x[job.inputs()..2 * job.inputs()];
            bad_row[0] = bad;
            bad_row[31] = bad;
            for isa in sets() {
                let (found, expected) = (job.product(isa, &x, None), job.product(isa, &job.x, None));
                for row in [0, 2] {
                    let row = row * job.stride()..(row + 1) * job.stride();
                    assert_eq!(bits(&found[row.clone()]), bits(&expected[row]), "{isa}, {format:?}");
                }
            }
        }
    }
}
