//! Sketches of logits in candle tensors.

use candle_core::{D, DType, Result as Computed, Tensor};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use crate::LogitSubset;
use crate::logits::Peak;
use crate::sketch::{DeviceRow, Sketch, SketchData};
use crate::slices::SLICE;

impl DeviceRow for Tensor {
    fn fetch(&self) -> Result<Vec<f32>> {
        // A contiguous copy of the row; without it, the whole underlying tensor would be fetched.
        Ok(self.force_contiguous()?.to_vec1()?)
    }
}

/// Sketches of `rows` of logits, `[rows, vocabulary]`. They include the logits of `tokens` (`ids`
/// on the device), and of `penalised` (ascending) beside the `subset`.
///
/// The CPU waits for the device once, and again if likely tokens have to be fetched.
pub fn sketches(
    rows: &Tensor,
    tokens: &[TokenId],
    ids: &Tensor,
    subset: LogitSubset,
    penalised: &[TokenId],
) -> Computed<Vec<Sketch>> {
    let (count, vocabulary) = rows.dims2()?;
    let by_slice = in_slices(rows)?; // [rows, slices, SLICE]
    let slices = by_slice.dim(1)?;
    let maxima = by_slice.max(D::Minus1)?;
    let leaders = by_slice.argmax(D::Minus1)?.to_dtype(DType::F32)?;
    let below = rows.broadcast_sub(&maxima.max_keepdim(D::Minus1)?)?;
    let sum = below.exp()?.sum_keepdim(D::Minus1)?;
    // A draft model with a smaller vocabulary may run tokens that it has no logits for.
    let beyond = tokens.iter().any(|&token| token as usize >= vocabulary);
    let within = tokens.iter().map(|&token| token.min(vocabulary as TokenId - 1));
    let ids = if beyond { &Tensor::from_iter(within, rows.device())? } else { ids };
    let mut parts = vec![maxima, leaders, sum, rows.index_select(ids, 1)?];
    let scale = Sketch::scale(subset);
    if let Some(scale) = scale {
        parts.push((below * f64::from(scale))?.exp()?.sum_keepdim(D::Minus1)?);
    }
    let found: Vec<Vec<f32>> = Tensor::cat(&parts, 1)?.to_vec2()?;
    let sketch = |(row, found): (usize, &Vec<f32>)| -> Computed<Sketch> {
        let (maxima, rest) = found.split_at(slices);
        let (leaders, rest) = rest.split_at(slices);
        let leaders = leaders.iter().zip((0..).step_by(SLICE));
        let leaders: Vec<TokenId> = leaders.map(|(&at, start)| start + at as TokenId).collect();
        let largest = maxima.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let first = maxima.iter().position(|&maximum| maximum == largest).unwrap_or(0);
        let logits = tokens.iter().copied().zip(rest[1..].iter().copied());
        let logits = logits.filter(|&(token, _)| (token as usize) < vocabulary);
        let data = SketchData {
            peak: Peak { token: leaders[first], largest, sum: rest[0] },
            maxima: maxima.to_vec(),
            leaders,
            scaled: scale.map(|scale| (scale, rest[1 + tokens.len()])),
            logits: logits.collect(),
        };
        Ok(Sketch::new(Box::new(rows.get(row)?), vocabulary, data))
    };
    let mut sketches = found.iter().enumerate().map(sketch).collect::<Computed<Vec<_>>>()?;
    debug_assert!(sketches.len() == count && slices == vocabulary.div_ceil(SLICE));
    fetch_likely(&mut sketches, &by_slice, subset, penalised)?;
    Ok(sketches)
}

/// Reshapes `[rows, vocabulary]` to `[rows, slices, SLICE]`. The last slice is padded with the
/// lowest number, not with -inf, which Metal's fast math does not support.
fn in_slices(rows: &Tensor) -> Computed<Tensor> {
    let (count, vocabulary) = rows.dims2()?;
    let slices = vocabulary.div_ceil(SLICE);
    let missing = slices * SLICE - vocabulary;
    if missing == 0 {
        return rows.reshape((count, slices, SLICE));
    }
    let nothing = Tensor::full(f32::MIN, (count, missing), rows.device())?;
    Tensor::cat(&[rows, &nothing], 1)?.reshape((count, slices, SLICE))
}

/// Fetches the likely slices of all rows in one transfer.
fn fetch_likely(
    sketches: &mut [Sketch],
    by_slice: &Tensor,
    subset: LogitSubset,
    penalised: &[TokenId],
) -> Computed<()> {
    let (rows, slices, _) = by_slice.dims3()?;
    let wanted: Vec<Vec<usize>> =
        sketches.iter().map(|sketch| sketch.likely_slices(subset, penalised)).collect();
    if wanted.iter().all(Vec::is_empty) {
        return Ok(());
    }
    let places = wanted.iter().enumerate();
    let places =
        places.flat_map(|(row, wanted)| wanted.iter().map(move |slice| (row * slices + slice) as u32));
    let places = Tensor::from_iter(places, by_slice.device())?;
    let found = by_slice.reshape((rows * slices, SLICE))?.index_select(&places, 0)?;
    let mut found = found.to_vec2()?.into_iter();
    for (sketch, wanted) in sketches.iter_mut().zip(wanted) {
        sketch.add_slices(wanted.into_iter().zip(&mut found));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use candle_core::Device;
    use proptest::prelude::*;

    use super::*;
    use crate::{Logits, Row};

    /// Subsets that need no further slices, some, or those of many equal logits.
    fn subsets() -> impl Strategy<Value = LogitSubset> {
        let likely = (prop_oneof![Just(0.7f32), Just(1.0)], 0f32..6.0, 0usize..5);
        prop_oneof![
            Just(LogitSubset::Peaks),
            likely.prop_map(|(temperature, margin, top)| LogitSubset::Likely { temperature, margin, top }),
        ]
    }

    proptest! {
        #[test]
        fn a_sketch_gives_the_same_answers_as_the_row(
            // Few distinct numbers, so that there are ties.
            rows in (1usize..300).prop_flat_map(|size| {
                prop::collection::vec(prop::collection::vec((-20i32..20).prop_map(|n| n as f32 / 2.0), size), 1..4)
            }),
            subset in subsets(),
            least in -11f32..11.0,
            count in 1usize..8,
        ) {
            let size = rows[0].len();
            let tokens: Vec<TokenId> = [0, size / 2, size - 1].map(|token| token as TokenId).to_vec();
            // A token of the pass that has no logit.
            let fed: Vec<TokenId> = tokens.iter().copied().chain([size as TokenId + 7]).collect();
            let tensor = Tensor::new(rows.clone(), &Device::Cpu).unwrap();
            let ids = Tensor::new(fed.as_slice(), &Device::Cpu).unwrap();
            let found = sketches(&tensor, &fed, &ids, subset, &[]).unwrap();
            let logits = Logits::on_device(&found);
            for (index, numbers) in rows.iter().enumerate() {
                let (found, expected) = (logits.row(index), Row::of(numbers));
                let close = |left: f32, right: f32| (left - right).abs() <= 1e-5 * right.abs();
                prop_assert_eq!(found.likeliest(), expected.likeliest());
                prop_assert_eq!(found.largest(), expected.largest());
                prop_assert_eq!(found.top(count).unwrap(), expected.top(count).unwrap());
                prop_assert!(close(found.sum_exp(1.0 / 0.7).unwrap(), expected.sum_exp(1.0 / 0.7).unwrap()));
                for &token in &tokens {
                    prop_assert!(close(found.probability(token).unwrap(), expected.probability(token).unwrap()));
                }
                let all = |row: Row<'_>| {
                    let mut all = Vec::new();
                    let found = row.at_least(least, |token, logit| {
                        all.push((token, logit));
                        ControlFlow::Continue(())
                    });
                    assert!(found.unwrap().is_continue());
                    all
                };
                prop_assert_eq!(all(found), all(expected));
                prop_assert_eq!(found.logits().unwrap(), numbers.as_slice());
                let half = (size / 2).max(1);
                prop_assert_eq!(found.first(half).unwrap().likeliest(), Row::of(&numbers[..half]).likeliest());
            }
        }
    }

    /// Sketch of 200 tokens; the two highest are neighbours.
    fn sketch(subset: LogitSubset) -> Sketch {
        with_penalised(subset, &[])
    }

    fn with_penalised(subset: LogitSubset, penalised: &[TokenId]) -> Sketch {
        let logits: Vec<f32> = (0..200).map(|token| -((token - 70i32).abs() as f32)).collect();
        let rows = Tensor::new(vec![logits], &Device::Cpu).unwrap();
        let ids = Tensor::new(&[5u32], &Device::Cpu).unwrap();
        sketches(&rows, &[5], &ids, subset, penalised).unwrap().remove(0)
    }

    #[test]
    fn a_requested_subset_is_not_fetched_again() {
        let sketch = sketch(LogitSubset::Likely { temperature: 0.5, margin: 9.0, top: 2 });
        let row = Logits::on_device(std::slice::from_ref(&sketch)).row(0);
        let mut likely = 0;
        let count = |_, _| {
            likely += 1;
            ControlFlow::Continue(())
        };
        assert!(row.at_least(-9.0, count).unwrap().is_continue());
        assert_eq!((likely, row.top(2).unwrap().len()), (19, 2));
        row.sum_exp(2.0).unwrap();
        row.probability(5).unwrap();
        assert!(!sketch.is_fetched());
        assert!(row.at_least(-60.0, |_, _| ControlFlow::Break(())).unwrap().is_break());
        assert!(sketch.is_fetched());
    }

    #[test]
    fn penalised_tokens_come_with_the_peak_without_fetching_a_row() {
        let touched = [60, 70, 71];
        let sketch = with_penalised(LogitSubset::Peaks, &touched);
        let row = Logits::on_device(std::slice::from_ref(&sketch)).row(0);
        let logits = touched.map(|token| row.logit(token).unwrap());
        assert_eq!(logits, [Some(-10.0), Some(0.0), Some(-1.0)]);
        assert_eq!(row.top_of(1, |token| !touched.contains(&token)).unwrap(), [(69, -1.0)]);
        assert!(!sketch.is_fetched());
        let sketch = with_penalised(LogitSubset::Likely { temperature: 0.5, margin: 9.0, top: 2 }, &touched);
        let row = Logits::on_device(std::slice::from_ref(&sketch)).row(0);
        assert_eq!(touched.map(|token| row.logit(token).unwrap()), logits);
        assert!(row.sum_exp(2.0).unwrap() > 1.0);
        assert!(!sketch.is_fetched());
    }

    #[test]
    fn leaders_are_of_different_slices_and_need_no_fetch() {
        let sketch = sketch(LogitSubset::Peaks);
        let row = Logits::on_device(std::slice::from_ref(&sketch)).row(0);
        let leaders: Vec<TokenId> = row.leaders(3).into_iter().map(|(token, _)| token).collect();
        assert_eq!(leaders, [70, 63, 128]);
        assert!(!sketch.is_fetched());
    }
}
