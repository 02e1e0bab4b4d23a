//! Pixels of a picture as a transformer reads them: normalised, and cut into patches.

use candle_core::{Device, Tensor};
use foretoken_model::error::Result;
use foretoken_model::{Picture, Projector, VisionConfig};

/// Patches of a picture.
pub(super) struct Patches {
    /// Normalised pixels of each patch, channel by channel, `[patches, 3 * patch * patch]`.
    pub pixels: Tensor,
    /// Row and column of each patch, in the order of `pixels`.
    pub places: Vec<(usize, usize)>,
    /// Patches per column and per row of the picture.
    pub rows: usize,
    pub columns: usize,
}

impl Patches {
    /// Cuts a picture whose sides are multiples of merged patches.
    ///
    /// # Errors
    /// `Error::Compute` without memory.
    pub fn of(picture: &Picture, config: &VisionConfig) -> Result<Self> {
        let patch = config.patch;
        let (rows, columns) = (picture.height() / patch, picture.width() / patch);
        let places = match config.projector {
            Projector::Qwen3Vl { .. } => in_blocks(rows, columns, config.merge),
            Projector::Idefics3 { .. } | Projector::Gemma4 { .. } | Projector::Pixtral { .. } => {
                in_blocks(rows, columns, 1)
            }
        };
        let values = [0, 1, 2].map(|channel| normalised(config.mean[channel], config.deviation[channel]));
        let stride = picture.width() * 3;
        let mut pixels = Vec::with_capacity(picture.pixels().len());
        for &(row, column) in &places {
            for (channel, values) in values.iter().enumerate() {
                for y in row * patch..(row + 1) * patch {
                    let line = &picture.pixels()[y * stride..][column * patch * 3..(column + 1) * patch * 3];
                    let bytes = line.iter().skip(channel).step_by(3);
                    pixels.extend(bytes.map(|&byte| values[usize::from(byte)]));
                }
            }
        }
        let pixels = Tensor::from_vec(pixels, (places.len(), 3 * patch * patch), &Device::Cpu)?;
        Ok(Self { pixels, places, rows, columns })
    }
}

/// Number of each byte: scaled to 0 to 1, without the mean, by the deviation.
fn normalised(mean: f32, deviation: f32) -> [f32; 256] {
    std::array::from_fn(|byte| ((byte as f64 * (1.0 / 255.0)) as f32 - mean) / deviation)
}

/// Places of patches by rows of blocks, `merge` patches per side.
fn in_blocks(rows: usize, columns: usize, merge: usize) -> Vec<(usize, usize)> {
    let mut places = Vec::with_capacity(rows * columns);
    for block_row in (0..rows).step_by(merge) {
        for block_column in (0..columns).step_by(merge) {
            for row in block_row..block_row + merge {
                places.extend((block_column..block_column + merge).map(|column| (row, column)));
            }
        }
    }
    places
}
