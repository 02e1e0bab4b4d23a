//! How positions become rotations of queries and keys (Su et al. 2021), and the ways to stretch
//! them over longer contexts. Reads no file.

use crate::model::family::RotaryLayout;

/// How positions are rotated into queries and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    pub layout: RotaryLayout,
    /// Radians per position, one for two components of a head; any scaling is already in them. Components
    /// of a head beyond twice as many are not rotated.
    pub inverse_frequencies: Vec<f32>,
    /// Cosines and sines are multiplied by this: 1, except with LongRoPE.
    pub scale: f32,
}

impl Rotary {
    pub(super) fn new(layout: RotaryLayout, frequencies: Vec<f64>, scale: f64) -> Self {
        let inverse_frequencies = frequencies.into_iter().map(|f| f as f32).collect();
        Self { layout, inverse_frequencies, scale: scale as f32 }
    }

    /// Components of a head that are rotated.
    pub fn size(&self) -> usize {
        2 * self.inverse_frequencies.len()
    }

    /// Puts the cosines and sines of `positions`, `[positions, size / 2]`, in place of what is there.
    pub fn tabulate(&self, positions: &[usize], cosines: &mut Vec<f32>, sines: &mut Vec<f32>) {
        let angles = || {
            let of = |&position| self.inverse_frequencies.iter().map(move |f| position as f32 * f);
            positions.iter().flat_map(of)
        };
        cosines.clear();
        cosines.extend(angles().map(|angle| angle.cos() * self.scale));
        sines.clear();
        sines.extend(angles().map(|angle| angle.sin() * self.scale));
    }
}

/// base^(-2i / size) for i below size / 2.
pub(super) fn plain_frequencies(base: f64, size: usize) -> Vec<f64> {
    let exponent = |i: usize| -2.0 * i as f64 / size as f64;
    (0..size / 2).map(|i| base.powf(exponent(i))).collect()
}

/// Llama 3's context extension: long waves turn slower by `factor`, short ones stay, those between
/// are blended.
pub(super) struct Llama3Scaling {
    pub factor: f64,
    pub low_frequency_factor: f64,
    pub high_frequency_factor: f64,
    pub original_context: f64,
}

impl Llama3Scaling {
    pub fn apply(&self, frequency: f64) -> f64 {
        // How often the wave turns in the original context.
        let turns = self.original_context * frequency / std::f64::consts::TAU;
        let (low, high) = (self.low_frequency_factor, self.high_frequency_factor);
        let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 - kept) * frequency / self.factor + kept * frequency
    }
}

/// LongRoPE (Ding et al. 2024): every frequency is divided by a factor of its own. There is one list of
/// factors for contexts up to the original one and another for longer ones.
///
/// The choice is made once, by the context the model is run with, since the keys of a text that grows
/// beyond the original context would otherwise have been rotated by the wrong factors.
pub(super) struct LongRope {
    pub context: usize,
    pub original_context: usize,
}

impl LongRope {
    /// Whether the factors for long contexts are the ones to take.
    pub fn is_long(&self) -> bool {
        self.context > self.original_context
    }

    /// sqrt(1 + ln(s) / ln(original)), with s how many times longer the context is: what cosines and
    /// sines are multiplied with where the file does not say.
    pub fn attention_factor(&self) -> f64 {
        let original = self.original_context as f64;
        let longer = (self.context as f64 / original).max(1.0);
        if longer > 1.0 { (1.0 + longer.ln() / original.ln()).sqrt() } else { 1.0 }
    }
}
