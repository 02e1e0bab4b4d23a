//! Sampling settings that a model's makers recommend. `model` reads them from files.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::sampling::{ModelPenalties, Sampling};

/// Number of parameters from which a model needs no penalties: models called 1B have about as many.
const SMALL_BELOW: u64 = 900_000_000;

/// Recommended sampling settings of a model. Every value is in its range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Recommended {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    /// Number of last tokens for the repetition penalty; the whole text if it is missing.
    #[serde(default)]
    pub repeat_last_n: Option<i32>,
}

impl Recommended {
    /// Reads values by the names of [`Sampling`]'s fields. Values out of range are passed to
    /// `refused` and left out.
    pub(crate) fn read(number: impl Fn(&str) -> Option<f64>, mut refused: impl FnMut(&str, f64)) -> Self {
        let plain = Sampling::default();
        let mut take = |name, with: &dyn Fn(f32) -> Sampling| {
            let value = number(name)?;
            let taken = Some(value as f32).filter(|&value| with(value).validate().is_ok());
            if taken.is_none() {
                refused(name, value);
            }
            taken
        };
        let temperature = take("temperature", &|temperature| Sampling { temperature, ..plain.clone() });
        let top_p = take("top_p", &|top_p| Sampling { top_p, ..plain.clone() });
        let min_p = take("min_p", &|min_p| Sampling { min_p, ..plain.clone() });
        let repetition_penalty = take("repetition_penalty", &|repetition_penalty| Sampling {
            repetition_penalty,
            ..plain.clone()
        });
        let whole = |value: f64, range: RangeInclusive<f64>| range.contains(&value) && value.fract() == 0.0;
        let repeat_last_n = number("repeat_last_n").and_then(|value| {
            let fits = whole(value, -1.0..=f64::from(i32::MAX));
            if !fits {
                refused("repeat_last_n", value);
            }
            fits.then_some(value as i32)
        });
        let top_k = number("top_k").and_then(|value| {
            let fits = whole(value, 0.0..=f64::from(u32::MAX));
            if !fits {
                refused("top_k", value);
            }
            fits.then_some(value as u32)
        });
        Self { temperature, top_k, top_p, min_p, repetition_penalty, repeat_last_n }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Penalties for a model with these recommendations and number of parameters; `None` if nothing
    /// is recommended and a model of that size needs none.
    pub fn penalties(this: Option<&Self>, parameters: u64) -> Option<ModelPenalties> {
        match this.and_then(|this| Some((this.repetition_penalty?, this.repeat_last_n))) {
            Some((repetition_penalty, last_n)) => Some(ModelPenalties {
                repetition_penalty,
                repeat_last_n: last_n.unwrap_or(-1),
                ..ModelPenalties::default()
            }),
            None => (parameters < SMALL_BELOW).then_some(ModelPenalties::SMALL),
        }
    }

    /// Applies the recommendations to `sampling`. Other settings get their defaults; seed, mode and
    /// loop detection stay.
    #[must_use]
    pub fn over(&self, sampling: &Sampling) -> Sampling {
        let plain = Sampling::default();
        Sampling {
            temperature: self.temperature.unwrap_or(plain.temperature),
            top_k: self.top_k.unwrap_or(plain.top_k),
            top_p: self.top_p.unwrap_or(plain.top_p),
            min_p: self.min_p.unwrap_or(plain.min_p),
            automatic_penalties: self.repetition_penalty.is_none(),
            repetition_penalty: self.repetition_penalty.unwrap_or(plain.repetition_penalty),
            repeat_last_n: self
                .repetition_penalty
                .map_or(plain.repeat_last_n, |_| self.repeat_last_n.unwrap_or(-1)),
            stop_loops: sampling.stop_loops,
            seed: sampling.seed,
            mode: sampling.mode,
            ..plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Mode;

    #[test]
    fn what_is_recommended_takes_its_place_and_the_rest_has_its_default() {
        let mine = Sampling {
            temperature: 2.0,
            top_k: 5,
            top_p: 0.5,
            min_p: 0.1,
            repetition_penalty: 1.5,
            seed: Some(7),
            mode: Mode::Reproducible,
            ..Sampling::default()
        };
        let recommended = Recommended { temperature: Some(0.6), top_k: Some(20), ..Recommended::default() };
        let expected = Sampling {
            temperature: 0.6,
            top_k: 20,
            seed: Some(7),
            mode: Mode::Reproducible,
            ..Sampling::default()
        };
        assert_eq!(recommended.over(&mine), expected);
    }

    #[test]
    fn a_small_model_of_which_nobody_says_anything_has_gentle_penalties_and_a_larger_one_none() {
        let says = Recommended { repetition_penalty: Some(1.1), ..Recommended::default() };
        let silent = Recommended { temperature: Some(0.2), ..Recommended::default() };
        assert_eq!(Recommended::penalties(None, 135_000_000), Some(ModelPenalties::SMALL));
        assert_eq!(Recommended::penalties(Some(&silent), 135_000_000), Some(ModelPenalties::SMALL));
        assert_eq!(Recommended::penalties(Some(&silent), 1_000_000_000), None);
        let penalties = Recommended::penalties(Some(&says), 135_000_000).unwrap();
        assert_eq!((penalties.repetition_penalty, penalties.repeat_last_n), (1.1, -1));
        assert_eq!(penalties.dry_multiplier, 0.0);
    }

    #[test]
    fn penalties_of_a_persons_own_are_not_replaced_by_the_models() {
        let own = Sampling { automatic_penalties: false, ..Sampling::default() };
        assert_eq!(own.with_penalties_of(Some(&ModelPenalties::SMALL)), own);
        let automatic = Sampling { repetition_penalty: 1.5, ..Sampling::default() };
        let taken = automatic.with_penalties_of(Some(&ModelPenalties::SMALL));
        assert_eq!(
            (taken.repetition_penalty, taken.dry_multiplier, taken.automatic_penalties),
            (1.03, 0.8, false)
        );
        assert_eq!(automatic.with_penalties_of(None).repetition_penalty, 1.0);
        let old: Sampling = serde_json::from_str(r#"{"repetition_penalty": 1.2}"#).unwrap();
        assert_eq!((old.repeat_last_n, old.automatic_penalties, old.dry_multiplier), (-1, false, 0.0));
    }
}
