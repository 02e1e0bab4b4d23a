//! Reads the sizes of latent attention.

use super::Keys;
use crate::config::rotary::magnitude;
use crate::config::{Latent, query_scale, size};
use crate::error::{Error, Result};

/// Ratio of `yarn_log_multiplier` in this family's files to YaRN's `mscale_all_dim`.
const PART_OF_WEIGHT: f64 = 0.1;

impl Keys<'_> {
    /// Sizes of latent attention; `None` for other families.
    pub fn latent(&self) -> Result<Option<Latent>> {
        if !self.family.latent {
            return Ok(None);
        }
        let query = self.mla_size("attention.key_length_mla")?;
        let turned = self.size("rope.dimension_count")?;
        let plain = query.checked_sub(turned).filter(|&plain| plain > 0).ok_or_else(|| {
            self.bad(format!("{} below {query}", self.name("rope.dimension_count")), turned.to_string())
        })?;
        let latent = Latent {
            size: self.size("attention.kv_lora_rank")?,
            turned,
            plain,
            value: self.mla_size("attention.value_length_mla")?,
            queries: self.optional_size("attention.q_lora_rank")?,
        };
        Ok(Some(latent.validated(self.path())?))
    }

    /// A size that is missing in GGUF files whose latent matrix is not split into `attn_k_b` and
    /// `attn_v_b`.
    fn mla_size(&self, key: &str) -> Result<usize> {
        match self.integer(key)? {
            Some(found) => size(self.path(), &self.name(key), found),
            None => Err(Error::BadModel {
                path: self.path().to_owned(),
                expected: format!("{} and its matrices split in attn_k_b and attn_v_b", self.name(key)),
                found: "a file of before they were".into(),
                hint: "Choose a newer GGUF file of this model.",
            }),
        }
    }

    /// Factor of the products of queries and keys.
    pub fn latent_scale(&self, latent: Latent) -> Result<f32> {
        let plain = query_scale(latent.query() as f64);
        let is_yarn = self.source.text("rope.scaling.type")? == Some("yarn");
        let weight = self.number("rope.scaling.yarn_log_multiplier")?.filter(|_| is_yarn).unwrap_or(0.0);
        let factor = self.number("rope.scaling.factor")?.unwrap_or(1.0);
        let magnitude = magnitude(factor, weight / PART_OF_WEIGHT);
        Ok(plain * (magnitude * magnitude) as f32)
    }
}
