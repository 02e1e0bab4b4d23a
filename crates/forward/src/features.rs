//! Hidden states that a pass returns beside its logits, for drafters that read them. Computes
//! nothing.

use foretoken_model::ModelConfig;

/// Hidden states of a model to return.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taps {
    /// Layers whose input states are returned, ascending. The number of layers stands for the
    /// output of the last one.
    pub entering: Vec<usize>,
    /// The state after the final norm, which the output matrix multiplies.
    pub last: bool,
    /// Layers whose keys and values are returned, with RoPE applied as they are cached. Each has a
    /// KV cache of its own.
    pub cached: Vec<usize>,
}

impl Taps {
    pub fn is_empty(&self) -> bool {
        self.entering.is_empty() && !self.last && self.cached.is_empty()
    }

    /// Returns whether only inputs of the first `layers` layers are tapped.
    pub fn is_early(&self, layers: usize) -> bool {
        !self.last && self.cached.is_empty() && !self.entering.contains(&layers)
    }

    /// Hidden states per token.
    pub fn states(&self) -> usize {
        self.entering.len() + usize::from(self.last)
    }

    /// Numbers per token, for a model with `config`.
    pub fn width(&self, config: &ModelConfig) -> usize {
        let cached = self.cached.iter().filter_map(|&layer| Some(config.cached_keys(layer)?.cached()));
        self.states_width(config) + cached.sum::<usize>()
    }

    /// Numbers per token, without keys and values.
    pub fn states_width(&self, config: &ModelConfig) -> usize {
        let last = if self.last { config.carried() } else { 0 };
        self.entering.len() * config.hidden + last
    }
}

/// A row per token: its tapped states one after the other, in the order of [`Taps`]. A cached layer
/// contributes the keys of all heads, then the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features<'a> {
    rows: &'a [f32], // [tokens, width]
    width: usize,
}

/// Input of a draft head for each token, beside the token itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HeadInput<'a> {
    /// The target's states at the previous token, which the head fuses. They are those at the token
    /// itself for heads that draft blocks or attend to the target's KV cache.
    Target(Features<'a>),
    /// The head's own output at the previous token.
    Own(Features<'a>),
}

impl<'a> HeadInput<'a> {
    /// A row for each node to run.
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

    /// Numbers per row.
    pub fn width(&self) -> usize {
        self.width
    }
}
