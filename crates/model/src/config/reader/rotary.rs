//! Reads rotary position embeddings.

use super::super::keys::List;
use super::Keys;
use crate::config::rotary::{AttnTemperature, Llama3Scaling, LongRope, Yarn, plain_frequencies};
use crate::config::{RopeScaling, Rotary, bad_scaling, check_factors, positive, rotary_size};
use crate::error::Result;
use crate::family::RotaryLayout;

/// Divisor in GGUF files for frequencies of components that are not rotated.
const UNROTATED_DIVISOR: f64 = 1e30;

const ORIGINAL: &str = "scaling.original_context_length";

/// Keys with one prefix: `rope`, or `rope_swa` for layers with a window in the newest config.json
/// files.
#[derive(Clone, Copy)]
struct Rope<'a> {
    keys: Keys<'a>,
    prefix: &'static str,
    /// Number of rotated components of a head.
    rotated: usize,
    /// Context length of the model.
    context: usize,
}

impl Keys<'_> {
    /// Rotary embeddings of layers with full attention, whose heads have `size` components, and of
    /// layers with a window, whose heads have `local_size`.
    pub fn rotaries(&self, size: usize, local_size: usize, context: usize) -> Result<(Rotary, Rotary)> {
        let rotated_of = |key: &str, head_size: usize| {
            let found = self.integer(key)?.unwrap_or(head_size as u64);
            rotary_size(self.path(), usize::try_from(found).unwrap_or(usize::MAX), head_size)
        };
        let rotated = rotated_of("rope.dimension_count", size)?;
        let local_rotated = match local_size == size {
            true => rotated,
            false => rotated_of("rope.dimension_count_swa", local_size)?,
        };
        let rope = Rope { keys: *self, prefix: "rope", rotated, context };
        let global = rope.rotary()?;
        let local = Rope { prefix: "rope_swa", rotated: local_rotated, ..rope };
        let local = match rope.local_base()? {
            _ if local.number("freq_base")?.is_some() => local.rotary()?,
            Some(base) => Rotary::new(global.layout, &plain_frequencies(base, local_rotated), 1.0),
            None => global.clone(),
        };
        Ok((global, local))
    }
}

impl Rope<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    fn number(&self, name: &str) -> Result<Option<f64>> {
        self.keys.number(&self.key(name))
    }

    /// Returns a number above 0.
    fn positive(&self, name: &str, default: f64) -> Result<f64> {
        let found = self.number(name)?.unwrap_or(default);
        positive(self.keys.path(), &self.keys.name(&self.key(name)), found)
    }

    fn original_context(&self, default: usize) -> Result<usize> {
        self.keys.size_or(&self.key(ORIGINAL), default)
    }

    fn base(&self) -> Result<f64> {
        let default = self.keys.family.default("rope_theta").unwrap_or(10_000.0);
        Ok(self.number("freq_base")?.unwrap_or(default))
    }

    /// Base of layers with a window; `None` if they rotate like the others.
    fn local_base(&self) -> Result<Option<f64>> {
        let family = self.keys.family;
        let default = match family.default("rope_local_base_freq") {
            None if family.plain_windows => Some(self.base()?),
            default => default,
        };
        Ok(self.number("freq_base_swa")?.or(default))
    }

    /// Component pairing of rotated queries and keys. In config.json, latent attention interleaves
    /// by default.
    fn layout(&self) -> Result<RotaryLayout> {
        if self.keys.source.is_gguf() {
            return Ok(self.keys.family.gguf_layout);
        }
        let interleaved = self.keys.family.latent && self.keys.boolean("rope.interleaved")? != Some(false);
        Ok(if interleaved { RotaryLayout::Interleaved } else { RotaryLayout::Halves })
    }

    /// Returns the list of divisors in `name`, if there is one.
    fn divisors(&self, name: &str) -> Result<Option<Vec<f64>>> {
        Ok(self.keys.source.list(&self.key(name))?.map(|found| match found {
            List::Numbers(found) => found,
            _ => Vec::new(),
        }))
    }

    /// Returns `divisors` if there is one for each pair of rotated components.
    fn checked(&self, name: &str, divisors: Vec<f64>) -> Result<Vec<f64>> {
        let name = self.keys.name(&self.key(name));
        check_factors(self.keys.path(), &name, self.rotated / 2, divisors)
    }

    /// Pairs by axis of positions (M-RoPE), which the families with pictures interleave; `None`
    /// without, and for numbers that a head does not have, since texts need none.
    fn sections(&self) -> Result<Option<[usize; 3]>> {
        let found = self.keys.source.list(&self.key("dimension_sections"))?;
        let Some(List::Integers(found)) = found else { return Ok(None) };
        let pairs: Option<Vec<usize>> = found.iter().map(|&pairs| usize::try_from(pairs).ok()).collect();
        Ok(match pairs.as_deref() {
            Some(&[time, rows, columns, ..]) => {
                let fits = |pairs: usize| pairs <= self.rotated / 2;
                [time, rows, columns].into_iter().all(fits).then_some([time, rows, columns])
            }
            _ => None,
        })
    }

    /// Builds the rotary embedding.
    fn rotary(&self) -> Result<Rotary> {
        let (base, layout) = (self.base()?, self.layout()?);
        let kind_key = self.key("scaling.type");
        let kind = self.keys.source.text(&kind_key)?.unwrap_or("none");
        let (mut frequencies, mut scaling) = (plain_frequencies(base, self.rotated), None);
        if let Some(divisors) = self.divisors("divisors")? {
            let divisors = self.checked("divisors", divisors)?;
            let scales = divisors.iter().any(|&by| by != 1.0 && by < UNROTATED_DIVISOR);
            scaling = scales.then_some(RopeScaling::PerFrequency);
            frequencies.iter_mut().zip(divisors).for_each(|(f, by)| *f /= by);
        }
        // Key of files written before scaling had a type.
        let mut factor = self.number("scale_linear")?;
        match kind {
            "none" => {}
            "linear" => factor = factor.or(self.number("scaling.factor")?),
            "llama3" => {
                let llama3 = self.llama3()?;
                frequencies.iter_mut().for_each(|f| *f = llama3.apply(*f));
                scaling = Some(RopeScaling::PerFrequency);
            }
            "proportional" => {
                let part = self.number("scaling.rotated_part")?.unwrap_or(1.0).clamp(0.0, 1.0);
                let rotated = (part * frequencies.len() as f64) as usize;
                frequencies[rotated..].iter_mut().for_each(|f| *f /= UNROTATED_DIVISOR);
            }
            "yarn" | "longrope" => {}
            other => return Err(bad_scaling(self.keys.path(), other)),
        }
        let factor = factor.unwrap_or(1.0);
        frequencies.iter_mut().for_each(|f| *f /= factor);
        if factor != 1.0 {
            scaling = Some(RopeScaling::Linear { factor: factor as f32 });
        }
        let (long, short) = (self.divisors("long_divisors")?, self.divisors("short_divisors")?);
        if kind == "longrope" || long.is_some() || short.is_some() {
            return self.long_rope(layout, &frequencies, long, short);
        }
        let mut scale = 1.0;
        if kind == "yarn" {
            let yarn = self.yarn()?;
            yarn.apply(base, &mut frequencies);
            scale = self.magnitude(&yarn)?;
            scaling = yarn.scaling();
        }
        let attn_temperature = self.attn_temperature()?;
        let sections = self.sections()?;
        Ok(Rotary { attn_temperature, scaling, sections, ..Rotary::new(layout, &frequencies, scale) })
    }

    fn llama3(&self) -> Result<Llama3Scaling> {
        let number = |name: &str| Result::Ok(self.number(name)?.unwrap_or(f64::NAN));
        Ok(Llama3Scaling {
            factor: number("scaling.factor")?,
            low_frequency_factor: number("scaling.low_freq_factor")?,
            high_frequency_factor: number("scaling.high_freq_factor")?,
            original_context: number(ORIGINAL)?,
        })
    }

    fn long_rope(
        &self,
        layout: RotaryLayout,
        frequencies: &[f64],
        long: Option<Vec<f64>>,
        short: Option<Vec<f64>>,
    ) -> Result<Rotary> {
        let original_context = self.original_context(0)?;
        let long = self.checked("long_divisors", long.unwrap_or_default())?;
        let short = self.checked("short_divisors", short.unwrap_or_default())?;
        let rope = LongRope { context: self.context, original_context, short: &short, long: &long };
        Ok(rope.rotary(layout, frequencies, self.number("scaling.attn_factor")?))
    }

    fn yarn(&self) -> Result<Yarn> {
        let truncated = self.keys.boolean(&self.key("scaling.truncate"))?;
        let yarn = Yarn {
            factor: self.positive("scaling.factor", 1.0)?,
            original_context: self.original_context(self.context)? as f64,
            beta_fast: self.positive("scaling.yarn_beta_fast", 32.0)?,
            beta_slow: self.positive("scaling.yarn_beta_slow", 1.0)?,
            truncated: truncated.unwrap_or(self.keys.family.default("truncate") != Some(0.0)),
        };
        let blended = self.number("scaling.yarn_ext_factor")?.filter(|&blended| blended != 1.0);
        if let Some(found) = blended {
            let expected = format!("{} of 1", self.keys.name(&self.key("scaling.yarn_ext_factor")));
            return Err(self.keys.bad(expected, found.to_string()));
        }
        Ok(yarn)
    }

    /// Factor of cosines and sines with YaRN.
    fn magnitude(&self, yarn: &Yarn) -> Result<f64> {
        if let Some(magnitude) = self.number("scaling.magnitude")? {
            return Ok(magnitude);
        }
        let given = self.number("scaling.attn_factor")?.unwrap_or(1.0);
        let all = self.number("scaling.yarn_log_multiplier")?.filter(|&all| all != 0.0);
        if self.keys.family.latent && all.is_some() {
            // The multiplier scales attention scores here, so cosines and sines stay unscaled.
            return Ok(given);
        }
        Ok(yarn.magnitude(1.0) / all.map_or(1.0, |all| yarn.magnitude(all)) * given)
    }

    /// Factor by which queries grow with the position, if any.
    fn attn_temperature(&self) -> Result<Option<AttnTemperature>> {
        let key = match self.prefix {
            "rope" => "attention.temperature_scale",
            _ => "attention.temperature_scale_swa",
        };
        let Some(beta) = self.keys.number(key)?.filter(|&beta| beta != 0.0) else { return Ok(None) };
        let beta = positive(self.keys.path(), &self.keys.name(key), beta)? as f32;
        Ok(Some(AttnTemperature { beta, period: self.original_context(self.context)? }))
    }
}
