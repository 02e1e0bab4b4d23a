//! Logits that a pass returns: a score for every token of the vocabulary. Each row carries its
//! peak, a by-product of the pass that greedy decoding and displayed probabilities need.

use std::ops::ControlFlow;

use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::cpu::{exp, exponentials, stretches, sum_exp, sum_exp_with};
use super::sketch::Sketch;
use super::slices::{SLICE, STRETCH, largest_of, sum_of_parts};

/// Number from which GPUs search for the highest logit.
const LOWEST: f32 = -3.4e38;

/// A row for each requested node; valid until the model's next pass.
#[derive(Debug, Clone, Copy)]
pub struct Logits<'a>(Rows<'a>);

#[derive(Debug, Clone, Copy)]
enum Rows<'a> {
    InMemory {
        values: &'a [f32], // [rows, stride]
        vocabulary: usize,
        stride: usize,
        peaks: &'a [Peak], // [rows]
    },
    OnDevice(&'a [Sketch]),
}

/// Scores of the token after one node. What is not in this computer's memory is fetched on demand,
/// which can fail.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    values: Values<'a>,
    peak: Peak,
    /// Token of each value, ascending; `None` if values are those of the tokens from 0 on.
    tokens: Option<&'a [TokenId]>,
}

#[derive(Debug, Clone, Copy)]
enum Values<'a> {
    InMemory(&'a [f32]), // [vocabulary]
    OnDevice(&'a Sketch),
}

/// The likeliest token of a row, and the denominator of its softmax.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    pub(super) token: TokenId,
    /// Logit of `token`.
    pub(super) largest: f32,
    /// Sum of e^(logit - largest).
    pub(super) sum: f32,
}

impl Peak {
    /// Combines slices of `size` logits; each is its largest logit and its sum of e^(logit -
    /// largest).
    pub(super) fn of_slices(logits: &[f32], slices: &[(f32, f32)], size: usize) -> Self {
        let largest = slices.iter().fold(f32::NEG_INFINITY, |largest, slice| largest.max(slice.0));
        let sum = sum_of_parts(slices.iter().copied(), largest, 1.0);
        let first = slices.iter().position(|slice| slice.0 == largest).unwrap_or(0) * size;
        let found = logits[first..].iter().position(|&logit| logit == largest);
        match found {
            Some(offset) => Self { token: (first + offset) as TokenId, largest, sum },
            // Some logits are NaN, which the kernels ignore.
            None => Self::plain(logits),
        }
    }

    /// Computes the peak of a whole row, with the bits that a pass gives it.
    pub fn of(logits: &[f32]) -> Self {
        if logits.iter().fold(false, |any, logit| any | logit.is_nan()) {
            return Self::plain(logits);
        }
        Self::of_slices(logits, &stretches(logits), STRETCH)
    }

    /// Computes the peak one by one; its sum is NaN if a logit is.
    #[allow(
        clippy::disallowed_methods,
        reason = "rows of a pass have sums of the kernels, except those with NaN"
    )]
    fn plain(logits: &[f32]) -> Self {
        let token = likeliest(logits);
        let largest = logits[token as usize];
        Self { token, largest, sum: logits.iter().map(|logit| (logit - largest).exp()).sum() }
    }
}

impl<'a> Logits<'a> {
    /// Rows with their `peaks`, one after the other.
    pub fn of(values: &'a [f32], peaks: &'a [Peak]) -> Self {
        let vocabulary = values.len() / peaks.len().max(1);
        Self::new(values, vocabulary, vocabulary, peaks)
    }

    /// Rows of `vocabulary` numbers, `stride` apart.
    pub(super) fn new(values: &'a [f32], vocabulary: usize, stride: usize, peaks: &'a [Peak]) -> Self {
        Self(Rows::InMemory { values, vocabulary, stride, peaks })
    }

    pub(super) fn on_device(rows: &'a [Sketch]) -> Self {
        Self(Rows::OnDevice(rows))
    }

    pub fn row(&self, index: usize) -> Row<'a> {
        match self.0 {
            Rows::InMemory { values, vocabulary, stride, peaks } => {
                let values = Values::InMemory(&values[index * stride..][..vocabulary]);
                Row { values, peak: peaks[index], tokens: None }
            }
            Rows::OnDevice(rows) => {
                Row { values: Values::OnDevice(&rows[index]), peak: rows[index].peak(), tokens: None }
            }
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self.0 {
            Rows::InMemory { peaks, .. } => peaks.len(),
            Rows::OnDevice(rows) => rows.len(),
        }
    }
}

/// Rows that cannot be fetched equal none.
impl PartialEq for Logits<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same =
            |row| matches!((self.row(row).logits(), other.row(row).logits()), (Ok(a), Ok(b)) if a == b);
        self.rows() == other.rows() && (0..self.rows()).all(same)
    }
}

impl<'a> Row<'a> {
    pub fn of(logits: &'a [f32]) -> Self {
        Self { values: Values::InMemory(logits), peak: Peak::of(logits), tokens: None }
    }

    /// Restricts the row to `tokens` (ascending); values now refer to that list.
    #[must_use]
    pub fn restricted_to(self, tokens: &'a [TokenId]) -> Self {
        Self { tokens: Some(tokens), ..self }
    }

    /// Token of the value with this index.
    fn token(&self, value: TokenId) -> TokenId {
        self.tokens.map_or(value, |tokens| tokens[value as usize])
    }

    pub(super) fn peak(&self) -> Peak {
        self.peak
    }

    /// The values, `[vocabulary]`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails to return them, as for all methods that may fetch.
    pub fn logits(&self) -> Result<&'a [f32]> {
        match self.values {
            Values::InMemory(logits) => Ok(logits),
            Values::OnDevice(sketch) => sketch.logits(),
        }
    }

    /// The token with the highest logit, the first of equals.
    pub fn likeliest(&self) -> TokenId {
        self.token(self.peak.token)
    }

    /// The highest logit.
    pub fn largest(&self) -> f32 {
        self.peak.largest
    }

    /// Returns true if a token can be chosen from the row: its highest logit is finite. GPUs return
    /// the lowest number for a row of NaN.
    pub fn is_usable(&self) -> bool {
        self.peak.largest.is_finite() && self.peak.largest > LOWEST
    }

    /// The `count` highest logits and their tokens, highest first, the lower id first of equals.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn top(&self, count: usize) -> Result<Vec<(TokenId, f32)>> {
        if count <= 1 {
            return Ok(vec![(self.likeliest(), self.peak.largest)]);
        }
        let mut best = Best::new(count);
        if let Values::OnDevice(sketch) = self.values
            && let Some(slices) = sketch.top_slices(count)
        {
            slices.for_each(|(start, slice)| best.add(start, slice));
        } else {
            let slices = (0..).step_by(SLICE).zip(self.logits()?.chunks(SLICE));
            slices.for_each(|(start, slice)| best.add(start, slice));
        }
        best.tokens.iter_mut().for_each(|(token, _)| *token = self.token(*token));
        Ok(best.tokens)
    }

    /// Restricts [`Self::top`] to tokens that `keep` accepts.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn top_of(&self, count: usize, keep: impl Fn(TokenId) -> bool) -> Result<Vec<(TokenId, f32)>> {
        let keeps = |value| keep(self.token(value));
        let mut best = Best::new(count);
        if let Values::OnDevice(sketch) = self.values
            && let Some(slices) = sketch.top_slices_of(count, keeps)
        {
            slices.for_each(|(start, slice)| best.add_kept(start, slice, keeps));
        } else {
            let slices = (0..).step_by(SLICE).zip(self.logits()?.chunks(SLICE));
            slices.for_each(|(start, slice)| best.add_kept(start, slice, keeps));
        }
        best.tokens.iter_mut().for_each(|(token, _)| *token = self.token(*token));
        Ok(best.tokens)
    }

    /// The `count` likeliest tokens and their probabilities, likeliest first. On a device they are
    /// the likeliest of as many slices: nearly always the same tokens, and no fetch is needed.
    pub fn leaders(&self, count: usize) -> Vec<(TokenId, f32)> {
        let leaders = match self.values {
            Values::OnDevice(sketch) => {
                let name = |(value, logit)| (self.token(value), logit);
                sketch.leaders(count).into_iter().map(name).collect()
            }
            Values::InMemory(_) => self.top(count).unwrap_or_default(),
        };
        leaders.into_iter().map(|(token, logit)| (token, self.softmax(logit))).collect()
    }

    /// Calls `each` with every token whose logit is at least `least`, ascending, and its logit,
    /// until it breaks.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn at_least(
        &self,
        least: f32,
        mut each: impl FnMut(TokenId, f32) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut report = |(start, slice): (usize, &[f32])| {
            let mut tokens = (start..).zip(slice).filter(|&(_, &logit)| logit >= least);
            tokens.try_for_each(|(token, &logit)| each(self.token(token as TokenId), logit))
        };
        if let Values::OnDevice(sketch) = self.values
            && let Some(mut slices) = sketch.slices_at_least(least)
        {
            return Ok(slices.try_for_each(report));
        }
        let slices = (0..).step_by(SLICE).zip(self.logits()?.chunks(SLICE));
        Ok(slices.filter(|(_, slice)| largest_of(slice) >= least).try_for_each(&mut report))
    }

    /// Sum over all tokens of e^(scale (logit - largest)), to six digits.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn sum_exp(&self, scale: f32) -> Result<f32> {
        if scale == 1.0 {
            return Ok(self.peak.sum);
        }
        if let Values::OnDevice(sketch) = self.values
            && let Some(sum) = sketch.sum_exp(scale)
        {
            return Ok(sum);
        }
        Ok(sum_exp(self.logits()?, self.peak.largest, scale))
    }

    /// Sum over all tokens of e^(scale (logit - largest)), with the logits of `others` replaced.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn sum_exp_with(
        &self,
        scale: f32,
        largest: f32,
        others: impl Iterator<Item = (TokenId, f32)>,
    ) -> Result<f32> {
        let mut others: Vec<(usize, f32)> =
            others.filter_map(|(token, logit)| Some((self.value(token)?, logit))).collect();
        others.sort_unstable_by_key(|&(value, _)| value);
        Ok(sum_exp_with(self.logits()?, &others, largest, scale))
    }

    /// Writes e^(scale (logit - largest)) of all tokens to `out` by their ids; 0 for NaN, for
    /// weights below e^-708 and for tokens that the row does not cover.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn weights(&self, largest: f32, scale: f64, out: &mut Vec<f64>) -> Result<()> {
        let logits = self.logits()?;
        let last = self.tokens.and_then(|tokens| tokens.last());
        out.resize(last.map_or(logits.len(), |&last| last as usize + 1), 0.0);
        let (values, rest) = out.split_at_mut(logits.len());
        exponentials(logits, largest, scale, values);
        rest.fill(0.0);
        // Tokens ascend, so a value moves to the right of all that are still to be moved.
        for (value, &token) in self.tokens.unwrap_or_default().iter().enumerate().rev() {
            let weight = std::mem::take(&mut out[value]);
            out[token as usize] = weight;
        }
        Ok(())
    }

    /// Value of [`Self::sum_exp`] if a device returned it.
    pub fn sum_on_device(&self, scale: f32) -> Option<f32> {
        match self.values {
            Values::OnDevice(_) if scale == 1.0 => Some(self.peak.sum),
            Values::OnDevice(sketch) => sketch.sum_exp(scale),
            Values::InMemory(_) => None,
        }
    }

    /// Restricts the row to the first `vocabulary` tokens.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn first(self, vocabulary: usize) -> Result<Self> {
        if vocabulary < self.length() { Ok(Self::of(&self.logits()?[..vocabulary])) } else { Ok(self) }
    }

    /// The model's probability of `token` (temperature 1, no filter), for display. 0 if the logits
    /// are NaN or the row does not cover the token.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn probability(&self, token: TokenId) -> Result<f32> {
        Ok(self.logit(token)?.map_or(0.0, |logit| self.softmax(logit)))
    }

    /// Logit of `token`; `None` if the row does not cover it.
    ///
    /// # Errors
    /// As [`Self::logits`].
    pub fn logit(&self, token: TokenId) -> Result<Option<f32>> {
        let Some(value) = self.value(token) else { return Ok(None) };
        let known = match self.values {
            Values::OnDevice(sketch) => sketch.logit(value as TokenId),
            Values::InMemory(_) => None,
        };
        match known {
            Some(logit) => Ok(Some(logit)),
            None => Ok(self.logits()?.get(value).copied()),
        }
    }

    /// Index of a token's value, if the row covers the token.
    fn value(&self, token: TokenId) -> Option<usize> {
        let value = match self.tokens {
            None => token as usize,
            Some(tokens) => tokens.binary_search(&token).ok()?,
        };
        (value < self.length()).then_some(value)
    }

    fn length(&self) -> usize {
        match self.values {
            Values::InMemory(logits) => logits.len(),
            Values::OnDevice(sketch) => sketch.vocabulary(),
        }
    }

    fn softmax(&self, logit: f32) -> f32 {
        let probability = exp(logit - self.peak.largest) / self.peak.sum;
        if probability.is_finite() { probability } else { 0.0 }
    }
}

/// The highest logits so far, highest first.
struct Best {
    tokens: Vec<(TokenId, f32)>,
    count: usize,
    /// Logit that a new entry must exceed.
    least: f32,
}

impl Best {
    fn new(count: usize) -> Self {
        Self { tokens: Vec::with_capacity(count + 1), count, least: f32::NEG_INFINITY }
    }

    fn add(&mut self, start: usize, slice: &[f32]) {
        self.add_kept(start, slice, |_| true);
    }

    /// Adds the slice's logits that belong to the best; few do, so insertion in order is cheap.
    fn add_kept(&mut self, start: usize, slice: &[f32], keeps: impl Fn(TokenId) -> bool) {
        if largest_of(slice) <= self.least {
            return;
        }
        for (token, &logit) in (start..).zip(slice) {
            if logit > self.least && keeps(token as TokenId) {
                let at = self.tokens.partition_point(|&(_, other)| other >= logit);
                self.tokens.insert(at, (token as TokenId, logit));
                self.tokens.truncate(self.count);
                if self.tokens.len() == self.count {
                    self.least = self.tokens[self.count - 1].1;
                }
            }
        }
    }
}

/// The token with the highest logit, the first of equals; NaN counts as lowest.
pub fn likeliest(logits: &[f32]) -> TokenId {
    let mut best = (0, f32::NEG_INFINITY);
    for (token, &logit) in logits.iter().enumerate() {
        if logit > best.1 {
            best = (token, logit);
        }
    }
    best.0 as TokenId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_from_slices_is_the_peak() {
        let logits: Vec<f32> = (0..100).map(|i| ((i * 37) % 61) as f32 / 7.0).collect();
        let slices: Vec<(f32, f32)> = logits
            .chunks(16)
            .map(|slice| {
                let largest = slice.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                (largest, slice.iter().map(|logit| (logit - largest).exp()).sum())
            })
            .collect();
        let (found, expected) = (Peak::of_slices(&logits, &slices, 16), Peak::of(&logits));
        assert_eq!(found.token, expected.token);
        assert!((found.sum / expected.sum - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_peak_of_a_row_of_any_length_is_that_of_its_definition() {
        for length in [1, 15, 16, 17, 4096, 4097, 9001] {
            let logits: Vec<f32> = (0..length).map(|i| ((i * 7919) % 5003) as f32 / 300.0 - 9.0).collect();
            let (found, expected) = (Peak::of(&logits), Peak::plain(&logits));
            assert_eq!((found.token, found.largest), (expected.token, expected.largest));
            assert!((found.sum / expected.sum - 1.0).abs() < 1e-5, "{length}");
        }
    }

    #[test]
    fn weights_of_a_restricted_row_are_those_of_its_tokens() {
        let logits = [1.0, 3.0, f32::NAN, 2.0];
        let mut weights = vec![7.0; 3];
        Row::of(&logits).restricted_to(&[0, 2, 3, 6]).weights(3.0, 0.5, &mut weights).unwrap();
        let expected = [(-1f64).exp(), 0.0, 1.0, 0.0, 0.0, 0.0, (-0.5f64).exp()];
        assert_eq!(weights.len(), expected.len());
        let close = |(found, expected): (&f64, &f64)| (found - expected).abs() <= 1e-15;
        assert!(weights.iter().zip(&expected).all(close), "{weights:?}");
    }

    #[test]
    fn nan_is_never_likeliest() {
        let logits = [f32::NAN, 1.0, 3.0, 3.0];
        assert_eq!(Peak::of_slices(&logits, &[(f32::NAN, f32::NAN)], 4).token, 2);
        assert_eq!(Row::of(&logits).probability(2).unwrap(), 0.0);
        assert!(Row::of(&logits).is_usable());
    }

    #[test]
    fn a_row_without_a_finite_highest_logit_is_not_usable() {
        let low = f32::NEG_INFINITY;
        for row in
            [[f32::NAN; 3], [low; 3], [f32::NAN, low, f32::NAN], [1.0, f32::INFINITY, 0.0], [-3.4e38; 3]]
        {
            assert!(!Row::of(&row).is_usable(), "{row:?}");
        }
        assert!(Row::of(&[f32::NAN, -2.0, low]).is_usable());
    }

    #[test]
    fn the_top_is_in_order_and_the_lower_of_equals_comes_first() {
        let logits = [1.0, 5.0, f32::NAN, 3.0, 5.0, f32::NEG_INFINITY, 3.0];
        let top = |count| -> Vec<TokenId> {
            Row::of(&logits).top(count).unwrap().into_iter().map(|(token, _)| token).collect()
        };
        assert_eq!(top(4), [1, 4, 3, 6]);
        assert_eq!(top(1), [1]);
        assert_eq!(top(9), [1, 4, 3, 6, 0]);
    }

    #[test]
    fn a_row_restricted_to_some_tokens_returns_their_ids() {
        let logits = [1.0, 3.0, 2.0];
        let row = Row::of(&logits).restricted_to(&[4, 70, 900]);
        assert_eq!((row.likeliest(), row.top(2).unwrap()), (70, vec![(70, 3.0), (900, 2.0)]));
        assert_eq!(row.leaders(3).iter().map(|&(token, _)| token).collect::<Vec<_>>(), [70, 900, 4]);
        let mut found = Vec::new();
        let all = row.at_least(2.0, |token, logit| {
            found.push((token, logit));
            ControlFlow::Continue(())
        });
        assert!(all.unwrap().is_continue());
        assert_eq!(found, [(70, 3.0), (900, 2.0)]);
        assert_eq!(row.probability(900).unwrap(), Row::of(&logits).probability(2).unwrap());
        assert_eq!(row.probability(1).unwrap(), 0.0);
    }

    #[test]
    fn fewer_tokens_have_their_own_peak() {
        let logits = [1.0, 2.0, 3.0];
        let row = Row::of(&logits).first(2).unwrap();
        assert_eq!((row.likeliest(), row.logits().unwrap().len()), (1, 2));
        assert!((row.probability(1).unwrap() - 1.0 / (1.0 + (-1f32).exp())).abs() < 1e-6);
    }
}
