//! Blocks of random quants: weights of a size that is wished for, in formats that nobody here can round to.

use half::f16;
use rand::Rng;

use super::{Block, Format};

/// `count` weights, whole blocks, whose root mean square is about `deviation`. Of numbers there are no blocks.
pub fn random_blocks(format: Format, deviation: f32, count: usize, random: &mut impl Rng) -> Vec<u8> {
    let mut bytes = vec![0; count / format.inputs() * format.stored()];
    random.fill_bytes(&mut bytes);
    let mut weights = vec![0.0; format.inputs()];
    let mut block = Block::default();
    for bytes in bytes.chunks_exact_mut(format.stored()) {
        if format == Format::Tq2_0 {
            // Of the four values of two bits the last is not used.
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

/// Changes a block's scale, and its minimum where it has one; of a power of two the nearest.
pub fn set_halves(format: Format, block: &mut [u8], halves: [f16; 2]) {
    for (&at, half) in format.halves_at().iter().zip(halves) {
        block[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    if format == Format::Mxfp4 {
        block[0] = (halves[0].to_f32().abs().log2().round() + 128.0) as u8;
    }
    if format == Format::Iq1M {
        let half = halves[0].to_bits();
        for (part, byte) in block[48..].iter_mut().skip(1).step_by(2).enumerate() {
            *byte = *byte & 15 | (half >> (4 * part) << 4) as u8;
        }
    }
}
