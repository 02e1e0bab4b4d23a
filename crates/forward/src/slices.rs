//! Grouping of logits: slices, small enough to fetch one alone, most of which are too low to
//! matter; and stretches, each with its own sum of exponentials, in every engine.

use super::cpu::exp;

/// Logits per slice.
pub const SLICE: usize = 64;

/// Logits per stretch.
pub const STRETCH: usize = 4096;

/// Combines parts into the sum of e^(scale (logit - largest)). Each part is its largest logit and
/// its sum relative to that.
pub fn sum_of_parts(parts: impl Iterator<Item = (f32, f32)>, largest: f32, scale: f32) -> f32 {
    parts.map(|part| part.1 * exp(scale * (part.0 - largest))).sum()
}

/// Largest logit, ignoring NaN. The form lets compilers vectorise it.
pub fn largest_of(logits: &[f32]) -> f32 {
    logits.iter().fold(f32::NEG_INFINITY, |largest, &logit| if logit > largest { logit } else { largest })
}
