//! Sizes and tiles of a picture for a vision model, by the rules of transformers' processors.

use foretoken_model::error::{Error, Result};
use foretoken_model::{Detail, Picture, Projector, VisionConfig};

use crate::resample::{Filter, resized};

/// Embeddings of a picture at low and at normal detail, at most.
const LOW: usize = 100;
const NORMAL: usize = 256;

/// Ratio of a picture's sides, at most.
const MAX_RATIO: usize = 200;

/// Longest edge of a picture before it is cut into tiles, in pixels.
const MAX_EDGE: usize = 4096;

/// Sizes of a picture before it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tiling {
    /// The whole picture at one size.
    Whole { width: usize, height: usize },
    /// The whole picture in a square of `tile` pixels per side, after its longest edge was scaled.
    Square { scaled: (usize, usize), tile: usize },
    /// As before, behind `rows` times `columns` tiles of the picture that was scaled to multiples of
    /// a tile.
    Tiles { scaled: (usize, usize), rows: usize, columns: usize, tile: usize },
}

impl Tiling {
    /// Sizes of a picture of `width` times `height` pixels.
    ///
    /// # Errors
    /// `Error::Picture` for a ratio of sides that no model was trained with.
    pub fn of(config: &VisionConfig, width: usize, height: usize, detail: Detail) -> Result<Self> {
        if width.min(height) == 0 || width.max(height) > MAX_RATIO * width.min(height) {
            let reason =
                format!("{width} x {height} pixels are too narrow: at most {MAX_RATIO} to 1 can be shown");
            return Err(Error::Picture(reason));
        }
        Ok(match config.projector {
            Projector::Idefics3 { tile, longest } => {
                let scaled = scaled_to_edge(width, height, longest);
                match detail {
                    Detail::Low | Detail::Normal => Self::Square { scaled, tile },
                    Detail::High => tiled(scaled.0, scaled.1, tile),
                }
            }
            Projector::Qwen3Vl { least, most } => {
                let area = config.unit() * config.unit();
                let most = match detail {
                    Detail::Low => most.min(LOW * area),
                    Detail::Normal => most.min(NORMAL * area),
                    Detail::High => most,
                };
                let (width, height) = within_area(width, height, config.unit(), least.min(most), most);
                Self::Whole { width, height }
            }
        })
    }

    /// Pictures to encode, in the order of their embeddings.
    ///
    /// # Errors
    /// As [`resized`].
    pub fn tiles(self, picture: &Picture) -> Result<Vec<Picture>> {
        match self {
            Self::Whole { width, height } => Ok(vec![resized(picture, width, height, Filter::Bicubic)?]),
            Self::Square { scaled: (width, height), tile } => {
                let scaled = resized(picture, width, height, Filter::Lanczos3)?;
                Ok(vec![resized(&scaled, tile, tile, Filter::Lanczos3)?])
            }
            Self::Tiles { scaled: (width, height), rows, columns, tile } => {
                let scaled = resized(picture, width, height, Filter::Lanczos3)?;
                let whole = resized(&scaled, columns * tile, rows * tile, Filter::Lanczos3)?;
                let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
                let tiles = places.map(|(row, column)| cut(&whole, column * tile, row * tile, tile));
                tiles.chain([resized(&whole, tile, tile, Filter::Lanczos3)]).collect()
            }
        }
    }
}

/// Tiles of a picture that was scaled to its longest edge: one if it fits into a tile.
fn tiled(width: usize, height: usize, tile: usize) -> Tiling {
    let ratio = width as f64 / height as f64;
    let up = |side: usize| side.div_ceil(tile) * tile;
    let (columns, rows) = if width >= height {
        let width = up(width);
        (width / tile, up((width as f64 / ratio) as usize) / tile)
    } else {
        let height = up(height);
        (up((height as f64 * ratio) as usize) / tile, height / tile)
    };
    match (rows, columns) {
        (1, 1) => Tiling::Square { scaled: (width, height), tile },
        _ => Tiling::Tiles { scaled: (width, height), rows, columns, tile },
    }
}

/// Size with the longest edge of `longest` pixels and an even shorter one.
fn scaled_to_edge(width: usize, height: usize, longest: usize) -> (usize, usize) {
    let ratio = width as f64 / height as f64;
    let even = |side: f64| (side as usize).next_multiple_of(2).max(1);
    let (width, height) = match width >= height {
        true => (longest, even(longest as f64 / ratio)),
        false => (even(longest as f64 * ratio), longest),
    };
    below_edge(width, height)
}

/// Size with no edge above [`MAX_EDGE`].
fn below_edge(width: usize, height: usize) -> (usize, usize) {
    let ratio = width as f64 / height as f64;
    if width >= height && width > MAX_EDGE {
        (MAX_EDGE, ((MAX_EDGE as f64 / ratio) as usize).max(1))
    } else if height > MAX_EDGE {
        (((MAX_EDGE as f64 * ratio) as usize).max(1), MAX_EDGE)
    } else {
        (width, height)
    }
}

/// Size of whole units per side, near the picture's ratio, with an area within limits in pixels.
fn within_area(width: usize, height: usize, unit: usize, least: usize, most: usize) -> (usize, usize) {
    let (area, unit_size) = (width as f64 * height as f64, unit as f64);
    // To the nearest even number of units, as Python rounds.
    let near = |side: usize| (side as f64 / unit_size).round_ties_even() as usize * unit;
    let (near_width, near_height) = (near(width), near(height));
    let scaled = |side: usize, factor: f64| side as f64 * factor / unit_size;
    if near_width * near_height > most {
        let factor = (area / most as f64).sqrt();
        let down = |side: usize| ((side as f64 / factor / unit_size).floor() as usize * unit).max(unit);
        (down(width), down(height))
    } else if near_width * near_height < least {
        let factor = (least as f64 / area).sqrt();
        let up = |side: usize| scaled(side, factor).ceil() as usize * unit;
        (up(width), up(height))
    } else {
        (near_width, near_height)
    }
}

/// Square of `size` pixels per side at a place.
fn cut(picture: &Picture, x: usize, y: usize, size: usize) -> Result<Picture> {
    let stride = picture.width() * 3;
    let rows = picture.pixels().chunks_exact(stride).skip(y).take(size);
    Picture::new(size, size, rows.flat_map(|row| &row[x * 3..(x + size) * 3]).copied().collect())
}
