//! The draft head that a model has in its own files, or in one beside them: the block after its layers that was trained with
//! it to predict a further token (multi-token prediction, MTP). Of a file that has nothing but the block, copies of what
//! it shares with its model are left alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ModelSource;
use super::config::{DraftHead, Experts, FusedNorms, ModelConfig};
use super::family::Mixer;
use super::mtp_tensors::{OWN_EMBEDDING, OWN_OUTPUT, OWN_OUTPUT_NORM};
use super::tensors::{Stored, Tensors};
use super::weights::{self, EMBEDDING, OUTPUT, OUTPUT_NORM};
use crate::error::{Error, Result};

const HINT: &str = "Choose another draft, or another file of this model.";

impl ModelConfig {
    /// Of the draft head that a block beyond the layers is: one with attention, whatever the layers are. `None` where no
    /// layer has any.
    fn mtp_head(&self) -> Option<Self> {
        let like = self.mixers.iter().position(|&mixer| mixer == Mixer::Attention)?;
        Some(Self {
            layers: 1,
            caching_layers: 1,
            intermediate: self.intermediate_of(self.layers - 1),
            intermediates: Vec::new(),
            // It has them, if the last layer does.
            experts: self.experts.clone().map(|experts| Experts { after: 0, ..experts }),
            attention_kind_of: vec![self.attention_kind_of[like]],
            mixers: vec![Mixer::Attention],
            recurrence: None,
            beyond: 0,
            tied_embeddings: false,
            draft_head: Some(DraftHead {
                entering: Some(Vec::new()),
                target_hidden: self.hidden,
                tokens: self.vocabulary,
                fused_norms: FusedNorms::None,
                normed_residual: false,
                normed_output: true,
                block: None,
                mtp: true,
                assistant: None,
            }),
            ..self.clone()
        })
    }
}

/// Whether a file holds the block of a model and not the layers before it.
pub(super) fn is_alone(tensors: &Tensors, config: &ModelConfig) -> bool {
    let of_layers = || tensors.stored.keys().any(|name| name.starts_with("blk."));
    config.draft_head.is_none() && !tensors.beyond.is_empty() && !of_layers()
}

/// The draft head that the block among the `tensors` of a model is, with what it does not share with the model.
///
/// # Errors
/// `Error::BadModel` where there are several blocks, or not all of one.
pub(super) fn head_of(tensors: &Tensors, config: &ModelConfig) -> Result<(Tensors, ModelConfig)> {
    let one = config.mtp_head().filter(|_| config.beyond <= 1);
    let config = one.ok_or_else(|| Error::BadModel {
        path: tensors.path.clone(),
        expected: "one block for MTP, with attention".to_owned(),
        found: format!("{} blocks", config.beyond),
        hint: HINT,
    })?;
    let mut own = Tensors { raw: BTreeMap::new(), ..tensors.clone() };
    own.stored = std::mem::take(&mut own.beyond);
    for (name, usual) in [(OWN_OUTPUT_NORM, OUTPUT_NORM), (OWN_EMBEDDING, EMBEDDING), (OWN_OUTPUT, OUTPUT)] {
        if let Some(stored) = own.stored.remove(name) {
            own.stored.insert(usual.to_owned(), stored);
        }
    }
    if !own.stored.contains_key(OUTPUT_NORM) {
        let norm: Stored = tensors.find(OUTPUT_NORM)?.clone();
        own.stored.insert(OUTPUT_NORM.to_owned(), norm);
    }
    weights::split(&mut own, &config)?;
    weights::check(&own, &config).map_err(|error| match error {
        Error::BadModel { path, expected, found, .. } => {
            let expected = format!("{expected} in the block for MTP");
            Error::BadModel { path, expected, found, hint: HINT }
        }
        other => other,
    })?;
    Ok((own, config))
}

impl ModelSource {
    /// Whether the files speak of a block for MTP, with which the model drafts for itself.
    pub fn speaks_of_mtp(&self) -> bool {
        !self.tensors.beyond.is_empty() || self.config.as_ref().is_some_and(|config| config.beyond > 0)
    }

    /// The draft head that this model has in its own files; what it has not of its own it takes
    /// [of its target](Self::for_target).
    ///
    /// # Errors
    /// `Error::NoMtp` where there is none; those of [`head_of`].
    pub fn mtp_head(&self) -> Result<Self> {
        if self.tensors.beyond.is_empty() {
            return Err(Error::NoMtp { path: self.path.clone() });
        }
        let (tensors, config) = head_of(&self.tensors, self.config()?)?;
        Ok(Self { tensors: Arc::new(tensors), config: Some(config), watcher: None, ..self.clone() })
    }
}
