//! Positions of a text with pictures in models with M-RoPE (Wang et al. 2024): a picture's
//! embeddings differ by row and column, and the text goes on behind its longer side.

use foretoken_model::ModelConfig;
use foretoken_model::token::TokenId;

use crate::media::Media;

/// Time, row and column of a position.
pub type Position = [usize; 3];

/// A picture in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grid {
    /// Index of its first embedding.
    at: usize,
    count: usize,
    columns: usize,
    /// Number by which positions behind it are below their indices.
    shift: usize,
}

/// Pictures of a text, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grids(Vec<Grid>);

impl Grids {
    /// Pictures among `tokens`, the first of which has the index `at`, are added.
    pub fn extend(&mut self, at: usize, tokens: impl IntoIterator<Item = TokenId>, media: &Media) {
        for (index, token) in (at..).zip(tokens) {
            if let Some(shape) = media.begins(token) {
                let before = self.0.last().map_or(0, |grid| grid.shift);
                let side = shape.columns.max(shape.count / shape.columns.max(1));
                let shift = before + shape.count.saturating_sub(side);
                self.0.push(Grid { at: index, count: shape.count, columns: shape.columns.max(1), shift });
            }
        }
    }

    /// Drops pictures from index `length` on.
    pub fn truncate(&mut self, length: usize) {
        self.0.retain(|grid| grid.at < length);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Position of an index of the text.
    pub fn position(&self, index: usize) -> Position {
        let behind = self.0.partition_point(|grid| grid.at <= index);
        let Some(number) = behind.checked_sub(1) else { return [index; 3] };
        let Grid { at, count, columns, shift } = self.0[number];
        let Some(place) = Some(index - at).filter(|place| *place < count) else { return [index - shift; 3] };
        let first = at - number.checked_sub(1).map_or(0, |before| self.0[before].shift);
        [first, first + place / columns, first + place % columns]
    }
}

/// Returns true if a model's positions have rows and columns.
pub fn has_grids(config: &ModelConfig) -> bool {
    config.attention_kinds.iter().any(|kind| kind.rotary.sections.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{MediaKey, PictureShape};

    #[test]
    fn text_goes_on_behind_a_pictures_longer_side() {
        let media = Media::default();
        let shape = |count, columns| PictureShape { count, columns, placeholder: 7 };
        let wide = media.ids(MediaKey([1; 32]), shape(6, 3)).unwrap();
        let tall = media.ids(MediaKey([2; 32]), shape(3, 1)).unwrap();
        let tokens: Vec<TokenId> =
            [1, 2].into_iter().chain(wide).chain([3]).chain(tall).chain([4, 5]).collect();
        let mut grids = Grids::default();
        grids.extend(0, tokens.iter().copied(), &media);
        let found: Vec<Position> = (0..tokens.len()).map(|index| grids.position(index)).collect();
        let expected = [
            [0; 3],
            [1; 3],
            [2, 2, 2],
            [2, 2, 3],
            [2, 2, 4],
            [2, 3, 2],
            [2, 3, 3],
            [2, 3, 4],
            [5; 3],
            [6, 6, 6],
            [6, 7, 6],
            [6, 8, 6],
            [9; 3],
            [10; 3],
        ];
        assert_eq!(found, expected);
        grids.truncate(9);
        assert_eq!((grids.position(8), grids.position(9)), ([5; 3], [6; 3]));
    }
}
