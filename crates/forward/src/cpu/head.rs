//! Weights of a draft head beside its layers.

use foretoken_model::error::Result;
use foretoken_model::tables::eagle3::{FUSE, STATE_NORM, fused_norms};
use foretoken_model::tables::mtp::{EH_PROJ, ENORM, HNORM};
use foretoken_model::{self as model, DraftHead, HeadKind, ModelConfig, Weights};

use super::assistant::{Assistant, Clusters};
use super::block_head::BlockHead;
use super::packing::{panels, vector};
use super::panels::Panels;

/// Weights of a draft head, by its kind.
#[derive(Debug)]
pub enum Head {
    Eagle3(Eagle3),
    Mtp(Mtp),
    Block(BlockHead),
    Assistant(Assistant),
}

/// Weights that compute the input of an EAGLE-3 head.
#[derive(Debug)]
pub struct Eagle3 {
    pub fuse: Panels, // [hidden, states]
    /// Norms before `fuse`: one over all states, one for each, or none.
    pub fused_norms: Vec<Vec<f32>>,
    /// Norm of the input state. The embedding's norm is the layer's `attn_norm`.
    pub state_norm: Vec<f32>, // [hidden]
    /// True if the residual that attention adds to is the normalised state.
    pub normed_residual: bool,
}

/// Weights that compute the input of an MTP block.
#[derive(Debug)]
pub struct Mtp {
    /// Projection of the normed embedding and the normed state to one state.
    pub eh_proj: Panels, // [hidden, 2 * hidden]
    pub embedding_norm: Vec<f32>, // [hidden]
    pub state_norm: Vec<f32>,     // [hidden]
}

impl Head {
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, config: &ModelConfig, head: &DraftHead) -> Result<Self> {
        Ok(match &head.kind {
            HeadKind::Eagle3(options) => Self::Eagle3(Eagle3::load(weights, head, *options)?),
            HeadKind::Mtp => Self::Mtp(Mtp::load(weights)?),
            HeadKind::Block(block) => Self::Block(BlockHead::load(weights, config, block)?),
            HeadKind::Assistant(assistant) => Self::Assistant(Assistant::load(weights, config, assistant)?),
        })
    }

    pub fn block(&self) -> Option<&BlockHead> {
        match self {
            Self::Block(block) => Some(block),
            _ => None,
        }
    }

    pub fn assistant(&self) -> Option<&Assistant> {
        match self {
            Self::Assistant(assistant) => Some(assistant),
            _ => None,
        }
    }

    /// Clusters of an assistant's output matrix, if it has any.
    pub fn clusters(&self) -> Option<&Clusters> {
        self.assistant()?.clusters.as_ref()
    }

    /// Matrices that a pass over one row reads before and after the layers.
    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let matrices = match self {
            Self::Mtp(mtp) => [Some(&mtp.eh_proj), None],
            Self::Assistant(of) => [Some(&of.pre_projection), Some(&of.post_projection)],
            // The target's states are fused once per token of the text.
            Self::Eagle3(_) | Self::Block(_) => [None, None],
        };
        matrices.into_iter().flatten()
    }
}

impl Eagle3 {
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights, head: &DraftHead, options: model::Eagle3) -> Result<Self> {
        Ok(Self {
            fuse: panels(weights, FUSE)?,
            fused_norms: fused_norms(head).iter().map(|name| vector(weights, name)).collect::<Result<_>>()?,
            state_norm: vector(weights, STATE_NORM)?,
            normed_residual: options.normed_residual,
        })
    }
}

impl Mtp {
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(weights: &Weights) -> Result<Self> {
        Ok(Self {
            eh_proj: panels(weights, EH_PROJ)?,
            embedding_norm: vector(weights, ENORM)?,
            state_norm: vector(weights, HNORM)?,
        })
    }
}
