//! Texts with their caches, put aside so that a model can return to them.

use std::sync::Arc;

use foretoken_model::token::TokenId;

use crate::cpu::Stored;
use crate::state_history::StateHistory;

/// Text with its caches, of one model. Models and other texts share its memory, so a copy costs
/// little.
#[derive(Debug, Clone)]
pub struct Parked {
    pub(crate) tokens: Arc<[TokenId]>,
    pub(crate) stored: Stored,
    /// States and step logs, in a model with recurrent layers.
    pub(crate) history: Option<StateHistory>,
    /// The text is longer than [`ModelConfig::rope_switch_length`].
    ///
    /// [`ModelConfig::rope_switch_length`]: foretoken_model::ModelConfig::rope_switch_length
    pub(crate) long: bool,
}

impl Parked {
    /// The cached tokens.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Address and bytes of each buffer. Texts that share a buffer have the same address.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        self.stored.buffers()
    }
}
