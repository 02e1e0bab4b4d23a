//! Kernels of recurrent layers: steps of state matrices, and convolutions.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::super::isa::Isa;
use super::super::simd::LANES;
use super::super::step::{BlockUpdate, COLUMNS, ConvolutionJob, MAX_TAPS, MatrixStep, Read};
use super::{bits, numbers, sets};

const KEYS: usize = 48;

/// A matrix block, records to apply, and the key and query that read it.
struct Case {
    matrix: Vec<f32>,
    records: Vec<(f32, Vec<f32>, Vec<f32>)>,
    key: Vec<f32>,
    query: Vec<f32>,
}

impl Case {
    fn new(records: usize) -> Self {
        let random = &mut StdRng::seed_from_u64(records as u64);
        let mut record =
            || (0.9 + 0.1 * numbers(random, 1)[0], numbers(random, KEYS), numbers(random, COLUMNS));
        let records = (0..records).map(|_| record()).collect();
        let (matrix, key) = (numbers(random, KEYS * COLUMNS), numbers(random, KEYS));
        Self { matrix, records, key, query: numbers(random, KEYS) }
    }

    /// Returns the matrix after the records, starting from zeros if `begins`, and what was read.
    fn run(&self, isa: Isa, begins: bool) -> (Vec<f32>, Read) {
        let (mut to, mut read) = (vec![f32::NAN; KEYS * COLUMNS], Read::ZERO);
        let update = |(decay, key, correction): &(f32, Vec<f32>, Vec<f32>)| BlockUpdate {
            decay: *decay,
            key: key.as_ptr(),
            correction: correction.as_ptr(),
        };
        let step = MatrixStep {
            keys: KEYS,
            from: if begins { std::ptr::null() } else { self.matrix.as_ptr() },
            to: to.as_mut_ptr(),
            updates: &self.records.iter().map(update).collect::<Vec<_>>(),
            read: Some((self.key.as_ptr(), self.query.as_ptr(), &raw mut read)),
        };
        // SAFETY: the set is available; all lengths match.
        unsafe { (isa.kernels().step)(&step) };
        (to, read)
    }
}

#[test]
fn a_step_matches_f64_and_is_bit_equal_for_all_instruction_sets() {
    for (records, begins) in [0, 1, 2, 7, 32].into_iter().flat_map(|count| [(count, false), (count, true)]) {
        let case = Case::new(records);
        let (left, read) = case.run(Isa::Scalar, begins);
        let mut matrix: Vec<f64> =
            case.matrix.iter().map(|&x| if begins { 0.0 } else { f64::from(x) }).collect();
        for (decay, key, correction) in &case.records {
            for (at, number) in matrix.iter_mut().enumerate() {
                *number = *number * f64::from(*decay)
                    + f64::from(key[at / COLUMNS]) * f64::from(correction[at % COLUMNS]);
            }
        }
        let near = |found: f32, expected: f64| (f64::from(found) - expected).abs() < 2e-5;
        assert!(
            left.iter().zip(&matrix).all(|(&found, &expected)| near(found, expected)),
            "{records} records"
        );
        for column in 0..COLUMNS {
            let sum = |by: &[f32]| -> f64 {
                (0..KEYS).map(|row| matrix[row * COLUMNS + column] * f64::from(by[row])).sum()
            };
            assert!(
                near(read.by_key[column], sum(&case.key)) && near(read.by_query[column], sum(&case.query))
            );
        }
        let product: f64 =
            case.key.iter().zip(&case.query).map(|(&key, &query)| f64::from(key) * f64::from(query)).sum();
        assert!(near(read.product, product));
        for isa in sets() {
            let (found, other) = case.run(isa, begins);
            assert_eq!(bits(&found), bits(&left), "{isa}, {records} records");
            assert_eq!(bits(&other.by_key), bits(&read.by_key), "{isa}, {records} records");
            assert_eq!(bits(&other.by_query), bits(&read.by_query), "{isa}, {records} records");
            assert_eq!(other.product.to_bits(), read.product.to_bits(), "{isa}, {records} records");
        }
    }
}

#[test]
fn records_give_the_same_matrix_applied_together_or_one_by_one_in_place() {
    let case = Case::new(9);
    let (expected, _) = case.run(Isa::best(), false);
    let mut matrix = case.matrix.clone();
    for (decay, key, correction) in &case.records {
        let updates = [BlockUpdate { decay: *decay, key: key.as_ptr(), correction: correction.as_ptr() }];
        let (from, to) = (matrix.as_ptr(), matrix.as_mut_ptr());
        // SAFETY: the best set is available; all lengths match.
        unsafe {
            (Isa::best().kernels().step)(&MatrixStep { keys: KEYS, from, to, updates: &updates, read: None })
        };
    }
    assert_eq!(bits(&matrix), bits(&expected));
}

#[test]
fn a_convolution_matches_f64_with_zeros_before_the_text() {
    let random = &mut StdRng::seed_from_u64(3);
    for (taps, missing, activated, biased) in [
        (2, 0, false, false),
        (3, 1, false, true),
        (4, 3, true, false),
        (4, 0, true, true),
        (MAX_TAPS, 5, true, true),
    ] {
        let (channels, stride) = (2 * LANES, 3 * LANES);
        let (kernel, rows) = (numbers(random, taps * stride), numbers(random, taps * channels));
        let bias = numbers(random, channels);
        let mut seen = [std::ptr::null(); MAX_TAPS];
        (missing..taps).for_each(|tap| seen[tap] = rows[tap * channels..].as_ptr());
        let convolved = |isa: Isa| {
            let mut out = vec![f32::NAN; channels];
            let job = ConvolutionJob {
                rows: seen,
                taps,
                kernel: kernel.as_ptr(),
                bias: if biased { bias.as_ptr() } else { std::ptr::null() },
                stride,
                channels,
                activated,
                out: out.as_mut_ptr(),
            };
            // SAFETY: the set is available; all lengths match.
            unsafe { (isa.kernels().convolve)(&job) };
            out
        };
        let found = convolved(Isa::Scalar);
        for (channel, &found) in found.iter().enumerate() {
            let product = |tap: usize| {
                f64::from(kernel[tap * stride + channel]) * f64::from(rows[tap * channels + channel])
            };
            let mut expected: f64 = (missing..taps).map(product).sum();
            expected += if biased { f64::from(bias[channel]) } else { 0.0 };
            if activated {
                expected /= 1.0 + (-expected).exp();
            }
            assert!((f64::from(found) - expected).abs() < 1e-6, "{taps} taps: {found} is not {expected}");
        }
        for isa in sets() {
            assert_eq!(bits(&convolved(isa)), bits(&found), "{isa}, {taps} taps");
        }
    }
}
