//! All kernels, compiled once for each instruction set, behind function pointers.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "bodies of unsafe functions rely on the contract of the caller alone, see docs/unsafe.md"
)]

use foretoken_model::{Activation, KvDtype, Scoring};

use super::activations::{Activations, TileRow};
use super::attention::{AttentionRun, Join, Rotation, attend, join, store_kv};
use super::blocks::{Affine, Centred, Few, Q2K, Q6K, Q8, Superblock};
use super::cache::KvCache;
use super::codebooks::{self, Grouped, Halved, Sixteens, Whole};
use super::exponentials;
use super::int8_attention::{self, round_queries};
use super::isa::Isa;
use super::math::{
    add_scaled, clamped_times, exp, gelu_times, largest_and_sum, rms_norm, score, sigmoid_times, silu_times,
    softplus, sum_exp,
};
use super::numbers::{Bf16, F16, F32, Unquantised};
use super::panels::Format;
use super::product::{Blocks, Kernel, Product, multiply, read};
use super::simd::{Simd, Vector};
use super::step::{ConvolutionJob, Correction, MatrixStep, ReadOut, convolve, correct, read_out, step};

/// Kernels of one instruction set.
///
/// # Safety
/// Each needs a processor with the instructions, and the contract of the function that it compiles.
#[derive(Debug)]
pub struct Kernels {
    /// Largest number of rows of a product.
    pub tile: usize,
    /// Returns the kernel for a format and a number of rows, from 1 to `tile`.
    pub product: fn(Format, usize) -> Kernel,
    pub read: unsafe fn(&[u8]) -> u64,
    pub quantise: unsafe fn(&Activations, TileRow, usize, usize, *const f32),
    pub rms_norm: unsafe fn(*const f32, *const f32, *mut f32, usize, f32),
    pub silu_times: unsafe fn(*mut f32, *const f32, usize),
    pub gelu_times: unsafe fn(*mut f32, *const f32, usize),
    pub clamped_times: unsafe fn(*mut f32, *const f32, usize),
    pub sigmoid_times: unsafe fn(*mut f32, *const f32, usize),
    pub score: unsafe fn(*mut f32, usize, Scoring),
    pub largest_and_sum: unsafe fn(*const f32, usize) -> (f32, f32),
    pub sum_exp: unsafe fn(*const f32, usize, f32, f32) -> f32,
    pub exp: unsafe fn(f32) -> f32,
    pub sigmoid: unsafe fn(f32) -> f32,
    pub softplus: unsafe fn(f32) -> f32,
    pub add_scaled: unsafe fn(*mut f32, *const f32, usize, f32, f32),
    pub exponentials: unsafe fn(&[f32], f32, f64, &mut [f64]),
    pub rotate: unsafe fn(&Rotation, *mut f32),
    pub store_kv: unsafe fn(&KvCache, usize, usize, usize, *const f32, *const f32),
    pub round_queries: unsafe fn(*mut f32, usize, usize),
    pub attend: unsafe fn(&AttentionRun<'_>),
    pub join: unsafe fn(&Join),
    pub step: unsafe fn(&MatrixStep<'_>),
    pub correct: unsafe fn(&Correction<'_>),
    pub read_out: unsafe fn(&ReadOut<'_>),
    pub convolve: unsafe fn(&ConvolutionJob),
}

impl Kernels {
    /// Returns the kernel of `gate = activation(gate) * up`.
    pub fn times(&self, activation: Activation) -> unsafe fn(*mut f32, *const f32, usize) {
        match activation {
            Activation::Silu => self.silu_times,
            Activation::Gelu => self.gelu_times,
            Activation::Clamped => self.clamped_times,
        }
    }

    pub fn of(isa: Isa) -> &'static Self {
        match isa {
            Isa::Scalar => &scalar::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => &avx2::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => &avxvnni::KERNELS,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => &avx512::KERNELS,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => &neon::KERNELS,
        }
    }
}

/// Compiles every kernel over the vectors of type `$simd` with the instructions `$features`.
macro_rules! compile {
    ($module:ident, $simd:ty, $([$features:literal],)? $($rows:literal)+) => {
        mod $module {
            use super::*;

            type Vectors = $simd;

            $(#[target_feature(enable = $features)])?
            unsafe fn blocks<B: Blocks, const M: usize>(product: &Product) {
                unsafe { multiply::<Vectors, B, M>(product) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn memory(memory: &[u8]) -> u64 {
                unsafe { read::<Vectors>(memory) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn quantise(to: &Activations, tile_row: TileRow, block: usize, count: usize, from: *const f32) {
                unsafe { to.quantise::<Vectors>(tile_row, block, count, from) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn norm(x: *const f32, weight: *const f32, out: *mut f32, length: usize, epsilon: f32) {
                unsafe { rms_norm::<Vectors>(x, weight, out, length, epsilon) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn silu(gate: *mut f32, up: *const f32, length: usize) {
                unsafe { silu_times::<Vectors>(gate, up, length) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn gelu(gate: *mut f32, up: *const f32, length: usize) {
                unsafe { gelu_times::<Vectors>(gate, up, length) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn clamped(gate: *mut f32, up: *const f32, length: usize) {
                unsafe { clamped_times::<Vectors>(gate, up, length) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn sigmoid(x: *mut f32, gate: *const f32, length: usize) {
                unsafe { sigmoid_times::<Vectors>(x, gate, length) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn scores(x: *mut f32, length: usize, scoring: Scoring) {
                unsafe { score::<Vectors>(x, length, scoring) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn largest(x: *const f32, length: usize) -> (f32, f32) {
                unsafe { largest_and_sum::<Vectors>(x, length) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn exponentials(x: *const f32, length: usize, largest: f32, scale: f32) -> f32 {
                unsafe { sum_exp::<Vectors>(x, length, largest, scale) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn exponential(x: f32) -> f32 {
                unsafe { Vectors::largest(exp::<Vectors>(Vectors::splat(x))) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn one_softplus(x: f32) -> f32 {
                unsafe { Vectors::largest(softplus::<Vectors>(Vectors::splat(x))) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn one_sigmoid(x: f32) -> f32 {
                1.0 / (1.0 + unsafe { exponential(-x) })
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn scaled(x: *mut f32, y: *const f32, length: usize, scale: f32, factor: f32) {
                unsafe { add_scaled::<Vectors>(x, y, length, scale, factor) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn correction(job: &Correction<'_>) {
                unsafe { correct::<Vectors>(job) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn reading(job: &ReadOut<'_>) {
                unsafe { read_out::<Vectors>(job) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn exponentials_of_row(x: &[f32], largest: f32, scale: f64, out: &mut [f64]) {
                exponentials::exponentials(x, largest, scale, out);
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn rotate(rotation: &Rotation, head: *mut f32) {
                unsafe { rotation.rotate(head) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn write(
                cache: &KvCache,
                kv_head: usize,
                position: usize,
                head_size: usize,
                key: *const f32,
                value: *const f32,
            ) {
                unsafe {
                    match cache.dtype() {
                        KvDtype::F16 => store_kv::<Vectors>(cache, kv_head, position, head_size, key, value),
                        KvDtype::Int8 => {
                            int8_attention::store_kv::<Vectors>(cache, kv_head, position, head_size, key, value);
                        }
                    }
                }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn rounded_queries(queries: *mut f32, heads: usize, head_size: usize) {
                unsafe { round_queries::<Vectors>(queries, heads, head_size) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn attention(job: &AttentionRun<'_>) {
                unsafe {
                    match job.cache.dtype() {
                        KvDtype::F16 => attend::<Vectors>(job),
                        KvDtype::Int8 => int8_attention::attend::<Vectors>(job),
                    }
                }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn attention_join(job: &Join) {
                unsafe { join::<Vectors>(job) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn matrix_step(job: &MatrixStep<'_>) {
                unsafe { step::<Vectors>(job) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn convolution(job: &ConvolutionJob) {
                unsafe { convolve::<Vectors>(job) }
            }

            fn kernel<const M: usize>(format: Format) -> Kernel {
                match format {
                    Format::Q8_0 => blocks::<Q8, M>,
                    Format::Q4_0 => blocks::<Centred<4>, M>,
                    Format::Q5_0 => blocks::<Centred<5>, M>,
                    Format::Q4_1 => blocks::<Affine<4>, M>,
                    Format::Q5_1 => blocks::<Affine<5>, M>,
                    Format::Q4K => blocks::<Superblock<4>, M>,
                    Format::Q5K => blocks::<Superblock<5>, M>,
                    Format::Q6K => blocks::<Q6K, M>,
                    // Ternary weights are packed as Q2_K, with equal scales and minimums.
                    Format::Q2K | Format::Tq1_0 | Format::Tq2_0 => blocks::<Q2K, M>,
                    Format::Q1_0 => blocks::<Few<1>, M>,
                    Format::Q2_0 => blocks::<Few<2>, M>,
                    Format::Nvfp4 => blocks::<Sixteens<codebooks::Nvfp4>, M>,
                    Format::Iq4Nl => blocks::<Whole<codebooks::Iq4Nl>, M>,
                    Format::Mxfp4 => blocks::<Whole<codebooks::Mxfp4>, M>,
                    Format::Iq4Xs => blocks::<Grouped<codebooks::Iq4Xs>, M>,
                    Format::Iq3Xxs => blocks::<Grouped<codebooks::Iq3Xxs>, M>,
                    Format::Iq3S => blocks::<Grouped<codebooks::Iq3S>, M>,
                    Format::Iq2Xxs => blocks::<Grouped<codebooks::Iq2Xxs>, M>,
                    Format::Iq1S => blocks::<Grouped<codebooks::Iq1S>, M>,
                    Format::Iq2Xs | Format::Iq2S => blocks::<Halved<codebooks::Iq2Xs>, M>,
                    Format::Iq1M => blocks::<Halved<codebooks::Iq1M>, M>,
                    Format::Q3K => blocks::<Halved<codebooks::Q3K>, M>,
                    Format::F16 => blocks::<Unquantised<F16>, M>,
                    Format::Bf16 => blocks::<Unquantised<Bf16>, M>,
                    Format::F32 => blocks::<Unquantised<F32>, M>,
                }
            }

            fn product(format: Format, rows: usize) -> Kernel {
                match rows {
                    $($rows => kernel::<$rows>(format),)+
                    _ => unreachable!("a tile of {rows} rows"),
                }
            }

            pub static KERNELS: Kernels = Kernels {
                tile: <Vectors as Simd>::TILE,
                product,
                read: memory,
                quantise,
                rms_norm: norm,
                silu_times: silu,
                gelu_times: gelu,
                clamped_times: clamped,
                sigmoid_times: sigmoid,
                score: scores,
                largest_and_sum: largest,
                sum_exp: exponentials,
                exp: exponential,
                sigmoid: one_sigmoid,
                softplus: one_softplus,
                add_scaled: scaled,
                correct: correction,
                read_out: reading,
                exponentials: exponentials_of_row,
                rotate,
                store_kv: write,
                round_queries: rounded_queries,
                attend: attention,
                join: attention_join,
                step: matrix_step,
                convolve: convolution,
            };
        }
    };
}

compile!(scalar, crate::cpu::simd::scalar::Scalar, 1 2 3 4);
#[cfg(target_arch = "x86_64")]
compile!(avx2, crate::cpu::simd::avx2::Avx2, ["avx2,fma,f16c"], 1 2 3 4 5 6 7 8);
#[cfg(target_arch = "x86_64")]
compile!(avxvnni, crate::cpu::simd::avx2::AvxVnni, ["avx2,fma,f16c,avxvnni"], 1 2 3 4 5 6 7 8);
#[cfg(target_arch = "x86_64")]
compile!(
    avx512,
    crate::cpu::simd::avx512::Avx512,
    ["avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"],
    1 2 3 4 5 6 7 8
);
#[cfg(target_arch = "aarch64")]
compile!(neon, crate::cpu::simd::neon::Neon, ["neon,dotprod"], 1 2 3 4 5 6 7 8);
