//! Hidden states that a pass hands out beside its logits, for drafters that read them. Computes nothing.

/// Which hidden states of a model are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taps {
    /// The states that enter these layers, ascending; as many as there are layers for what the last one gives.
    pub entering: Vec<usize>,
    /// The state after the final norm, which the output matrix multiplies.
    pub last: bool,
}

impl Taps {
    pub fn is_empty(&self) -> bool {
        self.entering.is_empty() && !self.last
    }

    /// Numbers a token, in a model whose state has `hidden`.
    pub fn width(&self, hidden: usize) -> usize {
        (self.entering.len() + usize::from(self.last)) * hidden
    }
}

/// A row for each token: its tapped states one after the other, in the order of [`Taps`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features<'a> {
    rows: &'a [f32], // [tokens, width]
    width: usize,
}

/// What a draft head is given for each token beside the token itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Carried<'a> {
    /// The target's states at the token before, as the head reads them, which it fuses; those at the token itself where
    /// a head guesses blocks.
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
