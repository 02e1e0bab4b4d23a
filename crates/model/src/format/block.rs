//! Block of quantised weights, unpacked from the file's layout into a common one.

use half::{bf16, f16};

use super::{Format, codebook};

/// Scales and quants of a block. A weight is `factor * value of its quant + offset`, see
/// [`Block::weights`].
#[derive(Debug, Clone)]
pub struct Block {
    /// Half-precision scale and, in some formats, minimum, as little-endian bytes.
    pub halves: [[u8; 2]; 2],
    /// Scales of the block's parts, in packed order.
    pub parts: [u8; 16],
    pub quants: [u8; 256],
}

impl Default for Block {
    fn default() -> Self {
        Self { halves: [[0; 2]; 2], parts: [0; 16], quants: [0; 256] }
    }
}

impl Format {
    /// Dequantises whole blocks, or converts unquantised weights.
    pub fn dequantise(self, blocks: &[u8]) -> Vec<f32> {
        let halves = || blocks.as_chunks().0.iter();
        match self {
            Self::F32 => {
                return blocks.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect();
            }
            Self::F16 => return halves().map(|number| f16::from_le_bytes(*number).to_f32()).collect(),
            Self::Bf16 => return halves().map(|number| bf16::from_le_bytes(*number).to_f32()).collect(),
            _ => {}
        }
        let mut block = Block::default();
        let mut weights = vec![0.0; blocks.len() / self.stored() * self.inputs()];
        for (bytes, weights) in
            blocks.chunks_exact(self.stored()).zip(weights.chunks_exact_mut(self.inputs()))
        {
            block.take_apart(self, bytes);
            block.weights(self, weights);
        }
        weights
    }
}

impl Block {
    /// Unpacks a block as stored in a file, [`Format::stored`] bytes.
    #[inline]
    pub fn take_apart(&mut self, format: Format, bytes: &[u8]) {
        for (half, &at) in self.halves.iter_mut().zip(format.halves_at()) {
            *half = [bytes[at], bytes[at + 1]];
        }
        match format {
            Format::Q8_0 => {
                // Kept as weight + 128, which is never negative.
                self.quants.iter_mut().zip(&bytes[2..]).for_each(|(quant, byte)| *quant = byte ^ 0x80);
            }
            Format::Q4_0 | Format::Q5_0 | Format::Iq4Nl => self.take_thirty_two(format, &bytes[2..]),
            Format::Q4_1 | Format::Q5_1 => self.take_thirty_two(format, &bytes[4..]),
            Format::Mxfp4 => {
                // Exponent plus one; zero pads missing rows.
                self.parts[0] = bytes[0].wrapping_add(1);
                self.take_thirty_two(format, &bytes[1..]);
            }
            Format::Nvfp4 => {
                // The scale that is not a number counts as zero, and signs are ignored, as in ggml.
                let scale = |byte: u8| if byte == 127 { 0 } else { byte & 127 };
                self.parts.iter_mut().zip(&bytes[..4]).for_each(|(part, &byte)| *part = scale(byte));
                for (bytes, quants) in bytes[4..].chunks_exact(8).zip(self.quants.chunks_exact_mut(16)) {
                    let (low, high) = quants.split_at_mut(8);
                    for (byte, (low, high)) in bytes.iter().zip(low.iter_mut().zip(high)) {
                        (*low, *high) = (byte & 15, byte >> 4);
                    }
                }
            }
            Format::Q1_0 => {
                for (byte, quants) in bytes[2..].iter().zip(self.quants.as_chunks_mut().0) {
                    *quants = spread_bits(*byte).to_le_bytes();
                }
            }
            Format::Q2_0 => {
                for (byte, quants) in bytes[2..].iter().zip(self.quants.as_chunks_mut::<4>().0) {
                    *quants = [0, 2, 4, 6].map(|shift| byte >> shift & 3);
                }
            }
            Format::Q4K | Format::Q5K => {
                self.parts[..12].copy_from_slice(&bytes[4..16]);
                self.take_two_groups_at_a_time(format, &bytes[16..]);
            }
            Format::Q6K => {
                self.parts.copy_from_slice(&bytes[192..208]);
                self.take_six_bits(bytes);
            }
            Format::Q2K => {
                self.parts.copy_from_slice(&bytes[..16]);
                self.take_two_bits(&bytes[16..80]);
            }
            Format::Q3K => {
                self.take_parts_of_six_bits(&bytes[96..108]);
                self.take_two_bits(&bytes[32..96]);
                for (group, quants) in self.quants.chunks_exact_mut(32).enumerate() {
                    quants.iter_mut().zip(bytes).for_each(|(quant, high)| *quant |= (high >> group & 1) << 2);
                }
            }
            Format::Iq4Xs => {
                let high = word(bytes, 2);
                for (group, quants) in self.quants.chunks_exact_mut(32).enumerate() {
                    let low = bytes[4 + group / 2] >> (4 * (group % 2)) & 15;
                    let part = low | (((high >> (2 * group)) & 3) as u8 * 16);
                    self.parts[group] = part.wrapping_sub(32);
                    take_nibbles(&bytes[8 + 16 * group..][..16], quants);
                }
            }
            Format::Tq1_0 => {
                self.take_ternary();
                self.take_thirds(bytes);
            }
            Format::Tq2_0 => {
                self.take_ternary();
                self.take_two_bits(&bytes[..64]);
            }
            Format::Iq1S
            | Format::Iq1M
            | Format::Iq2Xxs
            | Format::Iq2Xs
            | Format::Iq2S
            | Format::Iq3Xxs
            | Format::Iq3S => codebook::take_apart(format, bytes, self),
            Format::F16 | Format::Bf16 | Format::F32 => unreachable!("numbers are no blocks"),
        }
    }

    /// Unpacks 32 quants of 4 bits; in formats of 5 bits their high bits come first.
    #[inline]
    fn take_thirty_two(&mut self, format: Format, bytes: &[u8]) {
        let (high, low) = bytes.split_at(if format.bits() == 5 { 4 } else { 0 });
        take_nibbles(low, &mut self.quants[..32]);
        for (quants, &high) in self.quants.as_chunks_mut().0.iter_mut().zip(high) {
            *quants = (u64::from_le_bytes(*quants) | spread_bits(high) << 4).to_le_bytes();
        }
    }

    /// Unpacks the quants of Q4_K and Q5_K: pairs of 32 quants share 32 bytes.
    #[inline]
    fn take_two_groups_at_a_time(&mut self, format: Format, bytes: &[u8]) {
        let (high, low) = bytes.split_at(if format.bits() == 5 { 32 } else { 0 });
        let chunks = low.as_chunks::<32>().0.iter().zip(self.quants.as_chunks_mut::<64>().0);
        for (chunk, (low, quants)) in chunks.enumerate() {
            let (first, second) = quants.split_at_mut(32);
            for (low, (first, second)) in low.iter().zip(first.iter_mut().zip(second.iter_mut())) {
                (*first, *second) = (low & 15, low >> 4);
            }
            for (high, (first, second)) in high.iter().zip(first.iter_mut().zip(second)) {
                *first |= (high >> (2 * chunk) & 1) << 4;
                *second |= (high >> (2 * chunk + 1) & 1) << 4;
            }
        }
    }

    #[inline]
    fn take_six_bits(&mut self, bytes: &[u8]) {
        for (part, quants) in self.quants.chunks_exact_mut(128).enumerate() {
            let (low, high) = (&bytes[64 * part..][..64], &bytes[128 + 32 * part..][..32]);
            for i in 0..32 {
                quants[i] = low[i] & 15 | (high[i] & 3) << 4;
                quants[i + 32] = low[i + 32] & 15 | (high[i] >> 2 & 3) << 4;
                quants[i + 64] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
                quants[i + 96] = low[i + 32] >> 4 | (high[i] >> 6) << 4;
            }
        }
    }

    /// Unpacks quants of 2 bits: each byte holds four quants that are 32 apart.
    fn take_two_bits(&mut self, bytes: &[u8]) {
        for (bytes, quants) in bytes.chunks_exact(32).zip(self.quants.chunks_exact_mut(128)) {
            for (group, quants) in quants.chunks_exact_mut(32).enumerate() {
                quants.iter_mut().zip(bytes).for_each(|(quant, byte)| *quant = byte >> (2 * group) & 3);
            }
        }
    }

    /// Unpacks the sixteen signed 6-bit scales of Q3_K: the low 4 bits of the first eight and of
    /// the others, then the high 2 bits.
    fn take_parts_of_six_bits(&mut self, bytes: &[u8]) {
        for (index, part) in self.parts.iter_mut().enumerate() {
            let low = bytes[index % 8] >> (4 * (index / 8)) & 15;
            let high = bytes[8 + index % 4] >> (2 * (index / 4)) & 3;
            *part = (low | high << 4).wrapping_sub(32);
        }
    }

    /// Sets the minimum to the scale: scale * (quant - 1) = scale * quant - scale.
    fn take_ternary(&mut self) {
        self.halves[1] = self.halves[0];
        self.parts = [0x11; 16];
    }

    /// Unpacks bytes that hold five ternary quants, or four, as a fraction of 256.
    fn take_thirds(&mut self, bytes: &[u8]) {
        let mut at = 0;
        for (bytes, powers) in [(&bytes[..32], 5), (&bytes[32..48], 5), (&bytes[48..52], 4)] {
            for power in (0..powers).map(|n| 3u8.wrapping_pow(n)) {
                let quants = &mut self.quants[at..][..bytes.len()];
                at += bytes.len();
                for (byte, quant) in bytes.iter().zip(quants) {
                    *quant = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
                }
            }
        }
    }

    /// Returns true if all weights of the block are finite.
    #[inline]
    pub fn finite(&self, format: Format) -> bool {
        let finite = |half: &[u8; 2]| u16::from_le_bytes(*half) & 0x7c00 != 0x7c00;
        // Outside this range the largest value of a quant is infinite.
        let exponent = format != Format::Mxfp4 || (1..=253).contains(&self.parts[0]);
        self.halves[..format.halves()].iter().all(finite) && exponent
    }

    /// Dequantises the block into `out`, [`Format::inputs`] values.
    pub fn weights(&self, format: Format, out: &mut [f32]) {
        let values = format.codebook();
        for (part, (out, quants)) in out.chunks_mut(16).zip(self.quants.chunks(16)).enumerate() {
            let (factor, offset) = self.affine(format, part);
            for (out, &quant) in out.iter_mut().zip(quants) {
                let value =
                    values.map_or(f32::from(quant), |values| f32::from(values[usize::from(quant & 15)]));
                *out = factor.mul_add(value, offset);
            }
        }
    }

    /// Factor and offset of the 16 weights from `16 * part` on.
    fn affine(&self, format: Format, part: usize) -> (f32, f32) {
        let half = |index: usize| f16::from_le_bytes(self.halves[index]).to_f32();
        let signed = |index: usize| f32::from(self.parts[index] as i8);
        match format {
            Format::Q8_0 => (half(0), -128.0 * half(0)),
            // 0 and 1 are minus one and one.
            Format::Q1_0 => (2.0 * half(0), -half(0)),
            Format::Q2_0 => (half(0), -half(0)),
            Format::Nvfp4 => (0.5 * e4m3(self.parts[part]), 0.0),
            Format::Q4_0 => (half(0), -8.0 * half(0)),
            Format::Q5_0 => (half(0), -16.0 * half(0)),
            Format::Q4_1 | Format::Q5_1 => (half(0), half(1)),
            Format::Q4K | Format::Q5K => {
                let (scale, minimum) = self.scale_and_minimum(part / 2);
                (half(0) * f32::from(scale), -half(1) * f32::from(minimum))
            }
            Format::Q6K => (half(0) * signed(part), -32.0 * (half(0) * signed(part))),
            Format::Q2K | Format::Tq1_0 | Format::Tq2_0 => {
                let both = self.parts[part];
                (half(0) * f32::from(both & 15), -half(1) * f32::from(both >> 4))
            }
            Format::Iq4Nl => (half(0), 0.0),
            // 2^(exponent - 128), where the part is the exponent plus one.
            Format::Mxfp4 => (0.25 * f32::from_bits(u32::from(self.parts[0]) << 23), 0.0),
            Format::Iq1S | Format::Iq2Xxs | Format::Iq3Xxs | Format::Iq3S | Format::Iq4Xs => {
                (half(0) * format.factor() * signed(part / 2), 0.0)
            }
            Format::Q3K | Format::Iq1M | Format::Iq2Xs | Format::Iq2S => {
                (half(0) * format.factor() * signed(part), 0.0)
            }
            Format::F16 | Format::Bf16 | Format::F32 => unreachable!("such weights have no scales"),
        }
    }

    /// Scale and minimum of a group, 6 bits each, as Q4_K and Q5_K store them.
    fn scale_and_minimum(&self, group: usize) -> (u8, u8) {
        let parts = &self.parts;
        if group < 4 {
            return (parts[group] & 63, parts[group + 4] & 63);
        }
        let (high, low) = (parts[group + 4], (parts[group - 4], parts[group]));
        (high & 15 | low.0 >> 6 << 4, high >> 4 | low.1 >> 6 << 4)
    }
}

/// Value of an unsigned floating-point number with four bits of exponent and three of mantissa.
fn e4m3(byte: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(byte >> 3 & 15), f32::from(byte & 7));
    if exponent == 0 {
        return mantissa / 512.0;
    }
    // 2^(exponent - 7) * (1 + mantissa / 8)
    f32::from_bits((exponent + 120) << 23) * (1.0 + mantissa / 8.0)
}

/// Returns the number of [`e4m3`] that is nearest to `value`, at most 448.
pub(super) fn to_e4m3(value: f32) -> u8 {
    let distance = |byte: &u8| (e4m3(*byte) - value).abs();
    (0..127).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
}

/// Spreads the bits of a byte, the lowest first, over the lowest bits of eight bytes.
#[inline]
pub(super) fn spread_bits(byte: u8) -> u64 {
    let bits = u64::from(byte);
    let bits = (bits | bits << 28) & 0x0000_000f_0000_000f;
    let bits = (bits | bits << 14) & 0x0003_0003_0003_0003;
    (bits | bits << 7) & 0x0101_0101_0101_0101
}

/// Unpacks the low 4 bits of each byte, then the high ones.
#[inline]
fn take_nibbles(bytes: &[u8], quants: &mut [u8]) {
    for (i, byte) in bytes[..16].iter().enumerate() {
        (quants[i], quants[i + 16]) = (byte & 15, byte >> 4);
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
