//! Rotary position embedding (RoPE, Su et al. 2021) and its extensions to longer contexts: linear,
//! Llama 3, YaRN and LongRoPE. Reads no file.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::family::RotaryLayout;

/// Rotary position embedding of one kind of attention.
#[derive(Debug, Clone, PartialEq)]
pub struct Rotary {
    pub layout: RotaryLayout,
    /// Radians per position, one for each pair of components, scaling included. A head's components
    /// beyond twice their number are not rotated.
    pub inverse_frequencies: Vec<f32>,
    /// Factor of cosines and sines: 1, except with LongRoPE and YaRN.
    pub scale: f32,
    /// LongRoPE's frequencies for long texts.
    pub long_frequencies: Option<LongFrequencies>,
    /// Factor of queries that grows with the position (Llama 4, Ministral 3); `None` for 1.
    pub attn_temperature: Option<AttnTemperature>,
    /// Extension to a longer context that the frequencies include; `None` without one.
    pub scaling: Option<RopeScaling>,
    /// Pairs that are rotated by time, by row and by column (M-RoPE, Wang et al. 2024), of which
    /// each third pair in turn is; `None` if positions are numbers.
    pub sections: Option<[usize; 3]>,
}

/// Extension of rotary positions to a longer context, as a model's file asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export)]
pub enum RopeScaling {
    /// All frequencies are divided by `factor`.
    Linear { factor: f32 },
    /// Each frequency is divided by a number of its own, as in Llama 3.
    PerFrequency,
    /// YaRN, by `factor` from a context of `original` tokens.
    Yarn { factor: f32, original: u32 },
    /// LongRoPE, for texts of more than `original` tokens.
    LongRope { original: u32 },
}

impl fmt::Display for RopeScaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linear { factor } => write!(f, "linear, by {factor}"),
            Self::PerFrequency => f.write_str("of each frequency by itself"),
            Self::Yarn { factor, original } => write!(f, "YaRN, by {factor} from {original} tokens"),
            Self::LongRope { original } => write!(f, "LongRoPE beyond {original} tokens"),
        }
    }
}

/// Frequencies for texts longer than the original context (LongRoPE).
#[derive(Debug, Clone, PartialEq)]
pub struct LongFrequencies {
    /// Length of the longest text that uses the short frequencies, in tokens.
    pub original_context: usize,
    pub inverse_frequencies: Vec<f32>,
}

/// Query scaling by position p: `1 + beta ln(1 + floor(p / period))`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttnTemperature {
    pub beta: f32,
    pub period: usize,
}

/// Cosines and sines of a pass's positions, `[positions, size / 2]` each.
#[derive(Debug, Default)]
pub struct RopeTable {
    pub cosines: Vec<f32>,
    pub sines: Vec<f32>,
}

impl Rotary {
    pub(super) fn new(layout: RotaryLayout, frequencies: &[f64], scale: f64) -> Self {
        Self {
            layout,
            inverse_frequencies: to_f32(frequencies),
            scale: scale as f32,
            long_frequencies: None,
            attn_temperature: None,
            scaling: None,
            sections: None,
        }
    }

    /// Returns the kind without rotation (NoPE).
    pub(super) fn without_rotation(&self) -> Self {
        Self::new(self.layout, &[], 1.0)
    }

    /// Returns whether all numbers are finite and in range.
    pub(super) fn is_sound(&self) -> bool {
        let long = self.long_frequencies.iter().flat_map(|long| &long.inverse_frequencies);
        let grows = self
            .attn_temperature
            .is_none_or(|temperature| temperature.beta.is_finite() && temperature.beta >= 0.0);
        let numbers = self.inverse_frequencies.iter().chain(long).chain([&self.scale]);
        grows && numbers.into_iter().all(|number| number.is_finite() && *number > 0.0)
    }

    /// Number of rotated components of a head.
    pub fn size(&self) -> usize {
        2 * self.inverse_frequencies.len()
    }

    /// Replaces `table` with the cosines and sines of `positions`; `long` selects the frequencies
    /// for long texts.
    pub fn tabulate(&self, positions: &[usize], long: bool, table: &mut RopeTable) {
        self.tabulate_by(positions, |&position, _| position, long, table);
    }

    /// Replaces `table` as [`Self::tabulate`] does, for positions by time, row and column.
    pub fn tabulate_grid(&self, positions: &[[usize; 3]], long: bool, table: &mut RopeTable) {
        self.tabulate_by(positions, |position, pair| position[self.axis(pair)], long, table);
    }

    /// Axis by which a pair is rotated: time, row or column.
    fn axis(&self, pair: usize) -> usize {
        let axis = pair % 3;
        let within = self.sections.is_some_and(|sections| pair < 3 * sections[axis]);
        if within { axis } else { 0 }
    }

    fn tabulate_by<P>(
        &self,
        positions: &[P],
        of: impl Fn(&P, usize) -> usize,
        long: bool,
        table: &mut RopeTable,
    ) {
        let frequencies = match &self.long_frequencies {
            Some(frequencies) if long => &frequencies.inverse_frequencies,
            _ => &self.inverse_frequencies,
        };
        let of = &of;
        let angles = || {
            let row = |position| {
                let angle = move |(pair, f): (usize, &f32)| f64::from(of(position, pair) as f32 * f);
                frequencies.iter().enumerate().map(angle)
            };
            positions.iter().flat_map(row)
        };
        table.cosines.clear();
        table.cosines.extend(angles().map(|angle| libm::cos(angle) as f32 * self.scale));
        table.sines.clear();
        table.sines.extend(angles().map(|angle| libm::sin(angle) as f32 * self.scale));
    }
}

impl AttnTemperature {
    pub fn at(self, position: usize) -> f32 {
        1.0 + self.beta * libm::logf((1 + position / self.period) as f32)
    }

    /// Replaces `queries` with the table for queries at `positions`, where `keys` is the table for
    /// keys.
    pub fn tabulate(self, positions: &[usize], keys: &RopeTable, queries: &mut RopeTable) {
        let half = keys.cosines.len() / positions.len().max(1);
        let grow = |from: &[f32], to: &mut Vec<f32>| {
            to.clear();
            let rows = positions.iter().zip(from.chunks(half.max(1)));
            to.extend(rows.flat_map(|(&position, row)| {
                let by = self.at(position);
                row.iter().map(move |number| number * by)
            }));
        };
        grow(&keys.cosines, &mut queries.cosines);
        grow(&keys.sines, &mut queries.sines);
    }
}

fn to_f32(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&number| number as f32).collect()
}

/// Returns base^(-2i / size) for i below size / 2.
pub(super) fn plain_frequencies(base: f64, size: usize) -> Vec<f64> {
    let exponent = |i: usize| -2.0 * i as f64 / size as f64;
    (0..size / 2).map(|i| libm::pow(base, exponent(i))).collect()
}

/// Llama 3's context extension: divides low frequencies by `factor`, keeps high ones and blends
/// between.
pub(super) struct Llama3Scaling {
    pub factor: f64,
    pub low_frequency_factor: f64,
    pub high_frequency_factor: f64,
    pub original_context: f64,
}

impl Llama3Scaling {
    pub fn apply(&self, frequency: f64) -> f64 {
        // Rotations within the original context.
        let rotations = self.original_context * frequency / std::f64::consts::TAU;
        let (low, high) = (self.low_frequency_factor, self.high_frequency_factor);
        let kept = ((rotations - low) / (high - low)).clamp(0.0, 1.0);
        (1.0 - kept) * frequency / self.factor + kept * frequency
    }
}

/// YaRN (Peng et al. 2023): keeps components that rotate often within the original context, divides
/// those that rotate less than once by `factor`, and blends between.
pub(super) struct Yarn {
    pub factor: f64,
    pub original_context: f64,
    /// Rotations within the original context between which frequencies are blended.
    pub beta_fast: f64,
    pub beta_slow: f64,
    /// True if the blend begins and ends at whole components.
    pub truncated: bool,
}

impl Yarn {
    pub fn apply(&self, base: f64, frequencies: &mut [f64]) {
        let size = 2.0 * frequencies.len() as f64;
        // Component that makes this many rotations within the original context.
        let component = |rotations: f64| {
            let ratio = self.original_context / (rotations * std::f64::consts::TAU);
            size * libm::log(ratio) / (2.0 * libm::log(base))
        };
        let (mut low, mut high) = (component(self.beta_fast), component(self.beta_slow));
        if self.truncated {
            (low, high) = (low.floor(), high.ceil());
        }
        (low, high) = (low.max(0.0), high.min(size - 1.0));
        let width = if high == low { 1e-3 } else { high - low };
        for (index, frequency) in frequencies.iter_mut().enumerate() {
            let stretched = ((index as f64 - low) / width).clamp(0.0, 1.0);
            *frequency = *frequency / self.factor * stretched + *frequency * (1.0 - stretched);
        }
    }

    /// `None` for a factor that extends nothing.
    pub fn scaling(&self) -> Option<RopeScaling> {
        let (factor, original) = (self.factor as f32, self.original_context as u32);
        (self.factor > 1.0).then_some(RopeScaling::Yarn { factor, original })
    }

    /// Factor of cosines and sines: 0.1 `weight` ln(factor) + 1.
    pub fn magnitude(&self, weight: f64) -> f64 {
        magnitude(self.factor, weight)
    }
}

/// YaRN's attention factor for texts longer by `factor`: 0.1 `weight` ln(factor) + 1.
pub(super) fn magnitude(factor: f64, weight: f64) -> f64 {
    if factor > 1.0 { 0.1 * weight * libm::log(factor) + 1.0 } else { 1.0 }
}

/// LongRoPE (Ding et al. 2024): each frequency is divided by a factor of its own, from one list for
/// texts up to the original context and another for longer texts.
pub(super) struct LongRope<'a> {
    pub context: usize,
    pub original_context: usize,
    pub short: &'a [f64],
    pub long: &'a [f64],
}

impl LongRope<'_> {
    /// Builds the rotary embedding with both lists from unscaled `frequencies`. A model whose
    /// context is not extended gets only the short one.
    pub fn rotary(&self, layout: RotaryLayout, frequencies: &[f64], scale: Option<f64>) -> Rotary {
        let divided = |by: &[f64]| frequencies.iter().zip(by).map(|(f, by)| f / by).collect::<Vec<_>>();
        let rotary = Rotary::new(layout, &divided(self.short), scale.unwrap_or(self.attention_factor()));
        let is_longer = self.context > self.original_context;
        let scaling = RopeScaling::LongRope { original: self.original_context as u32 };
        let long = || LongFrequencies {
            original_context: self.original_context,
            inverse_frequencies: to_f32(&divided(self.long)),
        };
        Rotary { long_frequencies: is_longer.then(long), scaling: is_longer.then_some(scaling), ..rotary }
    }

    /// Default factor of cosines and sines: sqrt(1 + ln(s) / ln(original)), where s is the ratio of
    /// the contexts.
    fn attention_factor(&self) -> f64 {
        let original = self.original_context as f64;
        let longer = (self.context as f64 / original).max(1.0);
        if longer > 1.0 { (1.0 + libm::log(longer) / libm::log(original)).sqrt() } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_grow_where_the_original_context_was_filled_once_more() {
        let temperature = AttnTemperature { beta: 0.1, period: 16 };
        assert_eq!([0, 15].map(|position| temperature.at(position)), [1.0; 2]);
        let twice = [16, 31].map(|position| temperature.at(position));
        assert!(twice.iter().all(|found| (found - 1.069_314_7).abs() < 1e-6), "{twice:?}");
        let rotary = Rotary::new(RotaryLayout::Halves, &[1.0, 0.5], 1.0);
        let (mut keys, mut queries) = (RopeTable::default(), RopeTable::default());
        rotary.tabulate(&[3, 16], false, &mut keys);
        temperature.tabulate(&[3, 16], &keys, &mut queries);
        assert_eq!(queries.cosines[..2], keys.cosines[..2]);
        assert_eq!(queries.sines[2..], [keys.sines[2] * twice[0], keys.sines[3] * twice[0]]);
    }

    /// Linux and Windows give these bits; cosines and sines of single precision would differ.
    #[test]
    fn rotations_have_the_same_bits_on_every_system() {
        let rotary = Rotary::new(RotaryLayout::Halves, &plain_frequencies(10_000.0, 64), 1.0);
        let mut table = RopeTable::default();
        rotary.tabulate(&Vec::from_iter(0..4096), false, &mut table);
        let bits = table.cosines.iter().chain(&table.sines).map(|number| u64::from(number.to_bits()));
        let hash =
            bits.fold(0xcbf2_9ce4_8422_2325, |hash: u64, bits| (hash ^ bits).wrapping_mul(0x100_0000_01b3));
        assert_eq!(hash, 0xec00_50ca_c225_f715);
    }

    #[test]
    fn the_blend_of_yarn_is_between_whole_components_unless_it_is_not_truncated() {
        // gpt-oss 20B: heads of 64, theta 150,000.
        let yarn =
            Yarn { factor: 32.0, original_context: 4096.0, beta_fast: 32.0, beta_slow: 1.0, truncated: true };
        let stretched = |yarn: &Yarn| {
            let plain = plain_frequencies(150_000.0, 64);
            let mut frequencies = plain.clone();
            yarn.apply(150_000.0, &mut frequencies);
            plain.iter().zip(frequencies).map(|(plain, found)| plain / found).collect::<Vec<_>>()
        };
        let found = stretched(&yarn);
        assert_eq!((found[8], found[18]), (1.0, 32.0));
        assert!(found[9] > 1.0 && found[17] < 32.0 && found.is_sorted(), "{found:?}");
        assert!((yarn.magnitude(1.0) - 1.346_574).abs() < 1e-6);
        // From 8.09 to 17.40.
        let found = stretched(&Yarn { truncated: false, ..yarn });
        assert!(found[8] == 1.0 && found[9] > 1.0 && found[17] < 32.0 && found[18] == 32.0, "{found:?}");
    }
}
