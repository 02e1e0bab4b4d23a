//! Norms, activations, exponentials and sums.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::exp;
use super::super::simd::LANES;
use super::{bits, numbers, sets};

/// Error in units in the last place of `expected`.
fn units(found: f32, expected: f64) -> f64 {
    let unit = f64::from(f32::EPSILON) * 2f64.powi(expected.abs().log2().floor() as i32);
    (f64::from(found) - expected).abs() / unit
}

#[test]
fn the_exponential_is_accurate_to_two_units_in_the_last_place() {
    let mut worst: f64 = 0.0;
    for step in -69_000..=69_000 {
        let x = step as f32 / 1000.0;
        worst = worst.max(units(exp(x), f64::from(x).exp()));
    }
    assert!(worst <= 2.0, "{worst} units");
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(bits(&[exp(-0.0)]), bits(&[1.0]));
}

#[test]
fn the_exponential_beyond_its_bounds_is_that_of_the_bound() {
    for x in [-70.0, -1000.0, f32::MIN, f32::NEG_INFINITY] {
        assert!((1e-30..2e-30).contains(&exp(x)), "{x}: {}", exp(x));
    }
    for x in [70.0, 1000.0, f32::MAX, f32::INFINITY] {
        assert!((9e29..1e30).contains(&exp(x)), "{x}: {}", exp(x));
    }
}

#[test]
fn softplus_is_accurate_to_four_units_in_the_last_place() {
    let mut worst: f64 = 0.0;
    for step in -30_000..=30_000 {
        let x = step as f32 / 1000.0;
        for isa in sets() {
            // SAFETY: the set is available.
            let [found, plain] = [isa, super::Isa::Scalar].map(|isa| unsafe { (isa.kernels().softplus)(x) });
            assert_eq!(bits(&[found]), bits(&[plain]), "{isa}, {x}");
            worst = worst.max(units(found, f64::from(x).exp().ln_1p()));
        }
    }
    assert!(worst <= 4.0, "{worst} units");
}

#[test]
fn the_rms_norm_matches_f64() {
    let random = &mut StdRng::seed_from_u64(1);
    for (length, size) in [1, 15, 16, 17, 100, 256, 257, 576]
        .into_iter()
        .flat_map(|length| [1.0, 1e-4, 1e4].map(|size| (length, size)))
    {
        let x: Vec<f32> = numbers(random, length).iter().map(|x| x * size).collect();
        let weight = numbers(random, length);
        let norm = |isa: super::Isa| {
            let mut out = vec![f32::NAN; length];
            // SAFETY: the set is available, and all three have the same length.
            unsafe { (isa.kernels().rms_norm)(x.as_ptr(), weight.as_ptr(), out.as_mut_ptr(), length, 1e-5) };
            out
        };
        let found = norm(super::Isa::Scalar);
        let squares: f64 = x.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let scale = 1.0 / (squares / length as f64 + 1e-5).sqrt();
        for ((&x, &weight), &found) in x.iter().zip(&weight).zip(&found) {
            let expected = f64::from(x) * scale * f64::from(weight);
            assert!(
                (f64::from(found) - expected).abs() <= 1e-6 * expected.abs(),
                "{found} is not {expected}"
            );
        }
        for isa in sets() {
            assert_eq!(bits(&norm(isa)), bits(&found), "{isa}, {length} numbers");
        }
    }
}

/// An activation of gates in f64.
type Activation = fn(f64) -> f64;

#[test]
fn gated_activations_match_f64() {
    let random = &mut StdRng::seed_from_u64(1);
    let length = 40 * LANES;
    let silu: Activation = |x| x / (1.0 + (-x).exp());
    let gelu: Activation =
        |x| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    let clamped: Activation = |x| x.min(7.0) / (1.0 + (-1.702 * x.min(7.0)).exp());
    for (name, activation, largest) in [
        ("silu", silu, 100.0),
        ("gelu", gelu, 100.0),
        ("gelu", gelu, 3.0),
        ("clamped", clamped, 40.0),
        ("clamped", clamped, 8.0),
    ] {
        let gate: Vec<f32> = (0..length).map(|_| random.random_range(-largest..largest)).collect();
        // Some are beyond the bounds of the clamped activation.
        let up: Vec<f32> = numbers(random, length).iter().map(|up| up * 9.0).collect();
        let gated = |isa: super::Isa| {
            let mut out = gate.clone();
            let kernels = isa.kernels();
            let kernel = match name {
                "silu" => kernels.silu_times,
                "gelu" => kernels.gelu_times,
                _ => kernels.clamped_times,
            };
            // SAFETY: the set is available, and both have the same length.
            unsafe { kernel(out.as_mut_ptr(), up.as_ptr(), length) };
            out
        };
        let found = gated(super::Isa::Scalar);
        for ((&gate, &up), &found) in gate.iter().zip(&up).zip(&found) {
            let times = if name == "clamped" { up.clamp(-7.0, 7.0) + 1.0 } else { up };
            let expected = activation(f64::from(gate)) * f64::from(times);
            // The reference loses digits where 1 + tanh(z) is close to zero.
            let near = 2e-6 * expected.abs() + 1e-14 * f64::from(gate * up).abs() + 1e-30;
            assert!((f64::from(found) - expected).abs() <= near, "{name}({gate}): {found} is not {expected}");
        }
        for isa in sets() {
            assert_eq!(bits(&gated(isa)), bits(&found), "{name} with {isa}");
        }
    }
}

#[test]
fn the_sum_of_a_softmax_matches_f64() {
    let random = &mut StdRng::seed_from_u64(1);
    for length in [1, 2, 7, 64].map(|vectors| vectors * LANES) {
        let mut x: Vec<f32> = (0..length).map(|_| random.random_range(-20.0..20.0)).collect();
        // Padding after the last logit.
        x[length - 3..].fill(f32::NEG_INFINITY);
        let sum = |isa: super::Isa| {
            // SAFETY: the set is available.
            unsafe { (isa.kernels().largest_and_sum)(x.as_ptr(), length) }
        };
        let (largest, found) = sum(super::Isa::Scalar);
        assert_eq!(largest, x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let expected: f64 = x.iter().map(|&x| (f64::from(x) - f64::from(largest)).exp()).sum();
        assert!((f64::from(found) - expected).abs() <= 1e-6 * expected, "{found} is not {expected}");
        for isa in sets() {
            let (other, sum) = sum(isa);
            assert_eq!(bits(&[other, sum]), bits(&[largest, found]), "{isa}, {length} numbers");
        }
    }
}

#[test]
fn the_sum_of_scaled_exponentials_matches_f64() {
    let random = &mut StdRng::seed_from_u64(3);
    for (length, scale) in [(LANES, 1.0), (40 * LANES, 1.0 / 0.7), (5000 * LANES, 0.5)] {
        let x: Vec<f32> = (0..length).map(|_| random.random_range(-30.0..20.0)).collect();
        let sum = |isa: super::Isa| {
            // SAFETY: the set is available, and the numbers are whole vectors.
            unsafe { (isa.kernels().sum_exp)(x.as_ptr(), length, 20.0, scale) }
        };
        let expected: f64 = x.iter().map(|&x| ((f64::from(x) - 20.0) * f64::from(scale)).exp()).sum();
        let found = sum(super::Isa::Scalar);
        assert!((f64::from(found) / expected - 1.0).abs() < 1e-5, "{found} is not {expected}");
        for isa in sets() {
            assert_eq!(sum(isa).to_bits(), found.to_bits(), "{isa}, {length} numbers");
        }
    }
    let long: Vec<f32> = (0..9001).map(|_| random.random_range(-30.0..20.0)).collect();
    let expected: f64 = long.iter().map(|&x| ((f64::from(x) - 20.0) / 0.7).exp()).sum();
    let found = super::super::sum_exp(&long, 20.0, 1.0 / 0.7);
    assert!((f64::from(found) / expected - 1.0).abs() < 1e-5, "{found} is not {expected}");
    let odd = [1.0, f32::NAN, 1.0, f32::NEG_INFINITY];
    assert!((super::super::sum_exp(&odd, 1.0, 1.0) - 2.0).abs() < 1e-6);
}

#[test]
fn weights_match_the_exponential_function_for_every_instruction_set() {
    let random = &mut StdRng::seed_from_u64(5);
    let mut x: Vec<f32> = (0..5003).map(|_| random.random_range(-800.0..20.0)).collect();
    x.extend((0..5003).map(|_| random.random_range(10.0..20.0)));
    x.extend([f32::NAN, f32::NEG_INFINITY, 20.0, -1e30]);
    for scale in [1.0, 1.0 / 0.7, 0.1] {
        let weights = |isa: super::Isa| {
            let mut out = vec![f64::NAN; x.len()];
            // SAFETY: the set is available.
            unsafe { (isa.kernels().exponentials)(&x, 20.0, scale, &mut out) };
            out
        };
        let found = weights(super::Isa::Scalar);
        for (&x, &found) in x.iter().zip(&found) {
            let below = (f64::from(x) - 20.0) * scale;
            let expected = if below >= -708.0 { below.exp() } else { 0.0 };
            assert!((found - expected).abs() <= 4e-16 * expected, "{x}: {found} is not {expected}");
        }
        let bits = |weights: Vec<f64>| weights.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let found = bits(found);
        for isa in sets() {
            assert!(bits(weights(isa)) == found, "{isa}, scale {scale}");
        }
    }
}
