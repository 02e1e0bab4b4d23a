//! Logits looked at together: slices that are small enough to be fetched alone, of which most are too small to matter, and
//! stretches whose exponentials have sums of their own, in every engine.

/// Logits of a slice.
pub const SLICE: usize = 64;

/// Logits of a stretch.
pub const STRETCH: usize = 4096;

/// The sum of e^(scale (logit - largest)), from each part's own largest logit and its sum below that.
pub fn sum_of_parts(parts: impl Iterator<Item = (f32, f32)>, largest: f32, scale: f32) -> f32 {
    parts.map(|part| part.1 * (scale * (part.0 - largest)).exp()).sum()
}

/// In a way that compilers make vectors of; NaN counts as nothing.
pub fn largest_of(logits: &[f32]) -> f32 {
    logits.iter().fold(f32::NEG_INFINITY, |largest, &logit| if logit > largest { logit } else { largest })
}
