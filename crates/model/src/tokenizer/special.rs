//! Special tokens: BOS and the tokens that end a reply. Found without building a tokenizer, so that
//! lists of models are fast.

use serde::Serialize;

use crate::limits;
use crate::token::TokenId;
use crate::tools::{HEADER, MARKS};

/// Control tokens that end a turn or a text in some family. Files often name only one of theirs.
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
    "<|tool_response>",
    RETURN,
    "<|call|>",
];

/// gpt-oss's end of a reply. In its vocabulary, [`MESSAGE_END`] ends one of several messages.
const RETURN: &str = "<|return|>";
const MESSAGE_END: &str = "<|end|>";

/// Control tokens that remain in the text, besides the markers of calls: they enclose reasoning.
const SHOWN: &[&str] = &["<|channel>", "<channel|>", "[THINK]", "[/THINK]"];

/// Returns whether a control token of this name remains in the text.
pub(super) fn is_shown(text: &str) -> bool {
    SHOWN.contains(&text) || MARKS.contains(&text) && text != HEADER
}

/// A token by id and text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpecialToken {
    pub id: TokenId,
    pub text: String,
}

/// Special tokens of a tokenizer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpecialTokens {
    pub bos: Option<SpecialToken>,
    /// True if a raw prompt starts with `bos`.
    pub adds_bos: bool,
    pub eos: Option<SpecialToken>,
    /// Tokens that end a reply, `eos` first.
    pub ends: Vec<SpecialToken>,
    /// Settings of the file that are ignored, each as a sentence without its full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SpecialTokens {
    /// Adds a token that ends a reply, once. Ignores more than [`limits::ENDS`].
    pub(super) fn add_end(&mut self, token: SpecialToken) {
        if self.ends.len() < limits::ENDS && self.ends.iter().all(|known| known.id != token.id) {
            self.ends.push(token);
        }
    }

    /// Adds the control tokens that are known to end replies.
    pub(super) fn add_known_ends(&mut self, controls: impl Iterator<Item = SpecialToken>) {
        let known: Vec<SpecialToken> = controls.filter(|token| ENDS.contains(&token.text.as_str())).collect();
        let returns = known.iter().any(|token| token.text == RETURN);
        let ends = known.into_iter().filter(|token| !(returns && token.text == MESSAGE_END));
        ends.for_each(|token| self.add_end(token));
    }
}
