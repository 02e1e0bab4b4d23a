//! Resizing of 8-bit RGB pictures with the bits of Pillow: separable filters in fixed point, first
//! along rows, then along columns, rounded to bytes between the two. Vision models were trained on
//! pictures resized this way, and equal bits make goldens exact.

use std::f64::consts::PI;
use std::ops::Range;

use foretoken_model::Picture;
use foretoken_model::error::Result;
use rayon::prelude::*;

/// Bits after the point of a filter's weights.
const PRECISION: u32 = 32 - 8 - 2;

/// Bytes of a pixel.
const CHANNELS: usize = 3;

/// Filter of a resampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    Bilinear,
    /// Keys' kernel with a = -0.5.
    Bicubic,
    /// Sinc with a window of three lobes.
    Lanczos3,
}

impl Filter {
    /// Radius in pixels of the output, or of the input where that is larger.
    fn support(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos3 => 3.0,
        }
    }

    fn weight(self, x: f64) -> f64 {
        let distance = x.abs();
        match self {
            Self::Bilinear => (1.0 - distance).max(0.0),
            Self::Bicubic => {
                const A: f64 = -0.5;
                if distance < 1.0 {
                    ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
                } else if distance < 2.0 {
                    (((distance - 5.0) * distance + 8.0) * distance - 4.0) * A
                } else {
                    0.0
                }
            }
            Self::Lanczos3 if distance <= 3.0 && x < 3.0 => sinc(x) * sinc(x / 3.0),
            Self::Lanczos3 => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// Inputs of an output, and their weights in fixed point.
struct Taps {
    inputs: Range<usize>,
    weights: Vec<i32>,
}

/// Taps of each of `outputs` positions over `inputs` ones.
fn taps(filter: Filter, inputs: usize, outputs: usize) -> Vec<Taps> {
    let scale = inputs as f64 / outputs as f64;
    let stretch = scale.max(1.0);
    let support = filter.support() * stretch;
    // Multiplied rather than divided by, for the same bits.
    let (shrink, one) = (1.0 / stretch, f64::from(1u32 << PRECISION));
    let of = |output: usize| {
        let centre = (output as f64 + 0.5) * scale;
        let first = ((centre - support + 0.5) as isize).max(0) as usize;
        let end = ((centre + support + 0.5) as isize).min(inputs as isize) as usize;
        let weights = (first..end).map(|input| filter.weight((input as f64 - centre + 0.5) * shrink));
        let weights: Vec<f64> = weights.collect();
        let sum: f64 = weights.iter().sum();
        let fixed = |weight: &f64| {
            let weight = if sum == 0.0 { *weight } else { weight / sum };
            (weight * one + if weight < 0.0 { -0.5 } else { 0.5 }) as i32
        };
        Taps { inputs: first..end, weights: weights.iter().map(fixed).collect() }
    };
    (0..outputs).map(of).collect()
}

/// Weighted sum of bytes that are `step` apart, as a byte.
fn sum(bytes: &[u8], step: usize, weights: &[i32]) -> u8 {
    let half = 1 << (PRECISION - 1);
    let products = bytes.iter().step_by(step).zip(weights).map(|(&byte, weight)| i32::from(byte) * weight);
    (products.fold(half, i32::wrapping_add) >> PRECISION).clamp(0, 255) as u8
}

/// Resizes `picture` to `width` times `height` pixels. The same picture is returned for its own
/// size.
///
/// # Errors
/// `Error::Picture` if a side is 0.
pub fn resized(picture: &Picture, width: usize, height: usize, filter: Filter) -> Result<Picture> {
    let rows = widened(picture.pixels(), picture.width(), width, filter);
    Picture::new(width, height, heightened(&rows, width, picture.height(), height, filter))
}

/// Resizes all rows from `from` to `to` pixels.
fn widened(pixels: &[u8], from: usize, to: usize, filter: Filter) -> Vec<u8> {
    if from == to || to == 0 {
        return pixels.to_vec();
    }
    let taps = taps(filter, from, to);
    let mut out = vec![0; pixels.len() / from * to];
    out.par_chunks_exact_mut(to * CHANNELS).zip(pixels.par_chunks_exact(from * CHANNELS)).for_each(
        |(out, row)| {
            for (pixel, taps) in out.chunks_exact_mut(CHANNELS).zip(&taps) {
                for (channel, byte) in pixel.iter_mut().enumerate() {
                    *byte = sum(&row[taps.inputs.start * CHANNELS + channel..], CHANNELS, &taps.weights);
                }
            }
        },
    );
    out
}

/// Resizes all columns of a picture `width` pixels wide from `from` to `to` pixels.
fn heightened(pixels: &[u8], width: usize, from: usize, to: usize, filter: Filter) -> Vec<u8> {
    if from == to || to == 0 {
        return pixels.to_vec();
    }
    let stride = width * CHANNELS;
    let mut out = vec![0; stride * to];
    out.par_chunks_exact_mut(stride).zip(taps(filter, from, to)).for_each(|(out, taps)| {
        for (place, byte) in out.iter_mut().enumerate() {
            *byte = sum(&pixels[taps.inputs.start * stride + place..], stride, &taps.weights);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gradient(width: usize, height: usize) -> Picture {
        let byte = |place: usize| (place * 7 % 256) as u8;
        Picture::new(width, height, (0..width * height * CHANNELS).map(byte).collect()).unwrap()
    }

    #[test]
    fn a_picture_of_one_colour_keeps_it_at_every_size() {
        let grey = Picture::new(5, 7, vec![93; 105]).unwrap();
        for filter in [Filter::Bilinear, Filter::Bicubic, Filter::Lanczos3] {
            for (width, height) in [(1, 1), (5, 7), (16, 3), (2, 40)] {
                let resized = resized(&grey, width, height, filter).unwrap();
                assert!(resized.pixels().iter().all(|&byte| byte == 93), "{filter:?} {width} x {height}");
            }
        }
    }

    #[test]
    fn the_same_size_changes_nothing_and_a_side_of_0_is_refused() {
        let picture = gradient(9, 4);
        assert_eq!(resized(&picture, 9, 4, Filter::Lanczos3).unwrap(), picture);
        assert!(resized(&picture, 0, 4, Filter::Bicubic).is_err());
        assert!(resized(&picture, 4, 0, Filter::Bicubic).is_err());
    }
}
