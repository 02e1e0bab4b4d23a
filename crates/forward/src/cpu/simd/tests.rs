//! Every operation of every available instruction set gives the bits of plain Rust.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use std::collections::BTreeMap;

use half::f16;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::scalar::Scalar;
use super::{LANES, Products, Simd, Vector};
use crate::cpu::isa::Isa;

/// Operands of the operations.
struct Case {
    /// Any finite numbers.
    floats: [[f32; LANES]; 3],
    /// Numbers within the range of i32.
    small: [f32; LANES],
    halves: [u16; LANES],
    ints: [[i32; LANES]; 2],
    bytes: [[u8; 64]; 8],
    /// Any bytes but -128.
    x: [i8; 32],
    words: [i16; 2],
    factors: [i8; LANES],
}

impl Case {
    fn new(random: &mut StdRng) -> Self {
        Self {
            floats: std::array::from_fn(|_| std::array::from_fn(|_| any_float(random))),
            small: std::array::from_fn(|_| match random.random_range(0..3) {
                0 => random.random_range(-200..200) as f32 / 2.0,
                1 => random.random_range(-2e9..2e9),
                _ => random.random_range(-2.0..2.0),
            }),
            halves: std::array::from_fn(|_| finite_half(random)),
            ints: std::array::from_fn(|_| std::array::from_fn(|_| random.random())),
            bytes: std::array::from_fn(|_| match random.random_range(0..3) {
                0 => [255; 64],
                1 => [0; 64],
                _ => std::array::from_fn(|_| random.random()),
            }),
            x: match random.random_range(0..4) {
                0 => [127; 32],
                1 => [-127; 32],
                _ => std::array::from_fn(|_| random.random_range(-127..=127)),
            },
            words: std::array::from_fn(|_| *[-32767, 32767, 0, random.random()].choose(random).unwrap()),
            factors: std::array::from_fn(|_| *[-128, 127, 0, random.random()].choose(random).unwrap()),
        }
    }
}

/// Zeros of both signs, subnormal, large and common numbers, and ties of the rounding to halves.
fn any_float(random: &mut StdRng) -> f32 {
    let sign = if random.random() { -1.0 } else { 1.0 };
    sign * match random.random_range(0..6) {
        0 => 0.0,
        1 => f32::from_bits(random.random_range(0..0x0080_0000)),
        2 => f32::MAX * random.random_range(0.1..=1.0),
        3 => (1.0 + random.random_range(0..4096) as f32 / 2048.0) * 2f32.powi(random.random_range(-26..16)),
        4 => f32::from_bits(random.random_range(0..0x7f80_0000)),
        _ => random.random_range(0.0..2.0),
    }
}

fn finite_half(random: &mut StdRng) -> u16 {
    let bits: u16 = random.random();
    if f16::from_bits(bits).is_finite() { bits } else { bits & 0x83ff }
}

/// Bits of all lanes by operation.
#[derive(Debug, Default, PartialEq)]
struct Outcome(BTreeMap<&'static str, [u32; LANES]>);

impl Outcome {
    /// Records the lanes of `vector`, which begin at `lane`.
    fn note<V: Copy>(&mut self, name: &'static str, lane: usize, vector: V) {
        let lanes = &mut self.0.entry(name).or_default()[lane..][..size_of::<V>() / 4];
        // SAFETY: vectors are numbers and nothing else, and there is room for this one.
        unsafe { lanes.as_mut_ptr().cast::<V>().write_unaligned(vector) };
    }

    /// Records lanes as `note` does, with all NaNs made equal.
    fn note_floats<V: Copy>(&mut self, name: &'static str, lane: usize, vector: V) {
        self.note(name, lane, vector);
        for bits in self.0.get_mut(name).unwrap() {
            if f32::from_bits(*bits).is_nan() {
                *bits = f32::NAN.to_bits();
            }
        }
    }
}

/// Runs the lane-wise operations.
///
/// # Safety
/// [`Vector`]'s.
#[inline(always)]
unsafe fn try_vector<V: Vector>(case: &Case, at: usize, out: &mut Outcome) {
    unsafe {
        let [a, b, c] = case.floats.each_ref().map(|floats| V::load(floats.as_ptr().add(at)));
        out.note("load", at, a);
        out.note("splat", at, V::splat(case.floats[0][0]));
        out.note_floats("add", at, V::add(a, b));
        out.note_floats("sub", at, V::sub(a, b));
        out.note_floats("mul", at, V::mul(a, b));
        out.note_floats("div", at, V::div(a, b));
        out.note_floats("mul_add", at, V::mul_add(a, b, c));
        out.note("max", at, V::max(a, b));
        out.note("max of the same size", at, V::max(a, V::sub(V::splat(0.0), a)));
        out.note("min", at, V::min(a, b));
        out.note("min of the same size", at, V::min(a, V::sub(V::splat(0.0), a)));
        out.note("abs", at, V::abs(a));
        out.note("load_f16", at, V::load_f16(case.halves.as_ptr().add(at)));
        let mut halves = [0u16; LANES];
        V::store_f16(halves.as_mut_ptr().add(at), a);
        out.note("store_f16", at, V::load_f16(halves.as_ptr().add(at)));

        let [a, b] = case.ints.map(|ints| V::to_int(V::load(ints.map(|int| int as f32).as_ptr().add(at))));
        out.note("splat_int", at, V::splat_int(case.ints[0][0]));
        out.note("add_int", at, V::add_int(a, b));
        out.note("shl_int by 3", at, V::shl_int(a, 3));
        out.note("shl_int by 23", at, V::shl_int(a, 23));
        out.note_floats("to_float", at, V::to_float(a));
        out.note("to_int", at, V::to_int(V::load(case.small.as_ptr().add(at))));
        out.note("as_float", at, V::as_float(a));
        let mut bytes = [0i8; LANES];
        V::store_i8(bytes.as_mut_ptr().add(at), a);
        out.note("store_i8", at, V::to_int(V::load(bytes.map(f32::from).as_ptr().add(at))));
        let mut words = [0i16; LANES];
        V::store_i16(words.as_mut_ptr().add(at), a);
        out.note("store_i16", at, V::to_int(V::load(words.map(f32::from).as_ptr().add(at))));
    }
}

/// Runs the operations of products.
///
/// # Safety
/// [`Vector`]'s.
#[inline(always)]
unsafe fn try_products<V: Products>(case: &Case, at: usize, out: &mut Outcome) {
    unsafe {
        try_vector::<V>(case, at, out);
        out.note_floats("load_bf16", at, V::load_bf16(case.halves.as_ptr().add(at)));
        let signed = V::load_i8(case.factors.as_ptr().add(at));
        out.note("load_i8", at, signed);
        let unsigned = V::load_u8(case.bytes[7].as_ptr().add(at));
        out.note("load_u8", at, unsigned);
        out.note("shr_int", at, V::shr_int(signed, 4));
        out.note("and_int", at, V::and_int(signed, 48));
        out.note("or_int", at, V::or_int(signed, unsigned));
        out.note("mul_int", at, V::mul_int(V::shl_int(signed, 20), unsigned));

        let bytes = case.bytes.each_ref().map(|bytes| V::load_bytes(bytes.as_ptr().add(4 * at)));
        out.note("load_bytes", at, bytes[0]);
        out.note("shr_mask by 0", at, V::shr_mask(bytes[0], 0, 15));
        out.note("shr_mask by 3", at, V::shr_mask(bytes[0], 3, 16));
        out.note("shr_mask by 4", at, V::shr_mask(bytes[0], 4, 15));
        out.note("shl_mask by 1", at, V::shl_mask(bytes[0], 1, 16));
        out.note("shl_mask by 4", at, V::shl_mask(bytes[0], 4, 48));
        out.note("or", at, V::or(bytes[0], bytes[1]));
        let table = case.bytes[1].first_chunk().unwrap();
        out.note("lookup", at, V::lookup(table, V::shr_mask(bytes[0], 4, 15)));

        let x = case.x.as_ptr();
        let onto = V::load_i8(case.factors.as_ptr().add(at));
        for (name, mask, count) in [("dot of four bits", 15, 8), ("dot of five bits", 31, 4)] {
            let mut sum = V::begin(onto);
            for vector in 0..count {
                sum = V::dot(sum, V::shr_mask(bytes[vector], 0, mask), x.add(4 * vector));
            }
            out.note(name, at, V::finish(onto, sum));
        }
        let six = [0, 1, 2, 3].map(|vector| V::shr_mask(bytes[vector], 0, 63));
        out.note("dot6", at, V::dot6(onto, six, x, signed));
        let [a, b] = [signed, V::or_int(unsigned, V::shl_int(signed, 16))];
        out.note("dot_halves", at, V::dot_halves(a, b));
        let mut sum = V::begin8(-case.x.iter().map(|&x| i32::from(x)).sum::<i32>());
        for vector in 0..8 {
            sum = V::dot8(sum, V::prepare8(bytes[vector]), x.add(4 * vector));
        }
        out.note("dot8", at, sum);
        let pairs = V::load_pairs(case.bytes[2].as_ptr().add(2 * at).cast());
        out.note("dot_pairs", at, V::dot_pairs(onto, pairs, case.words.as_ptr()));
        V::prefetch(std::ptr::null());
    }
}

/// Runs all operations of an instruction set: on whole vectors, and part by part.
///
/// # Safety
/// [`Vector`]'s.
#[inline(always)]
unsafe fn outcome<S: Simd>(case: &Case) -> [Outcome; 2] {
    let (mut whole, mut parts) = (Outcome::default(), Outcome::default());
    unsafe {
        try_vector::<S>(case, 0, &mut whole);
        whole.note_floats("sum", 0, S::sum(S::load(case.floats[0].as_ptr())));
        // Zeros of both signs are equal, so either may be returned.
        whole.note("largest", 0, S::largest(S::load(case.floats[0].as_ptr())) + 0.0);
        whole.note("sum_int", 0, S::sum_int(S::to_int(S::load(case.small.as_ptr()))));
        for at in (0..LANES).step_by(S::Part::WIDTH) {
            try_products::<S::Part>(case, at, &mut parts);
        }
    }
    [whole, parts]
}

#[cfg(target_arch = "x86_64")]
mod on {
    use super::super::{avx2, avx512};
    use super::*;

    #[target_feature(enable = "avx2,fma,f16c")]
    pub unsafe fn avx2(case: &Case) -> [Outcome; 2] {
        unsafe { outcome::<avx2::Avx2>(case) }
    }

    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    pub unsafe fn avxvnni(case: &Case) -> [Outcome; 2] {
        unsafe { outcome::<avx2::AvxVnni>(case) }
    }

    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
    pub unsafe fn avx512(case: &Case) -> [Outcome; 2] {
        unsafe { outcome::<avx512::Avx512>(case) }
    }
}

#[cfg(target_arch = "aarch64")]
mod on {
    use super::super::neon;
    use super::*;

    #[target_feature(enable = "neon,dotprod")]
    pub unsafe fn neon(case: &Case) -> [Outcome; 2] {
        unsafe { outcome::<neon::Neon>(case) }
    }
}

#[test]
fn every_operation_gives_the_bits_of_plain_rust() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..300 {
        let case = Case::new(&mut random);
        let expected = unsafe { outcome::<Scalar>(&case) };
        for isa in Isa::ALL.iter().filter(|isa| isa.available()) {
            // SAFETY: the instruction set is available.
            let found = unsafe {
                match isa {
                    Isa::Scalar => outcome::<Scalar>(&case),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => on::avx2(&case),
                    #[cfg(target_arch = "x86_64")]
                    Isa::AvxVnni => on::avxvnni(&case),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => on::avx512(&case),
                    #[cfg(target_arch = "aarch64")]
                    Isa::Neon => on::neon(&case),
                }
            };
            for (found, expected) in found.iter().zip(&expected) {
                for (operation, expected) in &expected.0 {
                    assert_eq!(&found.0[operation], expected, "{operation}, {isa}");
                }
            }
        }
    }
}
