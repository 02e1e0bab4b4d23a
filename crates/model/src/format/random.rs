//! Random quantised blocks: weights of a given size in formats that this crate cannot quantise to.

use half::f16;
use rand::Rng;

use super::block::to_e4m3;
use super::{Block, Format};

/// Random blocks of `count` weights whose root mean square is about `deviation`. Only for quantised
/// formats; `count` is a multiple of the block size.
pub fn random_blocks(format: Format, deviation: f32, count: usize, random: &mut impl Rng) -> Vec<u8> {
    let mut bytes = vec![0; count / format.inputs() * format.stored()];
    random.fill_bytes(&mut bytes);
    let mut weights = vec![0.0; format.inputs()];
    let mut block = Block::default();
    for bytes in bytes.chunks_exact_mut(format.stored()) {
        if format == Format::Tq2_0 {
            // The fourth of the 2-bit values is unused.
            bytes[..64].iter_mut().for_each(|byte| *byte &= !(*byte >> 1 & 0x55));
        }
        set_halves(format, bytes, [f16::ONE; 2]);
        block.take_apart(format, bytes);
        block.weights(format, &mut weights);
        let squares: f32 = weights.iter().map(|weight| weight * weight).sum();
        let scale = deviation / (squares / weights.len() as f32).sqrt().max(f32::MIN_POSITIVE);
        set_halves(format, bytes, [f16::from_f32(scale); 2]);
    }
    bytes
}

/// Sets a block's scale, and its minimum where it has one. Scales that are not stored in half
/// precision are rounded.
pub fn set_halves(format: Format, block: &mut [u8], halves: [f16; 2]) {
    for (&at, half) in format.halves_at().iter().zip(halves) {
        block[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    if format == Format::Mxfp4 {
        block[0] = (libm::log2f(halves[0].to_f32().abs()).round() + 128.0) as u8;
    }
    if format == Format::Nvfp4 {
        block[..4].fill(to_e4m3(halves[0].to_f32().abs()));
    }
    if format == Format::Iq1M {
        let half = halves[0].to_bits();
        for (part, byte) in block[48..].iter_mut().skip(1).step_by(2).enumerate() {
            *byte = *byte & 15 | (half >> (4 * part) << 4) as u8;
        }
    }
}
