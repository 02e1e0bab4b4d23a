//! Sketches of logit rows that stay on their device: the largest logit and its token for every
//! slice of 64 tokens, the softmax denominator, and a requested subset of logits. Anything else is
//! fetched on demand. A row of 128,000 tokens is 512 KB, its sketch 16 KB, and all sketches of a
//! pass arrive in one transfer. Each engine computes them in its own way.
//!
//! Of equal logits the first token counts, except on CUDA, whose kernel takes any within a slice.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Debug;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::logits::Peak;
use super::slices::SLICE;

/// Subset of each row that will be read, so that a device returns no more. Only a hint: everything
/// else can still be fetched, at a cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum LogitSubset {
    /// Whole rows.
    #[default]
    Everything,
    /// The likeliest token, and probabilities of the pass's tokens.
    Peaks,
    /// As [`Self::Peaks`], plus the tokens at most `margin` below the highest logit, the `top`
    /// highest ones, and the sum of e^((logit - largest) / temperature).
    Likely { temperature: f32, margin: f32, top: usize },
}

/// A row in a device's memory.
pub trait DeviceRow: Debug + Send {
    /// Fetches the whole row, `[vocabulary]`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn fetch(&self) -> Result<Vec<f32>>;
}

/// Part of a row that a device returned.
#[derive(Debug)]
pub struct SketchData {
    pub peak: Peak,
    pub maxima: Vec<f32>,      // [slices]
    pub leaders: Vec<TokenId>, // [slices]
    /// A sum of e^(scale (logit - largest)), and its scale.
    pub scaled: Option<(f32, f32)>,
    /// Logits of the pass's tokens.
    pub logits: Vec<(TokenId, f32)>,
}

/// A row with the part that is on this side.
#[derive(Debug)]
pub struct Sketch {
    row: Box<dyn DeviceRow>,
    vocabulary: usize,
    data: SketchData,
    slices: HashMap<usize, Vec<f32>>, // [SLICE]
    whole: OnceCell<Vec<f32>>,        // [vocabulary]
}

impl Sketch {
    pub fn new(row: Box<dyn DeviceRow>, vocabulary: usize, data: SketchData) -> Self {
        Self { row, vocabulary, data, slices: HashMap::new(), whole: OnceCell::new() }
    }

    /// Scale of the second sum that `subset` asks for, beside the peak's own.
    pub fn scale(subset: LogitSubset) -> Option<f32> {
        match subset {
            LogitSubset::Likely { temperature, .. } if temperature != 1.0 => Some(1.0 / temperature),
            _ => None,
        }
    }

    pub fn peak(&self) -> Peak {
        self.data.peak
    }

    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The likeliest tokens of the `count` slices with the largest logits, and these logits,
    /// highest first.
    pub fn leaders(&self, count: usize) -> Vec<(TokenId, f32)> {
        let slices = self.highest(count).into_iter();
        slices.map(|slice| (self.data.leaders[slice], self.data.maxima[slice])).collect()
    }

    /// Logit of a token, if it was returned.
    pub fn logit(&self, token: TokenId) -> Option<f32> {
        let slice = token as usize / SLICE;
        if self.data.leaders.get(slice) == Some(&token) {
            return Some(self.data.maxima[slice]);
        }
        let found = self.data.logits.iter().find(|&&(other, _)| other == token);
        found.map(|&(_, logit)| logit).or_else(|| Some(self.slices.get(&slice)?[token as usize % SLICE]))
    }

    /// Sum of e^(scale (logit - largest)), if it was returned.
    pub fn sum_exp(&self, scale: f32) -> Option<f32> {
        self.data.scaled.filter(|&(known, _)| known == scale).map(|(_, sum)| sum)
    }

    /// The slices with the `count` highest logits, each with its first token, if they were
    /// returned.
    pub fn top_slices(&self, count: usize) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        let mut highest = self.highest(count);
        highest.sort_unstable();
        self.fetched(highest)
    }

    /// The slices with the `count` highest logits among tokens that `keep` accepts, if they were
    /// returned.
    pub fn top_slices_of(
        &self,
        count: usize,
        keep: impl Fn(TokenId) -> bool,
    ) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        // As many slices have a likeliest token that is kept; no other slice has a higher one.
        let passed_over = self.data.leaders.iter().filter(|&&leader| !keep(leader)).count();
        let mut highest = self.highest(count + passed_over);
        highest.sort_unstable();
        self.fetched(highest)
    }

    /// The slices with all logits of at least `least`, each with its first token, if they were
    /// returned.
    pub fn slices_at_least(&self, least: f32) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        let wanted = (0..self.data.maxima.len()).filter(|&slice| self.data.maxima[slice] >= least);
        self.fetched(wanted.collect())
    }

    /// The whole row, fetched on first use.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn logits(&self) -> Result<&[f32]> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let fetched = self.row.fetch()?;
        Ok(self.whole.get_or_init(|| fetched))
    }

    #[cfg(test)]
    pub fn is_fetched(&self) -> bool {
        self.whole.get().is_some()
    }

    fn fetched(&self, wanted: Vec<usize>) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        let vocabulary = self.vocabulary();
        let find = |slice: usize| -> Option<(usize, &[f32])> {
            let start = slice * SLICE;
            // The last slice may be longer than the rest of the vocabulary.
            Some((start, &self.slices.get(&slice)?[..SLICE.min(vocabulary - start)]))
        };
        let found: Option<Vec<_>> = wanted.into_iter().map(find).collect();
        found.map(Vec::into_iter)
    }

    /// Indices of the `count` slices with the largest logits, largest first, the lower one first of
    /// equals.
    fn highest(&self, count: usize) -> Vec<usize> {
        let descending = |&left: &usize, &right: &usize| {
            self.data.maxima[right].total_cmp(&self.data.maxima[left]).then(left.cmp(&right))
        };
        let mut slices: Vec<usize> = (0..self.data.maxima.len()).collect();
        let count = count.min(slices.len());
        if (1..slices.len()).contains(&count) {
            slices.select_nth_unstable_by(count - 1, descending);
        }
        slices.truncate(count);
        slices.sort_unstable_by(descending);
        slices
    }

    /// Slices that `subset` covers, and slices of `tokens` (ascending) whose logits will change,
    /// ascending.
    pub fn likely_slices(&self, subset: LogitSubset, tokens: &[TokenId]) -> Vec<usize> {
        let slices = self.data.maxima.len();
        let of_tokens = tokens.iter().map(|&token| token as usize / SLICE).filter(|&slice| slice < slices);
        let mut wanted: Vec<usize> = of_tokens.collect();
        // The runner-up of a changed token may become the likeliest.
        let is_changed = |leader: &&TokenId| tokens.binary_search(leader).is_ok();
        let changed = self.data.leaders.iter().filter(is_changed).count();
        match subset {
            LogitSubset::Likely { margin, top, .. } => {
                let least = self.data.peak.largest - margin;
                wanted.extend((0..slices).filter(|&slice| self.data.maxima[slice] >= least));
                wanted.extend(self.highest(if top > 0 || changed > 0 { top.max(1) + changed } else { 0 }));
            }
            _ if changed > 0 => wanted.extend(self.highest(1 + changed)),
            _ => {}
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Adds slices that were fetched later.
    pub fn add_slices(&mut self, slices: impl IntoIterator<Item = (usize, Vec<f32>)>) {
        self.slices.extend(slices);
    }
}
