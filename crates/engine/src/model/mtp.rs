//! The blocks that a model has after its layers, trained with it to predict further tokens (multi-token prediction, MTP):
//! what files call their tensors, and the draft head that one is.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ModelSource;
use super::config::{DraftHead, FusedNorms, ModelConfig};
use super::family::{Family, Mixer};
use super::tensors::{Stored, Tensors};
use super::weights::{self, EMBEDDING, OUTPUT, OUTPUT_NORM};
use crate::error::{Error, Result};

/// The names of the matrix that joins embedding and state, `[hidden, 2 * hidden]`, and of the norms of either, `[hidden]`.
pub const JOIN: &str = "blk.0.nextn.eh_proj.weight";
pub const JOINED_EMBEDDING_NORM: &str = "blk.0.nextn.enorm.weight";
pub const JOINED_STATE_NORM: &str = "blk.0.nextn.hnorm.weight";

/// What a block may have of its own in place of what the target has, and what it is called in a model.
const OWN: [(&str, &str); 3] = [
    ("blk.0.nextn.shared_head_norm.weight", OUTPUT_NORM),
    ("blk.0.nextn.embed_tokens.weight", EMBEDDING),
    ("blk.0.nextn.shared_head_head.weight", OUTPUT),
];

/// Hugging Face's names of what is around the layer of a block.
const AROUND: [(&str, &str); 4] = [
    ("fc.weight", JOIN),
    ("pre_fc_norm_embedding.weight", JOINED_EMBEDDING_NORM),
    ("pre_fc_norm_hidden.weight", JOINED_STATE_NORM),
    ("norm.weight", "blk.0.nextn.shared_head_norm.weight"),
];

const HINT: &str = "Choose another draft, or another file of this model.";

/// The canonical name of a block's tensor by its Hugging Face name, counted from the first block; its own for one that is
/// not known. `None` for what is of no block.
pub(super) fn canonical(hugging_face: &str, family: &Family) -> Option<String> {
    let name = ["model.language_model.", "language_model.", "model."]
        .iter()
        .find_map(|part| hugging_face.strip_prefix(part))
        .unwrap_or(hugging_face)
        .strip_prefix("mtp.")?;
    let around =
        AROUND.iter().find(|(around, _)| *around == name).map(|(_, canonical)| (*canonical).to_owned());
    let of_layer =
        || weights::canonical(&format!("model.{name}"), family).filter(|_| name.starts_with("layers."));
    Some(around.or_else(of_layer).unwrap_or_else(|| hugging_face.to_owned()))
}

/// Those that a block has beside those of a layer.
pub(super) fn expected(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (is_block, hidden) = (config.draft_head.as_ref().is_some_and(|head| head.mtp), config.hidden);
    let named = |name: &str, shape: &[usize]| (name.to_owned(), shape.to_vec());
    match is_block {
        true => vec![
            named(JOIN, &[hidden, 2 * hidden]),
            named(JOINED_EMBEDDING_NORM, &[hidden]),
            named(JOINED_STATE_NORM, &[hidden]),
        ],
        false => Vec::new(),
    }
}

impl ModelConfig {
    /// Of the draft head that a block beyond the layers is: one with attention, whatever the layers are. `None` where no
    /// layer has any.
    fn mtp_head(&self) -> Option<Self> {
        let like = self.mixers.iter().position(|&mixer| mixer == Mixer::Attention)?;
        Some(Self {
            layers: 1,
            caching_layers: 1,
            intermediates: Vec::new(),
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
        for (own, name) in OWN {
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
