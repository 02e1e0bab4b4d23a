//! Row of logits with penalties, without a copy: only the few penalised tokens are handled one by
//! one.

use std::ops::ControlFlow;

use foretoken_forward::Row;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::Penalty;

/// See the module.
#[derive(Debug)]
pub struct Penalised<'a> {
    row: Row<'a>,
    /// Penalised tokens, ascending.
    changed: Vec<Changed>,
    /// Likeliest token and its logit.
    peak: (TokenId, f32),
}

#[derive(Debug, Clone, Copy)]
struct Changed {
    token: TokenId,
    before: f32,
    after: f32,
}

impl<'a> Penalised<'a> {
    /// Applies `penalties`, by ascending token, to a row; tokens that the row does not have are
    /// ignored.
    ///
    /// # Errors
    /// Errors of [`Row::logits`].
    pub fn new(row: Row<'a>, penalties: &[Penalty]) -> Result<Self> {
        let mut changed = Vec::with_capacity(penalties.len());
        for penalty in penalties {
            let before = row.logit(penalty.token)?.filter(|logit| !logit.is_nan());
            let after = before.map(|logit| penalty.apply(logit));
            changed.extend(before.zip(after).map(|(before, after)| Changed {
                token: penalty.token,
                before,
                after,
            }));
        }
        let mut penalised = Self { row, changed, peak: (row.likeliest(), row.largest()) };
        if !penalised.changed.is_empty() {
            penalised.peak = penalised.best(1)?.first().copied().unwrap_or(penalised.peak);
        }
        Ok(penalised)
    }

    fn is_changed(&self, token: TokenId) -> bool {
        self.changed.binary_search_by_key(&token, |changed| changed.token).is_ok()
    }

    /// Token with the highest logit, the first of equals.
    pub fn likeliest(&self) -> TokenId {
        self.peak.0
    }

    /// Highest logit.
    pub fn largest(&self) -> f32 {
        self.peak.1
    }

    /// The `count` highest logits and their tokens, highest first, equal ones by ascending token.
    ///
    /// # Errors
    /// Errors of [`Row::logits`].
    pub fn top(&self, count: usize) -> Result<Vec<(TokenId, f32)>> {
        if count <= 1 { Ok(vec![self.peak]) } else { self.best(count) }
    }

    fn best(&self, count: usize) -> Result<Vec<(TokenId, f32)>> {
        let unchanged = count == 1 && !self.is_changed(self.row.likeliest());
        let mut top = if unchanged || self.changed.is_empty() {
            self.row.top(count)?
        } else {
            self.row.top_of(count, |token| !self.is_changed(token))?
        };
        top.extend(self.changed.iter().map(|changed| (changed.token, changed.after)));
        let descending = |left: &(TokenId, f32), right: &(TokenId, f32)| {
            right.1.total_cmp(&left.1).then(left.0.cmp(&right.0))
        };
        if count < top.len() {
            top.select_nth_unstable_by(count - 1, descending);
            top.truncate(count);
        }
        top.sort_unstable_by(descending);
        Ok(top)
    }

    /// Calls `each` with every token whose logit is at least `least`, ascending, and that logit,
    /// until it breaks.
    ///
    /// # Errors
    /// Errors of [`Row::logits`].
    pub fn at_least(
        &self,
        least: f32,
        mut each: impl FnMut(TokenId, f32) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let mut changed = self.changed.iter().peekable();
        let mut report =
            |token, logit| if logit >= least { each(token, logit) } else { ControlFlow::Continue(()) };
        let found = self.row.at_least(least, |token, logit| {
            while let Some(earlier) = changed.next_if(|changed| changed.token < token) {
                report(earlier.token, earlier.after)?;
            }
            let own = changed.next_if(|changed| changed.token == token);
            report(token, own.map_or(logit, |changed| changed.after))
        })?;
        if found.is_break() {
            return Ok(found);
        }
        Ok(changed.try_for_each(|changed| report(changed.token, changed.after)))
    }

    /// Writes e^(scale (logit - largest)) of all tokens to `out` by their ids, as [`Row::weights`].
    ///
    /// # Errors
    /// Errors of [`Row::logits`].
    pub fn weights(&self, scale: f64, out: &mut Vec<f64>) -> Result<()> {
        self.row.weights(self.largest(), scale, out)?;
        for changed in &self.changed {
            let below = f64::from(changed.after) - f64::from(self.largest());
            out[changed.token as usize] = (below * scale).exp();
        }
        Ok(())
    }

    /// Sum over all tokens of e^(scale (logit - largest)), to about five digits.
    ///
    /// # Errors
    /// Errors of [`Row::logits`].
    pub fn sum_exp(&self, scale: f32) -> Result<f32> {
        if self.changed.is_empty() {
            return self.row.sum_exp(scale);
        }
        if let Some(sum) = self.sum_by_difference(scale) {
            return Ok(sum);
        }
        let after = self.changed.iter().map(|changed| (changed.token, changed.after));
        self.row.sum_exp_with(scale, self.largest(), after)
    }

    /// Sum from the one that a device computed for the row; `None` if there is none or the
    /// penalties leave too little of it.
    fn sum_by_difference(&self, scale: f32) -> Option<f32> {
        let whole = f64::from(self.row.sum_on_device(scale)?);
        let weight = |logit: f32, largest: f32| (f64::from(scale) * f64::from(logit - largest)).exp();
        let own = self.row.largest();
        let gone: f64 = self.changed.iter().map(|changed| weight(changed.before, own)).sum();
        let come: f64 = self.changed.iter().map(|changed| weight(changed.after, self.largest())).sum();
        let shift = weight(own, self.largest());
        let sum = (whole - gone).max(0.0) * shift + come;
        (sum > 0.03 * whole * shift).then_some(sum as f32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_with_penalties_equals_a_modified_copy(
            logits in prop::collection::vec((-20i32..20).prop_map(|n| n as f32 / 2.0), 1..300),
            penalties in prop::collection::btree_map(0u32..320, (-9f32..9.0, 0.5f32..2.0, 0f32..30.0), 0..40),
            count in 1usize..8,
            least in -11f32..11.0,
        ) {
            let penalty = |(token, (bias, factor, less))| Penalty { token, bias, factor, less };
            let penalties: Vec<Penalty> = penalties.into_iter().map(penalty).collect();
            let mut copy = logits.clone();
            for penalty in &penalties {
                copy.iter_mut().skip(penalty.token as usize).take(1).for_each(|logit| *logit = penalty.apply(*logit));
            }
            let (found, expected) = (Penalised::new(Row::of(&logits), &penalties).unwrap(), Row::of(&copy));
            prop_assert_eq!((found.likeliest(), found.largest()), (expected.likeliest(), expected.largest()));
            prop_assert_eq!(found.top(count).unwrap(), expected.top(count).unwrap());
            for scale in [1.0, 1.0 / 0.7] {
                let (found, expected) = (found.sum_exp(scale).unwrap(), expected.sum_exp(scale).unwrap());
                prop_assert!((found / expected - 1.0).abs() < 1e-5, "{} is not {}", found, expected);
            }
            let mut all = (Vec::new(), Vec::new());
            let push = |all: &mut Vec<_>, entry| {
                all.push(entry);
                ControlFlow::Continue(())
            };
            let found_all = found.at_least(least, |token, logit| push(&mut all.0, (token, logit))).unwrap();
            let expected_all = expected.at_least(least, |token, logit| push(&mut all.1, (token, logit))).unwrap();
            prop_assert_eq!((all.0, found_all), (all.1, expected_all));
            let mut weights = (Vec::new(), Vec::new());
            found.weights(1.0 / 0.7, &mut weights.0).unwrap();
            expected.weights(expected.largest(), 1.0 / 0.7, &mut weights.1).unwrap();
            for (found, expected) in weights.0.iter().zip(&weights.1) {
                prop_assert!((found - expected).abs() <= 1e-15 * expected, "{} is not {}", found, expected);
            }
        }
    }
}
