//! Layers of a model: what each one is made of.

use super::experts::Experts;
use super::latent::Latent;
use super::recurrence::Recurrence;

/// One layer: a token mixer, then a feed-forward network.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSpec {
    pub norms: LayerNorms,
    pub mixer: MixerSpec,
    pub feed_forward: FeedForwardSpec,
    /// Width of the layer's own input embedding, which is added to its output.
    pub per_layer_input: Option<usize>,
    /// True if the output is multiplied by a learned scalar.
    pub output_scale: bool,
}

/// Norms around the mixer and around the feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerNorms {
    /// True if inputs are normalised.
    pub pre: bool,
    /// True if outputs are normalised before the residual addition.
    pub post: bool,
}

/// Token mixer of a layer: how a token depends on earlier ones.
#[derive(Debug, Clone, PartialEq)]
pub enum MixerSpec {
    /// Grouped-query attention.
    Attention {
        /// Index into `ModelConfig::attention_kinds`.
        kind: usize,
        /// Earlier layer whose cached keys and values this layer reads instead of its own.
        shares_kv_with: Option<usize>,
    },
    /// Multi-head latent attention.
    Latent {
        /// Index into `ModelConfig::attention_kinds`.
        kind: usize,
        sizes: Latent,
    },
    /// A layer that keeps a state instead of keys and values.
    Recurrent(Recurrence),
}

/// Feed-forward network of a layer.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedForwardSpec {
    /// One gated network of this width.
    Dense {
        width: usize,
    },
    Experts(Experts),
    /// Experts, and a shared expert that processes every token.
    WithShared {
        experts: Experts,
        shared: SharedExpert,
    },
    /// Experts whose output is added to that of a dense network of this width.
    BesideDense {
        experts: Experts,
        width: usize,
    },
}

/// A shared expert, which processes every token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedExpert {
    pub width: usize,
    /// True if its output is multiplied by the sigmoid of a gate of its own.
    pub gated: bool,
}

impl MixerSpec {
    /// Kind of attention, as an index into `ModelConfig::attention_kinds`; `None` for a recurrent
    /// layer.
    pub fn attention_kind(&self) -> Option<usize> {
        match *self {
            Self::Attention { kind, .. } | Self::Latent { kind, .. } => Some(kind),
            Self::Recurrent(_) => None,
        }
    }

    /// Returns whether the layer has a cache of keys and values of its own.
    pub fn has_cache(&self) -> bool {
        matches!(self, Self::Attention { shares_kv_with: None, .. } | Self::Latent { .. })
    }

    /// Sizes of a recurrent layer; `None` for attention.
    pub fn recurrence(&self) -> Option<&Recurrence> {
        match self {
            Self::Recurrent(recurrence) => Some(recurrence),
            Self::Attention { .. } | Self::Latent { .. } => None,
        }
    }
}

impl FeedForwardSpec {
    /// The routed experts; `None` for a dense network.
    pub fn experts(&self) -> Option<&Experts> {
        match self {
            Self::Dense { .. } => None,
            Self::Experts(experts) | Self::WithShared { experts, .. } | Self::BesideDense { experts, .. } => {
                Some(experts)
            }
        }
    }

    /// The shared expert, if there is one.
    pub fn shared(&self) -> Option<SharedExpert> {
        match self {
            Self::WithShared { shared, .. } => Some(*shared),
            Self::Dense { .. } | Self::Experts(_) | Self::BesideDense { .. } => None,
        }
    }

    /// Width of the network that every token passes through: the dense one or the shared expert.
    pub fn width(&self) -> Option<usize> {
        match *self {
            Self::Dense { width } | Self::BesideDense { width, .. } => Some(width),
            Self::WithShared { shared, .. } => Some(shared.width),
            Self::Experts(_) => None,
        }
    }

    /// Returns whether the layer has a dense network, alone or beside its experts.
    pub fn has_dense(&self) -> bool {
        matches!(self, Self::Dense { .. } | Self::BesideDense { .. })
    }
}
