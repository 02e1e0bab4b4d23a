//! How a model's makers say that its tokens are best chosen. Where it stands in a file is for `model/`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::sampling::Sampling;

/// Of the sampling settings, those that somebody recommends for a model. Every value is in its range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Recommended {
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
}

impl Recommended {
    /// Whatever `number` has under these names, as far as it can be set; `name` is of [`Sampling`]'s own fields.
    /// What is out of its range is left out, and named to `refused` with its value.
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
        let top_k = number("top_k").and_then(|value| {
            let whole = (0.0..=f64::from(u32::MAX)).contains(&value) && value.fract() == 0.0;
            if !whole {
                refused("top_k", value);
            }
            whole.then_some(value as u32)
        });
        Self { temperature, top_k, top_p, min_p, repetition_penalty }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `sampling` with these in it. What nobody recommends has its default; seed and mode stay.
    #[must_use]
    pub fn over(&self, sampling: &Sampling) -> Sampling {
        let plain = Sampling::default();
        Sampling {
            temperature: self.temperature.unwrap_or(plain.temperature),
            top_k: self.top_k.unwrap_or(plain.top_k),
            top_p: self.top_p.unwrap_or(plain.top_p),
            min_p: self.min_p.unwrap_or(plain.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(plain.repetition_penalty),
            seed: sampling.seed,
            mode: sampling.mode,
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
}
