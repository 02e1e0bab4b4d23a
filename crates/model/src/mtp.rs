//! Multi-token prediction (MTP) blocks: draft heads in a model's own files, or in a file beside
//! them, trained with the model to predict one more token. A file with only the block may contain
//! copies of the model's tensors, which are not read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ModelSource;
use super::config::{DraftHead, HeadKind, KvDtype, LayerSpec, MixerSpec, ModelConfig};
use super::tables;
use super::tables::mtp::{OWN_EMBEDDING, OWN_OUTPUT, OWN_OUTPUT_NORM};
use super::tables::outer::{EMBEDDING, OUTPUT, OUTPUT_NORM};
use super::tensors::{Stored, Tensors};
use crate::error::{Error, Result};

const HINT: &str = "Choose another draft, or another file of this model.";

impl ModelConfig {
    /// Returns the configuration of the MTP block as a draft head: one layer with attention,
    /// whatever the mixers of the layers are. Returns `None` if no layer has attention.
    pub(super) fn mtp_head(&self) -> Option<Self> {
        let attends = |layer: &&LayerSpec| layer.mixer.attention_kind().is_some();
        let mixer = match self.layers.iter().find(attends)?.mixer.clone() {
            MixerSpec::Attention { kind, .. } => MixerSpec::Attention { kind, shares_kv_with: None },
            other => other,
        };
        // Beside the mixer the block is like the last layer, experts included.
        let layer = LayerSpec { mixer, ..self.layers.last()?.clone() };
        Some(Self {
            layers: vec![layer],
            mtp_layers: 0,
            tied_embeddings: false,
            draft_head: Some(DraftHead {
                entering: Some(Vec::new()),
                target_hidden: self.hidden,
                tokens: self.vocabulary,
                kind: HeadKind::Mtp,
            }),
            kv_dtype: KvDtype::F16,
            ..self.clone()
        })
    }
}

/// Returns whether a file contains an MTP block and no layers.
pub(super) fn is_alone(tensors: &Tensors, config: &ModelConfig) -> bool {
    let of_layers = || tensors.stored.keys().any(|name| name.starts_with("blk."));
    config.draft_head.is_none() && !tensors.mtp.is_empty() && !of_layers()
}

/// Extracts the MTP block among `tensors` as a draft head, with the tensors it does not share.
///
/// # Errors
/// `Error::BadModel` for several blocks or an incomplete one.
pub(super) fn head_of(tensors: &Tensors, config: &ModelConfig) -> Result<(Tensors, ModelConfig)> {
    let one = config.mtp_head().filter(|_| config.mtp_layers <= 1);
    let config = one.ok_or_else(|| Error::BadModel {
        path: tensors.path.clone(),
        expected: "one block for MTP, with attention".to_owned(),
        found: format!("{} blocks", config.mtp_layers),
        hint: HINT,
    })?;
    let mut own = Tensors { raw: BTreeMap::new(), ..tensors.clone() };
    own.stored = std::mem::take(&mut own.mtp);
    for (name, usual) in [(OWN_OUTPUT_NORM, OUTPUT_NORM), (OWN_EMBEDDING, EMBEDDING), (OWN_OUTPUT, OUTPUT)] {
        if let Some(stored) = own.stored.remove(name) {
            own.stored.insert(usual.to_owned(), stored);
        }
    }
    if !own.stored.contains_key(OUTPUT_NORM) {
        let norm: Stored = tensors.find(OUTPUT_NORM)?.clone();
        own.stored.insert(OUTPUT_NORM.to_owned(), norm);
    }
    tables::split(&mut own, &config)?;
    tables::check(&own, &config).map_err(|error| match error {
        Error::BadModel { path, expected, found, .. } => {
            let expected = format!("{expected} in the block for MTP");
            Error::BadModel { path, expected, found, hint: HINT }
        }
        other => other,
    })?;
    Ok((own, config))
}

impl ModelSource {
    /// Returns whether the files declare or contain an MTP block, with which the model drafts for
    /// itself.
    pub fn speaks_of_mtp(&self) -> bool {
        !self.tensors.mtp.is_empty() || self.config.as_ref().is_some_and(|config| config.mtp_layers > 0)
    }

    /// Returns the MTP block of this model as a draft head. [`Self::for_target`] adds the tensors
    /// that the block shares with its target.
    ///
    /// # Errors
    /// `Error::NoMtp` without such a block; errors of [`head_of`].
    pub fn mtp_head(&self) -> Result<Self> {
        if self.tensors.mtp.is_empty() {
            return Err(Error::NoMtp { path: self.path.clone() });
        }
        let (tensors, config) = head_of(&self.tensors, self.config()?)?;
        Ok(Self { tensors: Arc::new(tensors), config: Some(config), watcher: None, ..self.clone() })
    }
}
