//! A draft head and its target: whether they fit, and what the head takes of the target's files.

use std::sync::Arc;

use super::weights::{EMBEDDING, OUTPUT, TOKEN_TABLE};
use super::{AttentionKind, DraftHead, ModelConfig, ModelSource};
use crate::error::{Error, Result};
use crate::token::TokenId;

impl ModelSource {
    /// Whether this is no model by itself but a draft head.
    pub fn is_draft_head(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.draft_head.is_some())
    }

    /// This draft head for a target: the layers it reads are named, and an embedding or an output matrix it has not
    /// are the target's.
    ///
    /// # Errors
    /// `Error::OtherTarget` when it was made for another target.
    pub fn for_target(&self, target: &Self) -> Result<Self> {
        let mut head = self.clone();
        let Self { config, tensors, .. } = &mut head;
        let Some(config) = config.as_mut() else { return Ok(head) };
        let ModelConfig { draft_head: Some(reads), attention_kinds, .. } = config else { return Ok(head) };
        let theirs = target.config()?;
        let entering = reads.entering.get_or_insert_with(|| DraftHead::usual(theirs.layers));
        if let Some(problem) = misfit(reads.target_hidden, reads.tokens, entering, theirs) {
            return Err(Error::OtherTarget(problem));
        }
        if let Some(assistant) = &mut reads.assistant {
            let seen = attention_kinds.iter().map(|kind| seen_layer(kind, theirs));
            assistant.sees = seen.collect::<Result<_>>()?;
        }
        let output = if theirs.tied_embeddings { EMBEDDING } else { OUTPUT };
        for (name, from, shape) in [
            (EMBEDDING, EMBEDDING, [config.tokens(), config.carried()]),
            (OUTPUT, output, [config.vocabulary, config.hidden]),
        ] {
            if tensors.stored.contains_key(name) {
                continue;
            }
            let stored = target.tensors.find(from)?;
            if stored.shape != shape {
                return Err(Error::OtherTarget(format!(
                    "it takes its target's {name}, and that has the shape {:?}; choose the head that was made for \
                     this model",
                    stored.shape
                )));
            }
            Arc::make_mut(tensors).borrow(name, &target.tensors, stored);
        }
        Ok(head)
    }

    /// That this can be a target.
    ///
    /// # Errors
    /// `Error::HeadAlone` for a draft head.
    pub fn check_target(&self) -> Result<()> {
        if self.is_draft_head() { Err(Error::HeadAlone { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Of each row of a draft head's output matrix the target's token, ascending; `None` where rows are tokens.
    ///
    /// # Errors
    /// `Error::BadModel` for a table of another length, or one that names a token twice or one that the target does not
    /// have.
    pub fn guessed_tokens(&self) -> Result<Option<Vec<TokenId>>> {
        let Some(numbers) = self.tensors.tokens()? else { return Ok(None) };
        let (tokens, rows) = (self.config()?.tokens(), self.config()?.vocabulary);
        let within = |&number: &i64| usize::try_from(number).is_ok_and(|token| token < tokens);
        let bad = |found: String| Error::BadModel {
            path: self.path.clone(),
            expected: format!("{rows} ascending tokens below {tokens} in {TOKEN_TABLE}"),
            found,
            hint: "Choose another file of this draft head.",
        };
        if numbers.len() != rows {
            return Err(bad(numbers.len().to_string()));
        }
        if let Some(number) = numbers.iter().find(|number| !within(number)) {
            return Err(bad(number.to_string()));
        }
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(bad(format!("{} before {}", pair[0], pair[1])));
        }
        Ok(Some(numbers.into_iter().map(|number| number as TokenId).collect()))
    }
}

/// The last layer of a target with keys and values of its own that has a window where `kind` has one.
///
/// # Errors
/// `Error::OtherTarget` where an assistant with such a kind of attention is not for it.
fn seen_layer(kind: &AttentionKind, target: &ModelConfig) -> Result<usize> {
    let of_kind = |layer: &usize| target.attention(*layer).window.is_some() == kind.window.is_some();
    let found = (0..target.caching_layers).rev().find(of_kind).filter(|_| target.family.is_assisted());
    let ours = (kind.keys.count, kind.keys.size);
    let heads = |(count, size): (usize, usize)| {
        format!("{count} {} of {size} numbers", if count == 1 { "head" } else { "heads" })
    };
    let theirs = found.map(|layer| target.attention(layer).keys).map(|keys| (keys.count, keys.size));
    let why = match (found, theirs) {
        (Some(layer), Some(theirs)) if theirs == ours => return Ok(layer),
        (_, Some(theirs)) => format!("and the target's have {}", heads(theirs)),
        _ => "and the target has no such layers".to_owned(),
    };
    let window = if kind.window.is_some() { "with" } else { "without" };
    let ours = heads(ours);
    Err(Error::OtherTarget(other(&format!(
        "attends to the keys and values of Gemma 4's layers {window} a window, {ours}, {why}"
    ))))
}

/// Why a head that reads states of `hidden` numbers `entering` these layers and is fed so many `tokens` is not for
/// this target.
fn misfit(hidden: usize, tokens: usize, entering: &[usize], target: &ModelConfig) -> Option<String> {
    let why = if hidden != target.hidden {
        format!("reads states of {hidden} numbers, and the target's have {}", target.hidden)
    } else if entering.last().is_some_and(|&last| last > target.layers) {
        format!(
            "reads the states that enter layers {entering:?}, and the target has {} layers",
            target.layers
        )
    } else if tokens != target.vocabulary {
        format!("knows {tokens} tokens, and the target has {}", target.vocabulary)
    } else {
        return None;
    };
    Some(other(&why))
}

fn other(why: &str) -> String {
    format!("it was made for another model: it {why}; choose the head that was made for this one")
}
