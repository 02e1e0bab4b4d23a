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
    "<turn|>",
    RETURN,
    "<|call|>",
];

/// Where this ends a reply, [`MESSAGE_END`] ends a message of several that it may have.
const RETURN: &str = "<|return|>";
const MESSAGE_END: &str = "<|end|>";

/// Control tokens that are text all the same: between them a model thinks.
pub(super) const SHOWN: &[&str] = &["<|channel>", "<channel|>"];

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

    /// Adds those of all control tokens that are known to end replies.
    pub(super) fn add_known_ends(&mut self, controls: impl Iterator<Item = SpecialToken>) {
        let known: Vec<SpecialToken> = controls.filter(|token| ENDS.contains(&token.text.as_str())).collect();
        let returns = known.iter().any(|token| token.text == RETURN);
        let ends = known.into_iter().filter(|token| !(returns && token.text == MESSAGE_END));
        ends.for_each(|token| self.add_end(token));
    }
}
