//! Reads the recurrent layers.

use super::super::keys::List;
use super::Keys;
use crate::config::{Heads, Recurrence, size};
use crate::error::Result;
use crate::family::RecurrentKind;

impl Keys<'_> {
    /// Returns for each layer whether it is recurrent, and the sizes of the recurrent layers;
    /// `None` if there are none.
    ///
    /// # Errors
    /// `Error::BadModel` if no layer has attention, and for unusable sizes.
    pub fn recurrence(&self, layers: usize, hidden: usize) -> Result<Option<(Vec<bool>, Recurrence)>> {
        let Some(kind) = self.family.recurrent else { return Ok(None) };
        let recurrent = self.recurrent(layers)?;
        if !recurrent.contains(&true) {
            return Ok(None);
        }
        if !recurrent.contains(&false) {
            let expected = "attention in some of the layers";
            return Err(self.bad(expected.into(), "recurrent layers alone".into()));
        }
        let mut recurrence = match kind {
            RecurrentKind::ShortConv => Recurrence::of_channels(self.size("shortconv.l_cache")?, hidden),
            _ => Recurrence::of_heads(kind, self.size("ssm.conv_kernel")?, self.heads()?),
        };
        recurrence.biased = self.boolean("ssm.conv_bias")? == Some(true);
        if kind == RecurrentKind::Mamba {
            let [least, most] = ["ssm.time_step_min", "ssm.time_step_max"].map(|key| self.number(key));
            recurrence.steps = [least?.unwrap_or(0.0) as f32, most?.unwrap_or(f64::INFINITY) as f32];
        }
        Ok(Some((recurrent, recurrence.validated(self.path())?)))
    }

    /// Returns for each layer whether it is recurrent.
    fn recurrent(&self, layers: usize) -> Result<Vec<bool>> {
        const KEY: &str = "attention.recurrent_layers";
        match self.source.list(KEY)? {
            None => {}
            // Some writers list their MTP blocks, too.
            Some(List::Booleans(listed)) if listed.len() >= layers => return Ok(listed[..layers].to_vec()),
            Some(_) => {
                return Err(self.bad(format!("{} for every layer", self.name(KEY)), "others".into()));
            }
        }
        if let Some(List::Integers(listed)) = self.source.list("attention.head_count_kv")?
            && listed.contains(&0)
        {
            return Ok((0..layers).map(|layer| listed.get(layer) == Some(&0)).collect());
        }
        let every = self.family.default("full_attention_interval").unwrap_or(1.0) as usize;
        let every = self.size_or("full_attention_interval", every)?;
        Ok((1..=layers).map(|layer| !layer.is_multiple_of(every)).collect())
    }

    /// Number of key heads of the attention layers. A list, which some writers use, has 0 for
    /// recurrent layers.
    pub fn attending_kv_heads(&self, layers: usize, heads: usize) -> Result<usize> {
        const KEY: &str = "attention.head_count_kv";
        let listed = match self.source.list(KEY)? {
            None => return self.size_or(KEY, heads),
            Some(List::Integers(listed)) => listed,
            Some(_) => Vec::new(),
        };
        let name = self.name(KEY);
        let skipped = |&&count: &&i64| count == 0;
        let first = listed.iter().find(|count| !skipped(count)).copied().unwrap_or_default();
        let same = listed.iter().filter(|count| !skipped(count)).all(|&count| count == first);
        if listed.len() < layers || !same {
            let expected = format!("the same number for each of {layers} layers in {name}");
            return Err(self.bad(expected, "others".into()));
        }
        size(self.path(), &name, u64::try_from(first).unwrap_or_default())
    }

    fn heads(&self) -> Result<Heads> {
        let (keys, values) = (self.size("ssm.group_count")?, self.size("ssm.time_step_rank")?);
        let inner = self.size("ssm.inner_size")?;
        if !inner.is_multiple_of(values) {
            let expected = format!("{} that is a multiple of {values} heads", self.name("ssm.inner_size"));
            return Err(self.bad(expected, inner.to_string()));
        }
        Ok(Heads {
            keys,
            values,
            key_size: self.size("ssm.state_size")?,
            value_size: inner / values,
            // llama.cpp's converter interleaves the heads of Qwen3.5.
            grouped: self.family.recurrent == Some(RecurrentKind::Mamba) || !self.source.is_gguf(),
        })
    }
}
