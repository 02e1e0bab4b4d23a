//! Form of the tables: a tensor of a module, and the layer that it is looked up for.

use super::super::config::{
    AttentionParts, DraftHead, Experts, FeedForwardSpec, KeyHeads, Latent, LayerSpec, MixerSpec, ModelConfig,
    Recurrence,
};

/// A tensor of a module.
pub(crate) struct TensorSpec {
    /// Canonical name; within a layer without the prefix `blk.{i}.`.
    pub name: &'static str,
    /// Names in Hugging Face files; within a layer without the prefix `model.layers.{i}.`.
    pub hugging_face: &'static [&'static str],
    /// Outermost dimension first.
    pub shape: fn(Place<'_>) -> Vec<usize>,
    pub exists: fn(Place<'_>) -> bool,
    /// True if a file may lack the tensor where it exists.
    pub optional: fn(Place<'_>) -> bool,
}

impl TensorSpec {
    pub const fn new(
        name: &'static str,
        hugging_face: &'static [&'static str],
        shape: fn(Place<'_>) -> Vec<usize>,
    ) -> Self {
        Self { name, hugging_face, shape, exists: |_| true, optional: |_| false }
    }

    /// Limits the tensor to places that satisfy `exists`.
    pub const fn when(self, exists: fn(Place<'_>) -> bool) -> Self {
        Self { exists, ..self }
    }

    /// Lets files lack the tensor in places that satisfy `optional`.
    pub const fn optional(self, optional: fn(Place<'_>) -> bool) -> Self {
        Self { optional, ..self }
    }
}

/// A layer of a model; the first layer for tensors outside layers.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub config: &'a ModelConfig,
    pub layer: usize,
}

impl<'a> Place<'a> {
    pub fn spec(self) -> &'a LayerSpec {
        &self.config.layers[self.layer]
    }

    pub fn hidden(self) -> usize {
        self.config.hidden
    }

    /// Returns whether the layer has grouped-query attention.
    pub fn attends(self) -> bool {
        matches!(self.spec().mixer, MixerSpec::Attention { .. })
    }

    /// Optional parts of the layer's grouped-query attention.
    pub fn attention_parts(self) -> AttentionParts {
        let kind = self.config.attention(self.layer).filter(|_| self.attends());
        kind.map_or(AttentionParts::NONE, |kind| kind.parts)
    }

    pub fn key_heads(self) -> KeyHeads {
        self.config.attention(self.layer).map(|kind| kind.keys).unwrap_or_default()
    }

    pub fn latent(self) -> Option<Latent> {
        match self.spec().mixer {
            MixerSpec::Latent { sizes, .. } => Some(sizes),
            _ => None,
        }
    }

    pub fn recurrence(self) -> Option<&'a Recurrence> {
        self.spec().mixer.recurrence()
    }

    pub fn feed_forward(self) -> &'a FeedForwardSpec {
        &self.spec().feed_forward
    }

    pub fn experts(self) -> Option<&'a Experts> {
        self.feed_forward().experts()
    }

    /// Width of the network that every token passes through.
    pub fn width(self) -> usize {
        self.feed_forward().width().unwrap_or_default()
    }

    pub fn head(self) -> Option<&'a DraftHead> {
        self.config.draft_head.as_ref()
    }
}

/// A tensor that the configuration requires or allows.
pub(super) struct Expected {
    pub name: String,
    pub shape: Vec<usize>,
    pub optional: bool,
}

impl Expected {
    pub fn required(name: String, shape: Vec<usize>) -> Self {
        Self { name, shape, optional: false }
    }
}

/// A tensor in files that contains several of a table's tensors.
pub(super) struct Alias {
    /// Canonical name without the prefix of a layer.
    pub name: &'static str,
    pub hugging_face: &'static [&'static str],
    pub exists: fn(Place<'_>) -> bool,
    pub storage: Storage,
}

/// How a tensor of a file contains others.
pub(super) enum Storage {
    /// The tensors' rows follow each other. Lists their names and numbers of rows.
    Rows(fn(Place<'_>) -> Vec<(&'static str, usize)>),
    /// The module itself splits the tensor.
    Custom,
}

/// Parses a canonical decimal number: neither "+1" nor "01".
pub(super) fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text)
}
