//! Reads from a GGUF header the recurrent layers and the number of multi-token prediction blocks.

use super::Keys;
use crate::error::Result;
use crate::model::config::{Heads, Recurrence, mixers, size};
use crate::model::family::Mixer;
use crate::model::recurrent_tensors::CONVOLUTION_BIAS;

impl Keys<'_> {
    /// Returns the number of layers and the number of multi-token prediction (MTP) blocks after
    /// them. Some writers count MTP blocks among the layers, others do not, and some leave the
    /// blocks out.
    pub fn layers(&self, has: impl Fn(&str) -> bool) -> Result<(usize, usize)> {
        let path = self.header.path();
        let counted = super::super::layers(path, self.size("block_count")?)?;
        if self.family.assists {
            // Assistants use the MTP key for all of their own layers.
            return Ok((counted, 0));
        }
        let mtp_layers = self.integer("nextn_predict_layers")?.unwrap_or(0);
        let mtp_layers = super::super::layers(path, usize::try_from(mtp_layers).unwrap_or(usize::MAX))?;
        let tensor = |block: usize, name: &str| has(&format!("blk.{block}.{name}.weight"));
        let joins =
            |block| ["nextn.eh_proj", "nextn.enorm", "nextn.hnorm"].iter().any(|name| tensor(block, name));
        let is_mtp = |block| joins(block) || !tensor(block, "attn_norm");
        let most = if joins(counted) { 0 } else { mtp_layers.min(counted) };
        let among = (0..most).take_while(|back| is_mtp(counted - 1 - back)).count();
        Ok((size(path, &self.key("block_count"), (counted - among) as u64)?, mtp_layers))
    }

    /// Number of key heads of the attention layers. A list, which some writers use, has 0 for
    /// recurrent layers.
    pub fn attending_kv_heads(&self, layers: usize, heads: usize) -> Result<usize> {
        const NAME: &str = "attention.head_count_kv";
        let Some(listed) = self.kv_heads_listed()? else { return self.size_or(NAME, heads) };
        let key = self.key(NAME);
        let skipped = |&&count: &&i64| count == 0;
        let first = listed.iter().find(|count| !skipped(count)).copied().unwrap_or_default();
        let same = listed.iter().filter(|count| !skipped(count)).all(|&count| count == first);
        if listed.len() < layers || !same {
            let expected = format!("the same number for each of {layers} layers in {key}");
            return Err(self.bad(expected, "others".into()));
        }
        size(self.header.path(), &key, u64::try_from(first).unwrap_or_default())
    }

    fn kv_heads_listed(&self) -> Result<Option<Vec<i64>>> {
        let listed = self.header.list(&self.key("attention.head_count_kv")).ok().flatten();
        Ok(listed.map(|listed| listed.integers().unwrap_or_default()))
    }

    /// The mixer of each layer, and the sizes of the recurrent layers.
    pub fn recurrence(&self, layers: usize, hidden: usize) -> Result<(Vec<Mixer>, Option<Recurrence>)> {
        let mixer = self.family.recurrent;
        if mixer == Mixer::Attention {
            return Ok((vec![mixer; layers], None));
        }
        let mixers = mixers(self.header.path(), mixer, &self.recurrent(layers)?)?;
        let Some(first) = mixers.iter().position(|&own| own == mixer) else { return Ok((mixers, None)) };
        let mut recurrence = match mixer {
            Mixer::ShortConv => Recurrence::of_channels(self.size("shortconv.l_cache")?, hidden),
            _ => Recurrence::of_heads(mixer, self.size("ssm.conv_kernel")?, self.heads()?),
        };
        recurrence.biased = (self.has)(&format!("blk.{first}.{CONVOLUTION_BIAS}"));
        Ok((mixers, Some(recurrence.validated(self.header.path())?)))
    }

    /// Returns for each layer whether it is recurrent.
    fn recurrent(&self, layers: usize) -> Result<Vec<bool>> {
        let key = self.key("attention.recurrent_layers");
        if let Some(listed) = self.header.list(&key)? {
            let listed = listed.booleans().filter(|listed| listed.len() >= layers);
            return match listed {
                Some(listed) => Ok(listed[..layers].to_vec()),
                None => Err(self.bad(format!("{key} for every layer"), "another kind of list".into())),
            };
        }
        if let Some(listed) = self.kv_heads_listed()?.filter(|listed| listed.contains(&0)) {
            return Ok((0..layers).map(|layer| listed.get(layer) == Some(&0)).collect());
        }
        let every = self.family.default("full_attention_interval").unwrap_or(1.0) as usize;
        let every = self.size_or("full_attention_interval", every)?;
        Ok((1..=layers).map(|layer| !layer.is_multiple_of(every)).collect())
    }

    fn heads(&self) -> Result<Heads> {
        let (keys, values) = (self.size("ssm.group_count")?, self.size("ssm.time_step_rank")?);
        let inner = self.size("ssm.inner_size")?;
        if !inner.is_multiple_of(values) {
            let expected = format!("{} that is a multiple of {values} heads", self.key("ssm.inner_size"));
            return Err(self.bad(expected, inner.to_string()));
        }
        Ok(Heads {
            keys,
            values,
            key_size: self.size("ssm.state_size")?,
            value_size: inner / values,
            // Converters interleave the heads of Qwen3.5.
            grouped: self.family.recurrent == Mixer::Mamba,
        })
    }
}
