//! Hidden states that a pass hands out beside its logits, for drafters that read them. Computes nothing.

use crate::model::ModelConfig;

/// Which hidden states of a model are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taps {
    /// The states that enter these layers, ascending; as many as there are layers for what the last one gives.
    pub entering: Vec<usize>,
    /// The state after the final norm, which the output matrix multiplies.
    pub last: bool,
    /// The keys and the values, turned as they are cached, of these layers, which have some of their own.
    pub cached: Vec<usize>,
}

impl Taps {
    pub fn is_empty(&self) -> bool {
        self.entering.is_empty() && !self.last && self.cached.is_empty()
    }

    /// Whether what enters some of so many layers is all there is.
    pub fn is_early(&self, layers: usize) -> bool {
        !self.last && self.cached.is_empty() && !self.entering.contains(&layers)
    }

    /// Hidden states of a token.
    pub fn states(&self) -> usize {
        self.entering.len() + usize::from(self.last)
    }

    /// Numbers a token, of a model.
    pub fn width(&self, config: &ModelConfig) -> usize {
        let cached = self.cached.iter().map(|&layer| config.attention(layer).keys.cached());
        self.states_width(config) + cached.sum::<usize>()
    }

    /// Numbers a token of the hidden states alone.
    pub fn states_width(&self, config: &ModelConfig) -> usize {
        let last = if self.last { config.carried() } else { 0 };
        self.entering.len() * config.hidden + last
    }
}

/// A row for each token: its tapped states one after the other, in the order of [`Taps`]; of a layer that is cached the
/// keys of all heads, and the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features<'a> {
    rows: &'a [f32], // [tokens, width]
    width: usize,
}

/// What a draft head is given for each token beside the token itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Carried<'a> {
    /// The target's states at the token before, as the head reads them, which it fuses; those at the token itself where
    /// a head guesses blocks or attends to what the target caches.
    Target(Features<'a>),
    /// What it gave itself at the token before.
    Own(Features<'a>),
}

impl<'a> Carried<'a> {
    /// A row for each node that is run.
    pub fn features(&self) -> Features<'a> {
        let (Self::Target(features) | Self::Own(features)) = *self;
        features
    }
}

impl<'a> Features<'a> {
    /// # Panics
    /// If `rows` are not whole rows of `width` numbers.
    pub fn new(rows: &'a [f32], width: usize) -> Self {
        assert!(width > 0 && rows.len().is_multiple_of(width), "{} numbers in rows of {width}", rows.len());
        Self { rows, width }
    }

    pub fn len(&self) -> usize {
        self.rows.len() / self.width
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// `[rows, width]`
    pub fn numbers(&self) -> &'a [f32] {
        self.rows
    }

    /// `[width]`
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.rows[index * self.width..][..self.width]
    }

    /// The rows with these indices, one after the other.
    pub fn gather(&self, indices: &[usize]) -> Vec<f32> {
        indices.iter().flat_map(|&index| self.row(index)).copied().collect()
    }

    /// Numbers a row.
    pub fn width(&self) -> usize {
        self.width
    }
}
