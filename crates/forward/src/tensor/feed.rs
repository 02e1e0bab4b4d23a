//! Inputs of a pass in one transfer: tokens, positions and attention masks.

use std::ops::Range;

use candle_core::{DType, Device, Result, Tensor};
use foretoken_model::token::TokenId;
use half::f16;

use crate::MediaRows;
use crate::grids::Position;
use crate::tree::TokenTree;

/// Inputs for the nodes of a tree from some index on.
#[derive(Debug)]
pub struct Feed {
    /// `[nodes]`
    pub ids: Tensor,
    pub positions: Positions,
    /// Added to scores of the tree's own nodes, 0 or [`MASKED`], `[nodes, tree]`; `None` if every
    /// node attends to all before it and itself.
    own: Option<Tensor>,
    /// Tree nodes that each node attends to.
    visible: Vec<Vec<usize>>,
    /// Cached positions before the tree.
    pub cached: usize,
    tree: usize,
    pictures: Option<Pictures>,
}

/// Embeddings of pictures among the nodes.
#[derive(Debug)]
struct Pictures {
    /// 1 for rows of pictures, `[nodes, hidden]`.
    is_picture: Tensor,
    embeddings: Tensor, // [nodes, hidden]
    /// Numbers added to the states after the first layers (DeepStack), `[nodes, hidden]` each.
    added: Vec<Tensor>,
}

/// Positions of nodes in the text.
#[derive(Debug)]
pub enum Positions {
    /// Consecutive positions.
    Consecutive(Range<usize>),
    /// Positions `[nodes]`, and one more than the largest.
    Scattered(Tensor, usize),
    /// Positions by time, row and column.
    Grid(Vec<Position>),
}

/// Mask value that leaves nothing after the softmax. Not -inf, which times 0 is NaN.
const MASKED: f64 = -1e30;

impl Feed {
    /// Inputs for the nodes of `tree` from index `first` on, after `cached` positions.
    pub fn new(tree: &TokenTree, first: usize, cached: usize, device: &Device) -> Result<Self> {
        let nodes = tree.len() - first;
        let positions: Vec<usize> = tree.depths()[first..].iter().map(|depth| cached + depth).collect();
        let visible = tree.visible().split_off(first);
        let consecutive = positions.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let unmasked = visible.iter().all(|attended| attended.len() == tree.len());

        let mut numbers: Vec<u32> = tree.tokens().skip(first).collect();
        if !consecutive {
            numbers.extend(positions.iter().map(|&position| position as u32));
        }
        let before_own = numbers.len();
        if !unmasked {
            let mut masked = vec![1; nodes * tree.len()];
            for (row, attended) in masked.chunks_mut(tree.len()).zip(&visible) {
                attended.iter().for_each(|&node| row[node] = 0);
            }
            numbers.extend(masked);
        }
        let numbers = Tensor::new(numbers, device)?;
        let own = || -> Result<Tensor> {
            let masked = numbers.narrow(0, before_own, nodes * tree.len())?.reshape((nodes, tree.len()))?;
            masked.to_dtype(DType::F32)? * MASKED
        };
        let end = positions.iter().max().map_or(cached, |last| last + 1);
        Ok(Self {
            ids: numbers.narrow(0, 0, nodes)?,
            positions: if consecutive {
                Positions::Consecutive(end - nodes..end)
            } else {
                Positions::Scattered(numbers.narrow(0, nodes, nodes)?, end)
            },
            own: if unmasked { None } else { Some(own()?) },
            visible,
            cached,
            tree: tree.len(),
            pictures: None,
        })
    }

    /// Adds the embeddings of pictures among the nodes, from index `first` on.
    pub fn with_pictures(mut self, media: &MediaRows, first: usize, hidden: usize) -> Result<Self> {
        if media.is_empty() {
            return Ok(self);
        }
        let (nodes, device) = (self.ids.dim(0)?, self.ids.device().clone());
        let is_picture = (0..nodes).map(|row| u8::from(media.row(first + row).is_some()));
        let is_picture = is_picture.flat_map(|is_picture| std::iter::repeat_n(is_picture, hidden)).collect();
        let layers = (0..).take_while(|&layer| media.adds(layer));
        self.pictures = Some(Pictures {
            is_picture: Tensor::from_vec(is_picture, (nodes, hidden), &device)?,
            embeddings: of_rows((0..nodes).map(|row| media.row(first + row)), hidden, &device)?,
            added: layers
                .map(|layer| of_rows((0..nodes).map(|row| media.added(first + row, layer)), hidden, &device))
                .collect::<Result<_>>()?,
        });
        Ok(self)
    }

    /// Replaces the positions by those of a text with pictures, if there are some.
    #[must_use]
    pub fn with_positions(mut self, positions: Option<Vec<Position>>) -> Self {
        if let Some(positions) = positions {
            self.positions = Positions::Grid(positions);
        }
        self
    }

    /// Replaces rows of `embeddings`, `[nodes, hidden]`, by those of pictures.
    pub fn place_pictures(&self, embeddings: Tensor) -> Result<Tensor> {
        match &self.pictures {
            None => Ok(embeddings),
            Some(pictures) => pictures.is_picture.where_cond(&pictures.embeddings, &embeddings),
        }
    }

    /// Adds what pictures have for the states `x`, `[nodes, hidden]`, after layer number `layer`.
    pub fn add_pictures(&self, x: Tensor, layer: usize) -> Result<Tensor> {
        match self.pictures.as_ref().and_then(|pictures| pictures.added.get(layer)) {
            None => Ok(x),
            Some(added) => x + added,
        }
    }

    /// Inputs for tokens that all follow `cached` positions and attend to these, but not to each
    /// other.
    pub fn independent(tokens: &[TokenId], cached: usize, device: &Device) -> Result<Self> {
        let positions = vec![cached as u32; tokens.len()];
        Ok(Self {
            ids: Tensor::new(tokens, device)?,
            positions: Positions::Scattered(Tensor::new(positions, device)?, cached + 1),
            own: None,
            visible: vec![Vec::new(); tokens.len()],
            cached,
            tree: 0,
            pictures: None,
        })
    }

    /// Mask for a layer with this `window`, `[nodes, cached + tree]`; `None` if every node attends
    /// to all before it and itself.
    pub fn mask(&self, window: Option<usize>) -> Result<Option<Tensor>> {
        let device = self.ids.device();
        // A node counts towards its window whether it has a key or not.
        if let Some(window) = window.filter(|&window| window < self.cached + self.tree.max(1)) {
            return self.windowed(window, device).map(Some);
        }
        let Some(own) = &self.own else { return Ok(None) };
        if self.cached == 0 {
            return Ok(Some(own.clone()));
        }
        let attended = Tensor::zeros((self.visible.len(), self.cached), DType::F32, device)?;
        Tensor::cat(&[&attended, own], 1).map(Some)
    }

    /// Mask for a layer in which rows of a block attend to each other, or only to earlier ones if
    /// `causal`. Shape as in [`Self::mask`].
    pub fn mask_of_block(&self, window: Option<usize>, causal: bool) -> Result<Option<Tensor>> {
        let width = self.cached + self.tree;
        let window = window.filter(|&window| window < width);
        if window.is_none() && !causal {
            return Ok(None);
        }
        let mut mask = vec![MASKED as f32; self.tree * width];
        for (row, mask) in (self.cached..).zip(mask.chunks_mut(width)) {
            let from = window.map_or(0, |window| (row + 1).saturating_sub(window));
            let ahead = window.map_or(width, |window| (row + window).min(width));
            mask[from..if causal { row + 1 } else { ahead }].fill(0.0);
        }
        Tensor::from_vec(mask, (self.tree, width), self.ids.device()).map(Some)
    }

    /// Builds the whole mask, cached positions included, for a window that hides some of them.
    fn windowed(&self, window: usize, device: &Device) -> Result<Tensor> {
        let width = self.cached + self.tree;
        let mut mask = vec![MASKED as f32; self.visible.len() * width];
        for (row, visible) in mask.chunks_mut(width).zip(&self.visible) {
            let from = (self.cached + visible.len().max(1)).saturating_sub(window).min(self.cached);
            row[from..self.cached].fill(0.0);
            let own = &visible[visible.len().saturating_sub(window)..];
            own.iter().for_each(|&node| row[self.cached + node] = 0.0);
        }
        Tensor::from_vec(mask, (self.visible.len(), width), device)
    }
}

/// Rows of `hidden` numbers, with zeros where there are none, `[rows, hidden]`.
fn of_rows<'a>(
    rows: impl ExactSizeIterator<Item = Option<&'a [f16]>>,
    hidden: usize,
    device: &Device,
) -> Result<Tensor> {
    let count = rows.len();
    let mut numbers = vec![0f32; count * hidden];
    for (numbers, halves) in numbers.chunks_mut(hidden).zip(rows) {
        let halves = halves.unwrap_or_default();
        numbers.iter_mut().zip(halves).for_each(|(to, half)| *to = half.to_f32());
    }
    Tensor::from_vec(numbers, (count, hidden), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions and nodes that each node attends to.
    fn attended(
        tree: &TokenTree,
        first: usize,
        cached: usize,
        window: Option<usize>,
    ) -> Option<Vec<Vec<usize>>> {
        let feed = Feed::new(tree, first, cached, &Device::Cpu).unwrap();
        let rows: Vec<Vec<f32>> = feed.mask(window).unwrap()?.to_vec2().unwrap();
        let attends = |row: &Vec<f32>| (0..row.len()).filter(|&position| row[position] == 0.0).collect();
        Some(rows.iter().map(attends).collect())
    }

    #[test]
    fn a_node_attends_to_the_cache_its_ancestors_and_itself() {
        let mut tree = TokenTree::chain([7, 8]);
        tree.push(9, Some(0));
        let expected = vec![vec![0, 1, 2], vec![0, 1, 2, 3], vec![0, 1, 2, 4]];
        assert_eq!(attended(&tree, 0, 2, None), Some(expected));
        assert_eq!(attended(&tree, 2, 2, None), Some(vec![vec![0, 1, 2, 4]]));
        let windowed = vec![vec![1, 2], vec![2, 3], vec![2, 4]];
        assert_eq!(attended(&tree, 0, 2, Some(2)), Some(windowed));
        assert_eq!(attended(&tree, 0, 2, Some(5)), attended(&tree, 0, 2, None));
    }

    #[test]
    fn a_single_token_attends_to_everything_within_its_window() {
        let next = TokenTree::chain([7]);
        assert_eq!(attended(&next, 0, 5, None), None);
        assert_eq!(attended(&next, 0, 5, Some(6)), None);
        assert_eq!(attended(&next, 0, 5, Some(3)), Some(vec![vec![3, 4, 5]]));
    }

    #[test]
    fn positions_follow_depth_not_node_index() {
        let mut tree = TokenTree::chain([7, 8]);
        let of = |tree: &TokenTree, first| Feed::new(tree, first, 4, &Device::Cpu).unwrap().positions;
        assert!(matches!(of(&tree, 0), Positions::Consecutive(range) if range == (4..6)));
        tree.push(9, Some(0));
        let Positions::Scattered(positions, end) = of(&tree, 0) else { panic!("not a chain") };
        assert_eq!((positions.to_vec1::<u32>().unwrap(), end), (vec![4, 5, 5], 6));
        assert!(matches!(of(&tree, 2), Positions::Consecutive(range) if range == (5..6)));
    }
}
