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

/// Logits that are compared side by side, so that compilers vectorise the search.
const LANES: usize = 16;

/// Largest logit, ignoring NaN.
pub fn largest_of(logits: &[f32]) -> f32 {
    let larger = |left: f32, right: f32| if left > right { left } else { right };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane = larger(logit, *lane);
        }
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            lanes[lane] = larger(lanes[lane + half], lanes[lane]);
        }
    }
    rest.iter().fold(lanes[0], |largest, &logit| larger(logit, largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_found_at_every_index() {
        for length in [1, 7, 16, 17, 64, 100] {
            for at in 0..length {
                let mut logits: Vec<f32> = (0..length).map(|index| -(index as f32)).collect();
                logits[(at + 1) % length] = f32::NAN;
                logits[at] = 3.0;
                assert_eq!(largest_of(&logits), 3.0, "{at} of {length}");
            }
        }
        assert_eq!(largest_of(&[f32::NAN]), f32::NEG_INFINITY);
    }
}
