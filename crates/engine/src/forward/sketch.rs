//! What comes back of a row of logits that stays on its device: of every slice of 64 tokens the largest logit
//! and whose it is, what the softmax is divided by, and the few numbers that were said to be of interest.
//! Anything else is fetched when it is asked for. A row of 128,000 tokens is half a megabyte, its sketch
//! sixteen kilobytes, and all sketches of a pass come in one go. How they are made is for each engine to say.
//!
//! Of logits that are exactly equal the first is taken, but on CUDA, whose kernel takes any within a slice.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Debug;

use super::logits::Peak;
use super::slices::SLICE;
use crate::error::Result;
use crate::token::TokenId;

/// What rows will be asked for, so that no more needs to come back from a device. Only a hint: everything can
/// be asked for, at the cost of fetching it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Interest {
    /// Whole rows.
    #[default]
    Everything,
    /// The likeliest token, and probabilities of the tokens of the pass.
    Peaks,
    /// Besides, the tokens at most `margin` below the highest logit, the `top` highest ones, and the sum of
    /// e^((logit - largest) / temperature).
    Likely { temperature: f32, margin: f32, top: usize },
}

/// A row on a device.
pub trait Away: Debug + Send {
    /// All of it, `[vocabulary]`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn fetch(&self) -> Result<Vec<f32>>;
}

/// What came back of a row.
#[derive(Debug)]
pub struct Known {
    pub peak: Peak,
    pub maxima: Vec<f32>,      // [slices]
    pub leaders: Vec<TokenId>, // [slices]
    /// The sum of e^(scale (logit - largest)), and that scale.
    pub scaled: Option<(f32, f32)>,
    /// Of the tokens of the pass.
    pub logits: Vec<(TokenId, f32)>,
}

/// A row.
#[derive(Debug)]
pub struct Sketch {
    row: Box<dyn Away>,
    vocabulary: usize,
    known: Known,
    slices: HashMap<usize, Vec<f32>>, // [SLICE]
    whole: OnceCell<Vec<f32>>,        // [vocabulary]
}

impl Sketch {
    pub fn new(row: Box<dyn Away>, vocabulary: usize, known: Known) -> Self {
        Self { row, vocabulary, known, slices: HashMap::new(), whole: OnceCell::new() }
    }

    /// The scale of a sum that is of `interest` beside that of the peak.
    pub fn scale(interest: Interest) -> Option<f32> {
        match interest {
            Interest::Likely { temperature, .. } if temperature != 1.0 => Some(1.0 / temperature),
            _ => None,
        }
    }

    pub fn peak(&self) -> Peak {
        self.known.peak
    }

    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The likeliest tokens of the `count` slices with the largest logits, and these, highest first.
    pub fn leaders(&self, count: usize) -> Vec<(TokenId, f32)> {
        let slices = self.highest(count).into_iter();
        slices.map(|slice| (self.known.leaders[slice], self.known.maxima[slice])).collect()
    }

    /// A token's logit, if it came back.
    pub fn logit(&self, token: TokenId) -> Option<f32> {
        let slice = token as usize / SLICE;
        if self.known.leaders.get(slice) == Some(&token) {
            return Some(self.known.maxima[slice]);
        }
        let known = self.known.logits.iter().find(|&&(other, _)| other == token);
        known.map(|&(_, logit)| logit).or_else(|| Some(self.slices.get(&slice)?[token as usize % SLICE]))
    }

    /// The sum of e^(scale (logit - largest)), if it came back.
    pub fn sum_exp(&self, scale: f32) -> Option<f32> {
        self.known.scaled.filter(|&(known, _)| known == scale).map(|(_, sum)| sum)
    }

    /// The slices that hold the `count` highest logits, each with its first token, if they came back.
    pub fn top_slices(&self, count: usize) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        let mut highest = self.highest(count);
        highest.sort_unstable();
        self.fetched(highest)
    }

    /// The slices that hold the `count` highest logits of those tokens that `keep` keeps, as far as that can be told
    /// from what came back.
    pub fn top_slices_of(
        &self,
        count: usize,
        keep: impl Fn(TokenId) -> bool,
    ) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        // As many slices have likeliest tokens that are kept, and none beyond them has a higher one.
        let passed_over = self.known.leaders.iter().filter(|&&leader| !keep(leader)).count();
        let mut highest = self.highest(count + passed_over);
        highest.sort_unstable();
        self.fetched(highest)
    }

    /// The slices that hold all logits of at least `least`, each with its first token, if they came back.
    pub fn slices_at_least(&self, least: f32) -> Option<impl Iterator<Item = (usize, &[f32])>> {
        let wanted = (0..self.known.maxima.len()).filter(|&slice| self.known.maxima[slice] >= least);
        self.fetched(wanted.collect())
    }

    /// All of the row, fetched when it is first asked for.
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
            // The last one may be longer than what is left of the vocabulary.
            Some((start, &self.slices.get(&slice)?[..SLICE.min(vocabulary - start)]))
        };
        let found: Option<Vec<_>> = wanted.into_iter().map(find).collect();
        found.map(Vec::into_iter)
    }

    /// The slices with the `count` largest logits, the largest first, of equals the lower one first.
    fn highest(&self, count: usize) -> Vec<usize> {
        let descending = |&left: &usize, &right: &usize| {
            self.known.maxima[right].total_cmp(&self.known.maxima[left]).then(left.cmp(&right))
        };
        let mut slices: Vec<usize> = (0..self.known.maxima.len()).collect();
        let count = count.min(slices.len());
        if (1..slices.len()).contains(&count) {
            slices.select_nth_unstable_by(count - 1, descending);
        }
        slices.truncate(count);
        slices.sort_unstable_by(descending);
        slices
    }

    /// Those slices that are of `interest`, and those of `tokens` (ascending) whose logits will be changed, ascending.
    pub fn likely(&self, interest: Interest, tokens: &[TokenId]) -> Vec<usize> {
        let slices = self.known.maxima.len();
        let of_tokens = tokens.iter().map(|&token| token as usize / SLICE).filter(|&slice| slice < slices);
        let mut wanted: Vec<usize> = of_tokens.collect();
        // What is behind a changed token may be the likeliest.
        let is_changed = |leader: &&TokenId| tokens.binary_search(leader).is_ok();
        let changed = self.known.leaders.iter().filter(is_changed).count();
        match interest {
            Interest::Likely { margin, top, .. } => {
                let least = self.known.peak.largest - margin;
                wanted.extend((0..slices).filter(|&slice| self.known.maxima[slice] >= least));
                wanted.extend(self.highest(if top > 0 || changed > 0 { top.max(1) + changed } else { 0 }));
            }
            _ if changed > 0 => wanted.extend(self.highest(1 + changed)),
            _ => {}
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// Slices with their numbers, which came back later.
    pub fn learn(&mut self, slices: impl IntoIterator<Item = (usize, Vec<f32>)>) {
        self.slices.extend(slices);
    }
}
