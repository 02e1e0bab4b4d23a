//! The tokens with a role: where a text begins and what ends a reply. Found without building a
//! tokenizer, so that a list of models is quick.

use serde::Serialize;

use crate::token::TokenId;

/// Control tokens that end a turn or a text in some family; writers of model files often name only
/// one of theirs.
pub(super) const ENDS: &[&str] = &[
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end_of_turn|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "<|EOT|>",
];

/// A token by id and text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecialToken {
    pub id: TokenId,
    pub text: String,
}

/// The tokens with a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpecialTokens {
    pub bos: Option<SpecialToken>,
    /// Whether a raw prompt starts with `bos`.
    pub adds_bos: bool,
    pub eos: Option<SpecialToken>,
    /// Every token that ends a reply, `eos` first.
    pub ends: Vec<SpecialToken>,
}

impl SpecialTokens {
    /// Adds a token that ends a reply, once.
    pub(super) fn add_end(&mut self, token: SpecialToken) {
        if self.ends.iter().all(|known| known.id != token.id) {
            self.ends.push(token);
        }
    }
}
