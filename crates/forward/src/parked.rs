//! Texts with their caches, put aside so that a model can return to them.

use std::sync::Arc;

use foretoken_model::ModelConfig;
use foretoken_model::token::TokenId;

use crate::cpu::{PAGE, Stored};
use crate::state_history::{SlotCounts, StateHistory};

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
    /// Leading tokens whose caches were [read](Self::read).
    pub(crate) restored: usize,
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

    /// Number of pages of keys and values, the last of which may be filled in part.
    pub fn pages(&self) -> usize {
        self.tokens.len().div_ceil(PAGE)
    }

    /// Bytes of a page: keys and values at [`PAGE`] positions of all layers, zeros behind the text.
    pub fn page(&mut self, number: usize) -> Vec<u8> {
        self.stored.page(number, (self.tokens.len() - number * PAGE).min(PAGE))
    }

    /// Length of [`Self::page`] in bytes.
    pub fn page_bytes(&self) -> usize {
        self.stored.page_bytes()
    }

    /// Returns whether the text is longer than [`ModelConfig::rope_switch_length`].
    pub fn is_long(&self) -> bool {
        self.long
    }

    /// Bytes of the states and step logs of recurrent layers.
    pub fn states(&mut self) -> Vec<u8> {
        let description = self.history.as_ref().map(StateHistory::description).unwrap_or_default();
        let numbers = [description.len() as u64].into_iter().chain(description);
        let mut bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        bytes.append(&mut self.stored.states());
        bytes
    }

    /// Text of the model that parked this one, from its tokens, whether it [is
    /// long](Self::is_long), all its pages and its [states](Self::states). `None` if they do not
    /// belong together.
    pub fn read(&self, tokens: &[TokenId], long: bool, pages: &[Vec<u8>], states: &[u8]) -> Option<Self> {
        let (count, states) = states.split_first_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (description, states) = states.split_at_checked(count.checked_mul(8)?)?;
        let words = description.as_chunks().0.iter();
        let description: Vec<u64> = words.map(|&word| u64::from_le_bytes(word)).collect();
        let history = match &self.history {
            Some(like) => Some(like.described(&description, tokens.len())?),
            None => None,
        };
        let counts = history.as_ref().map_or_else(SlotCounts::default, StateHistory::counts);
        (pages.len() == tokens.len().div_ceil(PAGE)).then_some(())?;
        let stored = self.stored.read(pages, counts, states)?;
        Some(Self { tokens: tokens.into(), stored, history, long, restored: tokens.len() })
    }
}
