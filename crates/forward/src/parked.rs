//! Texts with their caches, put aside so that a model can return to them.

use std::sync::Arc;

use foretoken_model::ModelConfig;
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

    /// Number of leading tokens that a model with `config`, once it resumed this text, keeps for a
    /// reply to `prompt`.
    pub fn reusable(&self, prompt: &[TokenId], config: &ModelConfig) -> usize {
        if config.is_long(prompt.len()) != self.long {
            return 0;
        }
        let wanted = &prompt[..prompt.len().saturating_sub(1)];
        self.kept(self.tokens.iter().zip(wanted).take_while(|(own, wanted)| own == wanted).count())
    }

    /// Returns true if cutting this text gives all of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        let length = other.tokens.len();
        self.long == other.long && self.tokens.starts_with(&other.tokens) && self.kept(length) == length
    }

    /// Tokens that are left once the text is cut to `length`.
    fn kept(&self, length: usize) -> usize {
        self.history.clone().map_or(length, |mut history| history.truncate(length))
    }

    /// Address and bytes of each buffer. Texts that share a buffer have the same address.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        self.stored.buffers()
    }
}
