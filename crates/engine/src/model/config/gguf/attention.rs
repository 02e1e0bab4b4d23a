//! Reads attention settings from a GGUF header: windows, key-value heads and rotary positions.

use super::{Keys, Vectors};
use crate::error::Result;
use crate::model::config::rotary::{AttnTemperature, LongRope, Yarn, plain_frequencies};
use crate::model::config::{
    AttentionKind, KeyHeads, Latent, Rotary, attention_kinds, bad_scaling, check_factors, kind_of, positive,
    rotary_size, size, window,
};
use crate::model::family::{NoRope, Windowed};
use crate::model::weights::{LONG_FACTORS, ROPE_FACTORS, SHORT_FACTORS};

impl Keys<'_> {
    pub fn attention_kinds(
        &self,
        layers: usize,
        (heads, head_size, latent): (usize, usize, Option<Latent>),
        context: usize,
        vectors: Vectors<'_>,
    ) -> Result<(Vec<AttentionKind>, Vec<usize>)> {
        let mut windowed = self.windowed(layers)?;
        let (keys, local_keys) = match latent.map(|latent| latent.keys()) {
            Some(keys) => (keys, keys),
            None => self.key_heads(&windowed, heads, head_size)?,
        };
        let head_size = keys.size;
        let rotated_of = |name: &str, head_size: usize| {
            let found = self.integer(name)?.unwrap_or(head_size as u64);
            rotary_size(self.header.path(), found as usize, head_size)
        };
        let rotated = rotated_of("rope.dimension_count", head_size)?;
        let local_rotated = match local_keys.size == head_size {
            true => rotated,
            false => rotated_of("rope.dimension_count_swa", local_keys.size)?,
        };
        let rotary = self.rotary(rotated, context, vectors)?;
        let found = self.integer("attention.sliding_window")?.unwrap_or(0);
        if self.family.plain_windows && found == 0 {
            windowed.fill(false);
        }
        let rotated = self.rotated_layers(&windowed)?;
        let window = window(found.try_into().unwrap_or(usize::MAX), context);
        let local_base = match self.family.default("rope_local_base_freq") {
            base @ Some(_) => base,
            None if self.family.plain_windows => Some(self.base()?),
            None => None,
        };
        let local = match local_base {
            Some(base) => {
                let base = self.number("rope.freq_base_swa")?.unwrap_or(base);
                Rotary::new(rotary.layout, &plain_frequencies(base, local_rotated), 1.0)
            }
            None => rotary.clone(),
        };
        let global = AttentionKind { window: None, rotary, keys };
        let local = AttentionKind { window, rotary: local, keys: local_keys };
        Ok(attention_kinds(&windowed, &rotated, |windowed, rotated| {
            kind_of((windowed, rotated), &global, &local)
        }))
    }

    /// Key-value heads of layers with full attention and of layers with a window.
    fn key_heads(&self, windowed: &[bool], heads: usize, size: usize) -> Result<(KeyHeads, KeyHeads)> {
        let [count, local_count] = self.kv_heads(windowed, heads)?;
        let keys = |count, size, are_values| KeyHeads { count, size, are_values, hold_values: None };
        if self.family.default("global_head_dim").is_none() {
            return Ok((keys(count, size, false), keys(local_count, size, false)));
        }
        let local_size = self.size_or("attention.key_length_swa", size)?;
        let first = windowed.iter().position(|windowed| !windowed);
        let lacks_values = first.is_some_and(|layer| !(self.has)(&format!("blk.{layer}.attn_v.weight")));
        Ok((keys(count, size, lacks_values), keys(local_count, local_size, false)))
    }

    /// Returns for each layer whether it has a sliding window.
    pub fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        let pattern = self.key("attention.sliding_window_pattern");
        let every = match self.family.windowed {
            Windowed::All | Windowed::InClass(_) => return Ok(vec![true; layers]),
            Windowed::Last => return Ok(vec![false; layers]),
            Windowed::Listed if self.header.has(&pattern) => 1,
            Windowed::Listed => return Ok(vec![false; layers]),
            Windowed::AllButEvery(every) => every,
        };
        if let Ok(Some(listed)) = self.header.list(&pattern) {
            return listed.booleans().filter(|listed| listed.len() == layers).ok_or_else(|| {
                self.bad(format!("{pattern} for every layer"), "a different kind of list".into())
            });
        }
        let every =
            size(self.header.path(), &pattern, self.header.integer(&pattern)?.unwrap_or(every as u64))?;
        Ok((1..=layers).map(|layer| !layer.is_multiple_of(every)).collect())
    }

    /// Returns for each layer whether its queries and keys are rotated.
    fn rotated_layers(&self, windowed: &[bool]) -> Result<Vec<bool>> {
        let layers = windowed.len();
        Ok(match self.family.no_rope {
            NoRope::None => vec![true; layers],
            NoRope::Every(every) => (1..=layers).map(|layer| !layer.is_multiple_of(every)).collect(),
            NoRope::Windowless => windowed.to_vec(),
            NoRope::Stated(_) => {
                let stated = self.header.boolean(&self.key("rope.scaling.finetuned"))?;
                vec![stated != Some(false); layers]
            }
        })
    }

    fn base(&self) -> Result<f64> {
        let default = self.family.default("rope_theta").unwrap_or(10_000.0);
        Ok(self.number("rope.freq_base")?.unwrap_or(default))
    }

    /// Reads the rotary embedding of `rotated` components of a head.
    fn rotary(&self, rotated: usize, context: usize, vectors: Vectors<'_>) -> Result<Rotary> {
        let path = self.header.path();
        let base = self.base()?;
        let kind = self.header.string(&self.key("rope.scaling.type"))?.unwrap_or("none");
        let factor = match kind {
            "none" | "longrope" | "yarn" => 1.0,
            "linear" => self.number("rope.scaling.factor")?.unwrap_or(1.0),
            other => return Err(bad_scaling(path, other)),
        };
        // Key of files written before scaling had a type.
        let factor = self.number("rope.scale_linear")?.unwrap_or(factor);
        let mut frequencies = plain_frequencies(base, rotated);
        let vector = |name| -> Result<Option<Vec<f64>>> {
            let Some(factors) = vectors(name)? else { return Ok(None) };
            let wide = factors.into_iter().map(f64::from).collect();
            check_factors(path, name, rotated / 2, wide).map(Some)
        };
        if let Some(factors) = vector(ROPE_FACTORS)? {
            frequencies.iter_mut().zip(factors).for_each(|(f, by)| *f /= by);
        }
        frequencies.iter_mut().for_each(|f| *f /= factor);
        let (long, short) = (vector(LONG_FACTORS)?, vector(SHORT_FACTORS)?);
        let layout = self.family.gguf_layout;
        let given = self.number("rope.scaling.attn_factor")?;
        if kind == "longrope" || long.is_some() || short.is_some() {
            let original_context = self.size("rope.scaling.original_context_length")?;
            let factors = |found: Option<Vec<f64>>, name| {
                check_factors(path, name, rotated / 2, found.unwrap_or_default())
            };
            let (long, short) = (factors(long, LONG_FACTORS)?, factors(short, SHORT_FACTORS)?);
            let rope = LongRope { context, original_context, short: &short, long: &long };
            return Ok(rope.rotary(layout, &frequencies, given));
        }
        let scale = match kind {
            "yarn" => self.yarn(base, context, &mut frequencies)? * given.unwrap_or(1.0),
            _ => 1.0,
        };
        let attn_temperature = self.attn_temperature(context)?;
        Ok(Rotary { attn_temperature, ..Rotary::new(layout, &frequencies, scale) })
    }

    /// Scales the frequencies by YaRN; returns the factor of cosines and sines.
    fn yarn(&self, base: f64, context: usize, frequencies: &mut [f64]) -> Result<f64> {
        let path = self.header.path();
        let number =
            |name: &str, default: f64| positive(path, &self.key(name), self.number(name)?.unwrap_or(default));
        let yarn = Yarn {
            factor: number("rope.scaling.factor", 1.0)?,
            original_context: self.size_or("rope.scaling.original_context_length", context)? as f64,
            beta_fast: number("rope.scaling.yarn_beta_fast", 32.0)?,
            beta_slow: number("rope.scaling.yarn_beta_slow", 1.0)?,
            truncated: self.family.default("truncate") != Some(0.0),
        };
        let blended = self.number("rope.scaling.yarn_ext_factor")?.filter(|&blended| blended != 1.0);
        if let Some(found) = blended {
            let expected = format!("{} of 1", self.key("rope.scaling.yarn_ext_factor"));
            return Err(self.bad(expected, found.to_string()));
        }
        yarn.apply(base, frequencies);
        let all = self.number("rope.scaling.yarn_log_multiplier")?.filter(|&all| all != 0.0);
        if self.family.latent && all.is_some() {
            // The multiplier scales attention scores here, so cosines and sines stay unscaled.
            return Ok(1.0);
        }
        Ok(yarn.magnitude(1.0) / all.map_or(1.0, |all| yarn.magnitude(all)))
    }

    /// Factor by which queries grow with the position, if any.
    fn attn_temperature(&self, context: usize) -> Result<Option<AttnTemperature>> {
        const NAME: &str = "attention.temperature_scale";
        let Some(beta) = self.number(NAME)?.filter(|&beta| beta != 0.0) else { return Ok(None) };
        let beta = positive(self.header.path(), &self.key(NAME), beta)? as f32;
        let period = self.size_or("rope.scaling.original_context_length", context)?;
        Ok(Some(AttnTemperature { beta, period }))
    }
}
