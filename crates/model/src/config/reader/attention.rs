//! Reads the settings of attention: windows, key-value heads and layers without positions.

use super::super::keys::List;
use super::Keys;
use crate::config::attention::{KindFlags, attention_kinds};
use crate::config::{AttentionKind, KeyHeads, Latent, size, window};
use crate::error::Result;
use crate::family::{NoRope, Windowed};

impl Keys<'_> {
    /// Kinds of attention, and the kind of each layer as an index into them.
    pub fn attention_kinds(
        &self,
        layers: usize,
        heads: usize,
        head_size: usize,
        latent: Option<Latent>,
        context: usize,
    ) -> Result<(Vec<AttentionKind>, Vec<usize>)> {
        let mut windowed = self.windowed(layers)?;
        let (keys, local_keys) = match latent.map(|latent| latent.keys()) {
            Some(keys) => (keys, keys),
            None => self.key_heads(&windowed, heads, head_size)?,
        };
        let (rotary, local_rotary) = self.rotaries(keys.size, local_keys.size, context)?;
        let found = self.integer("attention.sliding_window")?.unwrap_or(0);
        if self.family.plain_windows && found == 0 {
            windowed.fill(false);
        }
        let rotated = self.rotated_layers(&windowed)?;
        let window = window(found.try_into().unwrap_or(usize::MAX), context);
        let parts = self.family.attention;
        let global = AttentionKind { window: None, rotary, keys, parts };
        let local = AttentionKind { window, rotary: local_rotary, keys: local_keys, parts };
        let flags = windowed.iter().zip(&rotated);
        let flags = flags.map(|(&windowed, &rotated)| KindFlags { windowed, rotated });
        Ok(attention_kinds(&flags.collect::<Vec<_>>(), &global, &local))
    }

    /// Key-value heads of layers with full attention and of layers with a window.
    fn key_heads(&self, windowed: &[bool], heads: usize, size: usize) -> Result<(KeyHeads, KeyHeads)> {
        self.must_equal("attention.value_length", size)?;
        let [count, local_count] = self.kv_heads(windowed, heads)?;
        let keys = |count, size, are_values| KeyHeads { count, size, are_values, hold_values: None };
        if !self.family.has_global_heads() {
            return Ok((keys(count, size, false), keys(local_count, size, false)));
        }
        let local_size = self.size_or("attention.key_length_swa", size)?;
        self.must_equal("attention.value_length_swa", local_size)?;
        let are_values = self.boolean("attention.values_are_keys")? == Some(true);
        Ok((keys(count, size, are_values), keys(local_count, local_size, false)))
    }

    /// Numbers of key heads: in layers with full attention and in layers with a window.
    fn kv_heads(&self, windowed: &[bool], heads: usize) -> Result<[usize; 2]> {
        const KEY: &str = "attention.head_count_kv";
        let counts = match self.family.recurrent {
            None => self.each(KEY, windowed.len(), heads)?,
            Some(_) => vec![self.attending_kv_heads(windowed.len(), heads)?; windowed.len()],
        };
        let differs = self.family.has_global_heads();
        let of = |window: bool| {
            let own = counts.iter().zip(windowed).filter(|(_, windowed)| !differs || **windowed == window);
            let mut own = own.map(|(count, _)| *count);
            let first = own.next().unwrap_or(heads);
            let others = if differs { "of a kind" } else { "" };
            let expected = || format!("the same number for all layers {others} in {}", self.name(KEY));
            own.all(|count| count == first)
                .then_some(first)
                .ok_or_else(|| self.bad(expected(), "others".into()))
        };
        Ok([of(false)?, of(true)?])
    }

    /// Returns for each layer whether it has a sliding window.
    pub fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        const KEY: &str = "attention.sliding_window_pattern";
        if let Some(listed) = self.source.list(KEY)? {
            return listed.flags(layers).ok_or_else(|| {
                self.bad(format!("{} for every layer", self.name(KEY)), "a different kind of list".into())
            });
        }
        let every = match self.family.windowed {
            Windowed::All | Windowed::InClass(_) => return Ok(vec![true; layers]),
            Windowed::AllButEvery(every) => every as u64,
            Windowed::Last | Windowed::Listed => 1,
        };
        let every = size(self.path(), &self.name(KEY), self.integer(KEY)?.unwrap_or(every))?;
        Ok((1..=layers).map(|layer| !layer.is_multiple_of(every)).collect())
    }

    /// Returns for each layer whether its queries and keys are rotated.
    fn rotated_layers(&self, windowed: &[bool]) -> Result<Vec<bool>> {
        let layers = windowed.len();
        if let Some(List::Booleans(listed)) = self.source.list("rope.layers")?
            && self.family.no_rope != NoRope::None
        {
            return Ok(listed);
        }
        Ok(match self.family.no_rope {
            NoRope::None => vec![true; layers],
            NoRope::Every(every) => {
                let every = self.size_or("rope.layer_interval", every)?;
                (1..=layers).map(|layer| !layer.is_multiple_of(every)).collect()
            }
            NoRope::Windowless => windowed.to_vec(),
            NoRope::Stated(_) => {
                let stated = self.boolean("rope.scaling.finetuned")?;
                vec![stated != Some(false); layers]
            }
        })
    }
}
