//! Sizes and tiles of a picture for a vision model, by the rules of transformers' processors.

use foretoken_model::error::{Error, Result};
use foretoken_model::{Detail, GEMMA_EMBEDDINGS, Picture, Projector, VisionConfig};

use crate::resample::{Filter, resized};

/// Embeddings of a picture at low and at normal detail, at most.
const LOW: usize = 100;
const NORMAL: usize = 256;

/// Embeddings of a picture at low detail for Gemma 4, which was trained with this number.
const GEMMA_LOW: usize = 70;

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
                let most = limit(detail).map_or(most, |embeddings| most.min(embeddings * area));
                let (width, height) = within_area(width, height, config.unit(), least.min(most), most);
                Self::Whole { width, height }
            }
            Projector::Gemma4 { embeddings } => {
                let embeddings = match detail {
                    Detail::Low => GEMMA_LOW,
                    Detail::Normal => embeddings,
                    Detail::High => GEMMA_EMBEDDINGS,
                };
                let (width, height) = filling(width, height, config.unit(), embeddings);
                Self::Whole { width, height }
            }
            Projector::Pixtral { longest, .. } => {
                let side = |embeddings: usize| embeddings.isqrt() * config.unit();
                let longest = limit(detail).map_or(longest, |embeddings| longest.min(side(embeddings)));
                let (width, height) = below_longest(width, height, config.unit(), longest);
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

/// Embeddings of a picture at most; `None` for as many as the model takes.
fn limit(detail: Detail) -> Option<usize> {
    match detail {
        Detail::Low => Some(LOW),
        Detail::Normal => Some(NORMAL),
        Detail::High => None,
    }
}

/// Largest size of whole units per side with the picture's ratio and at most this many units.
fn filling(width: usize, height: usize, unit: usize, units: usize) -> (usize, usize) {
    let [x, y] = [width, height].map(|side| side as f64);
    let factor = ((units * unit * unit) as f64 / (x * y)).sqrt();
    let whole = |side: f64| (factor * side / unit as f64).floor() as usize;
    let long = |ratio: f64| (ratio.floor() as usize).min(units);
    let (columns, rows) = match (whole(x), whole(y)) {
        (columns, 0) if columns > 0 => (long(x / y), 1),
        (0, rows) if rows > 0 => (1, long(y / x)),
        (columns, rows) => (columns.max(1), rows.max(1)),
    };
    (columns * unit, rows * unit)
}

/// Size with no edge above `longest`, up to whole units per side.
fn below_longest(width: usize, height: usize, unit: usize, longest: usize) -> (usize, usize) {
    let ratio = (height as f64 / longest as f64).max(width as f64 / longest as f64);
    let scaled = |side: usize| if ratio > 1.0 { (side as f64 / ratio).floor() as usize } else { side };
    let up = |side: usize| scaled(side).max(1).next_multiple_of(unit);
    (up(width), up(height))
}

/// Square of `size` pixels per side at a place.
fn cut(picture: &Picture, x: usize, y: usize, size: usize) -> Result<Picture> {
    let stride = picture.width() * 3;
    let rows = picture.pixels().chunks_exact(stride).skip(y).take(size);
    Picture::new(size, size, rows.flat_map(|row| &row[x * 3..(x + size) * 3]).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes that transformers' functions return, of narrow pictures too.
    #[test]
    fn pictures_are_resized_as_transformers_does() {
        for (width, height, expected) in [
            (1, 200, [(48, 3360), (48, 11_328), (96, 22_704)]),
            (200, 1, [(3360, 48), (11_328, 48), (22_704, 96)]),
            (1000, 7, [(3360, 48), (9600, 48), (19_200, 96)]),
            (3, 5, [(288, 480), (576, 1008), (1200, 2064)]),
            (1920, 1080, [(528, 288), (1056, 576), (2112, 1200)]),
            (16_384, 100, [(3360, 48), (10_272, 48), (20_544, 96)]),
            (640, 641, [(384, 384), (768, 768), (1584, 1584)]),
        ] {
            for (units, expected) in [GEMMA_LOW, 280, GEMMA_EMBEDDINGS].into_iter().zip(expected) {
                assert_eq!(filling(width, height, 48, units), expected, "{width} x {height}, {units}");
            }
        }
        for (width, height, expected) in [
            (1, 200, [(28, 224), (28, 224)]),
            (1000, 7, [(1008, 28), (448, 28)]),
            (3, 5, [(28, 28), (28, 28)]),
            (1920, 1080, [(1540, 868), (448, 252)]),
            (16_384, 100, [(1540, 28), (448, 28)]),
            (640, 641, [(644, 644), (448, 448)]),
        ] {
            for (longest, expected) in [1540, 448].into_iter().zip(expected) {
                assert_eq!(
                    below_longest(width, height, 28, longest),
                    expected,
                    "{width} x {height}, {longest}"
                );
            }
        }
    }
}
