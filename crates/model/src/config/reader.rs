//! Builds a model's configuration from its settings.

mod attention;
mod experts;
mod feed_forward;
mod latent;
mod layers;
mod recurrence;
mod rotary;

use super::keys::Keys;
use super::{KvDtype, ModelConfig, Multipliers, Scoring, layers, query_scale};
use crate::error::Result;
use crate::family::HeadFamily;

/// Factors of a model's norms without keys in GGUF files.
const POST_NORM_EPSILON: &str = "attention.post_norm_rms_epsilon";
const QUERY_NORM: &str = "attention.query_norm_scale";

impl ModelConfig {
    /// Reads the configuration. `name` is the name to display; `tied_embeddings` is true if there
    /// is no output matrix. Options of draft heads are left out.
    ///
    /// # Errors
    /// `Error::Architecture` for experts in a dense family; `Error::BadModel` for missing or
    /// unusable settings.
    pub(super) fn read(keys: Keys<'_>, name: Option<String>, tied_embeddings: bool) -> Result<Self> {
        let (path, family) = (keys.path(), keys.family);
        let hidden = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let head_size = keys.size_or("attention.key_length", hidden / heads)?;
        let layers = layers(path, keys.size("block_count")?)?;
        let latent = keys.latent()?;
        let context = keys.size("context_length")?;
        let (attention_kinds, kind_of) = keys.attention_kinds(layers, heads, head_size, latent, context)?;
        let recurrence = keys.recurrence(layers, hidden)?;
        let norm_epsilon = keys.number("attention.layer_norm_rms_epsilon")?;
        let norm_epsilon = norm_epsilon.unwrap_or(if keys.source.is_gguf() { 1e-5 } else { 1e-6 });
        let default = |key: &str, name: &str| Result::Ok(keys.number(key)?.or(family.default(name)));
        let mut config = Self {
            family,
            name,
            vocabulary: keys.size("vocab_size")?,
            hidden,
            layers: keys.layers(&kind_of, latent, recurrence)?,
            attention_kinds,
            heads,
            activation: family.activation,
            normed_embeddings: family.normed_embeddings,
            context,
            norm_epsilon,
            post_norm_epsilon: default(POST_NORM_EPSILON, "post_norm_eps")?.unwrap_or(norm_epsilon),
            embedding_scale: family.embedding_scale(hidden),
            state_scale: 1.0,
            query_norm: default(QUERY_NORM, "qk_scale_factor")?.unwrap_or(1.0) as f32,
            query_scale: match latent {
                Some(latent) => keys.latent_scale(latent)?,
                None => query_scale(keys.number("attention.query_scalar")?.unwrap_or(head_size as f64)),
            },
            scoring: keys.scoring()?,
            mtp_layers: keys.mtp_layers()?,
            deepstack: keys.deepstack()?,
            tied_embeddings,
            kv_dtype: KvDtype::default(),
            draft_head: None,
        };
        if let Some(multipliers) = keys.multipliers()? {
            multipliers.apply(path, &mut config)?;
        }
        config.validated(path)
    }
}

impl Keys<'_> {
    /// Number of multi-token prediction blocks. Assistants use the key for their own layers.
    fn mtp_layers(&self) -> Result<usize> {
        let found =
            self.integer("nextn_predict_layers")?.filter(|_| self.family.head != Some(HeadFamily::Assistant));
        layers(self.path(), usize::try_from(found.unwrap_or(0)).unwrap_or(usize::MAX))
    }

    /// Number of first layers after which states of pictures are added.
    fn deepstack(&self) -> Result<Option<usize>> {
        let found = self.integer("n_deepstack_layers")?.unwrap_or(0);
        let found = layers(self.path(), usize::try_from(found).unwrap_or(usize::MAX))?;
        Ok(self.source.is_gguf().then_some(found))
    }

    fn multipliers(&self) -> Result<Option<Multipliers>> {
        if !self.family.multipliers {
            return Ok(None);
        }
        Ok(Some(Multipliers {
            embeddings: self.factor("embedding_scale")?.unwrap_or(1.0),
            branches: self.factor("residual_scale")?.unwrap_or(1.0),
            products: self.factor("attention.scale")?,
            logits: self.factor("logit_scale")?.unwrap_or(1.0),
        }))
    }

    fn scoring(&self) -> Result<Scoring> {
        if !self.family.logit_softcap {
            self.refuse("final_logit_softcapping", "logits without soft-capping")?;
            return Ok(Scoring::PLAIN);
        }
        let cap = self.number("final_logit_softcapping")?.filter(|&cap| cap != 0.0);
        let scale = self.number("logit_scale")?.unwrap_or(1.0);
        Ok(Scoring { scale: scale as f32, cap: cap.map(|cap| cap as f32) })
    }
}
