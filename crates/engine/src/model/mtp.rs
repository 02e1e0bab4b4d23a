//! The draft head that a model has in its own files: the block after its layers that was trained with it to predict a
//! further token (multi-token prediction, MTP).

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

impl ModelSource {
    /// Whether the files speak of a block for MTP, with which the model drafts for itself.
    pub fn speaks_of_mtp(&self) -> bool {
        !self.tensors.beyond.is_empty() || self.config.as_ref().is_some_and(|config| config.beyond > 0)
    }

    /// The draft head that this model has in its own files; what it has not of its own it takes
    /// [of its target](Self::for_target).
    ///
    /// # Errors
    /// `Error::NoMtp` where there is none; `Error::BadModel` where there are several, or not all of one.
    pub fn mtp_head(&self) -> Result<Self> {
        if self.tensors.beyond.is_empty() {
            return Err(Error::NoMtp { path: self.path.clone() });
        }
        let config = self.config()?;
        let one = config.mtp_head().filter(|_| config.beyond <= 1);
        let config = one.ok_or_else(|| Error::BadModel {
            path: self.path.clone(),
            expected: "one block for MTP, with attention".to_owned(),
            found: format!("{} blocks", config.beyond),
            hint: HINT,
        })?;
        let mut tensors = Tensors { raw: BTreeMap::new(), ..(*self.tensors).clone() };
        tensors.stored = std::mem::take(&mut tensors.beyond);
        for (own, name) in [(OWN_OUTPUT_NORM, OUTPUT_NORM), (OWN_EMBEDDING, EMBEDDING), (OWN_OUTPUT, OUTPUT)]
        {
            if let Some(stored) = tensors.stored.remove(own) {
                tensors.stored.insert(name.to_owned(), stored);
            }
        }
        if !tensors.stored.contains_key(OUTPUT_NORM) {
            let norm: Stored = self.tensors.find(OUTPUT_NORM)?.clone();
            tensors.stored.insert(OUTPUT_NORM.to_owned(), norm);
        }
        weights::split(&mut tensors, &config)?;
        weights::check(&tensors, &config).map_err(|error| match error {
            Error::BadModel { path, expected, found, .. } => {
                let expected = format!("{expected} in the block for MTP");
                Error::BadModel { path, expected, found, hint: HINT }
            }
            other => other,
        })?;
        Ok(Self { tensors: Arc::new(tensors), config: Some(config), watcher: None, ..self.clone() })
    }
}
