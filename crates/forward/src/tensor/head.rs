//! Parts of a draft head beside its layers.

use foretoken_model::error::Result;
use foretoken_model::{DraftHead, HeadKind, ModelConfig, Weights};

use super::assistant::Assistant;
use super::block_head::BlockHead;
use super::eagle3::Eagle3;
use super::mtp::Mtp;
use super::stack::Arithmetic;

/// Parts of a draft head, by its kind.
pub enum Head {
    Eagle3(Eagle3),
    Mtp(Mtp),
    Block(BlockHead),
    Assistant(Assistant),
}

impl Head {
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        head: &DraftHead,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        Ok(match &head.kind {
            HeadKind::Eagle3(options) => Self::Eagle3(Eagle3::load(weights, head, *options, arithmetic)?),
            HeadKind::Mtp => Self::Mtp(Mtp::load(weights, arithmetic)?),
            HeadKind::Block(block) => Self::Block(BlockHead::load(weights, config, block, arithmetic)?),
            HeadKind::Assistant(assistant) => {
                Self::Assistant(Assistant::load(weights, config, assistant, arithmetic)?)
            }
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
}
