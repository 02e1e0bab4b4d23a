//! Builds the layers of a model from its settings.

use super::Keys;
use crate::config::{Latent, LayerSpec, MixerSpec, Recurrence};
use crate::error::Result;
use crate::family::HeadFamily;

impl Keys<'_> {
    /// Builds the layers. `kind_of` is the kind of attention of each layer; `latent` are the sizes
    /// of latent attention; `recurrence` marks the recurrent layers and has their sizes.
    ///
    /// # Errors
    /// `Error::BadModel` for missing or unusable settings.
    pub fn layers(
        &self,
        kind_of: &[usize],
        latent: Option<Latent>,
        recurrence: Option<(Vec<bool>, Recurrence)>,
    ) -> Result<Vec<LayerSpec>> {
        let with_kv = self.layers_with_kv(kind_of.len())?;
        let mixer = |layer: usize| -> Result<MixerSpec> {
            let kind = kind_of[layer];
            Ok(match (&recurrence, latent) {
                (Some((recurrent, sizes)), _) if recurrent[layer] => MixerSpec::Recurrent(sizes.clone()),
                (_, Some(sizes)) => MixerSpec::Latent { kind, sizes },
                _ => {
                    let shares_kv_with = self.shares_kv_with(layer, kind_of, with_kv)?;
                    MixerSpec::Attention { kind, shares_kv_with }
                }
            })
        };
        let per_layer_input = self.per_layer_input()?;
        let feed_forwards = self.feed_forwards(kind_of.len())?.into_iter().enumerate();
        feed_forwards
            .map(|(layer, feed_forward)| {
                Ok(LayerSpec {
                    norms: self.family.norms,
                    mixer: mixer(layer)?,
                    feed_forward,
                    per_layer_input,
                    output_scale: self.family.output_scale,
                })
            })
            .collect()
    }

    /// Width of the per-layer input embedding, if the model has one.
    fn per_layer_input(&self) -> Result<Option<usize>> {
        self.optional_size("embedding_length_per_layer_input")
    }

    /// Number of leading layers that compute keys and values.
    fn layers_with_kv(&self, layers: usize) -> Result<usize> {
        const KEY: &str = "attention.shared_kv_layers";
        if self.family.head == Some(HeadFamily::Assistant) {
            return Ok(0);
        }
        let shared = self.integer(KEY)?.unwrap_or(0);
        let computing = usize::try_from(shared).ok().and_then(|shared| layers.checked_sub(shared));
        computing
            .filter(|&computing| computing > 0)
            .ok_or_else(|| self.bad(format!("{} below {layers}", self.name(KEY)), shared.to_string()))
    }

    /// Returns the earlier layer whose cache `layer` reads: the last of its kind among the
    /// `with_kv` layers that compute keys and values. An assistant's layers of one kind share the
    /// cache of the first of them, which holds the target's keys and values.
    fn shares_kv_with(&self, layer: usize, kind_of: &[usize], with_kv: usize) -> Result<Option<usize>> {
        let same_kind = |earlier: &usize| kind_of[*earlier] == kind_of[layer];
        if self.family.head == Some(HeadFamily::Assistant) {
            return Ok((0..layer).find(same_kind));
        }
        if layer < with_kv {
            return Ok(None);
        }
        let shared = (0..with_kv).rev().find(same_kind);
        shared.map(Some).ok_or_else(|| {
            let expected = format!("keys and values for layer {layer} in an earlier one of its kind");
            self.bad(expected, "none".into())
        })
    }
}
