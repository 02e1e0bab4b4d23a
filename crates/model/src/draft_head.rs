//! Pairs a draft head with its target: checks that they fit, and takes shared tensors from the
//! target.

use std::sync::Arc;

use super::tables::outer::{EMBEDDING, OUTPUT, TOKEN_TABLE};
use super::{AttentionKind, DraftHead, HeadKind, ModelConfig, ModelSource};
use crate::error::{Error, Result};
use crate::token::TokenId;

impl ModelSource {
    /// Returns whether this is a draft head, which cannot run without a target.
    pub fn is_draft_head(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.draft_head.is_some())
    }

    /// Completes this draft head for `target`: names the layers it reads, and takes a missing
    /// embedding or output matrix from the target.
    ///
    /// # Errors
    /// `Error::OtherTarget` if the head was made for another target.
    pub fn for_target(&self, target: &Self) -> Result<Self> {
        let mut head = self.clone();
        let Self { config, tensors, .. } = &mut head;
        let Some(config) = config.as_mut() else { return Ok(head) };
        let ModelConfig { draft_head: Some(reads), attention_kinds, .. } = config else { return Ok(head) };
        let theirs = target.config()?;
        let entering = reads.entering.get_or_insert_with(|| DraftHead::usual(theirs.depth()));
        if let Some(problem) = misfit(reads.target_hidden, reads.tokens, entering, theirs) {
            return Err(Error::OtherTarget(problem));
        }
        if let HeadKind::Assistant(assistant) = &mut reads.kind {
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

    /// Checks that this model can be a target.
    ///
    /// # Errors
    /// `Error::HeadAlone` for a draft head.
    pub fn check_target(&self) -> Result<()> {
        if self.is_draft_head() { Err(Error::HeadAlone { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Returns the target token of each row of a draft head's output matrix, ascending; `None` if
    /// rows are the target's tokens.
    ///
    /// # Errors
    /// `Error::BadModel` for a table of the wrong length, one that names a token twice, or one with
    /// a token that the target lacks.
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

/// Returns the last layer of the target with keys and values of its own that matches `kind` in
/// having a window.
///
/// # Errors
/// `Error::OtherTarget` if the target has no such layer, or one with other key-value heads.
fn seen_layer(kind: &AttentionKind, target: &ModelConfig) -> Result<usize> {
    let window = |layer: usize| target.attention(layer).is_some_and(|kind| kind.window.is_some());
    let of_kind = |&layer: &usize| target.computes_kv(layer) && window(layer) == kind.window.is_some();
    let found = (0..target.depth()).rev().find(of_kind).filter(|_| target.family.is_assisted());
    let ours = (kind.keys.count, kind.keys.size);
    let heads = |(count, size): (usize, usize)| {
        format!("{count} {} of {size} numbers", if count == 1 { "head" } else { "heads" })
    };
    let theirs =
        found.and_then(|layer| target.attention(layer)).map(|kind| (kind.keys.count, kind.keys.size));
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

/// Returns why a head does not fit the target, if it does not. `hidden` is the width of the states
/// it reads, `entering` are the layers it reads, `tokens` is its input vocabulary.
fn misfit(hidden: usize, tokens: usize, entering: &[usize], target: &ModelConfig) -> Option<String> {
    let why = if hidden != target.hidden {
        format!("reads states of {hidden} numbers, and the target's have {}", target.hidden)
    } else if entering.last().is_some_and(|&last| last > target.depth()) {
        format!(
            "reads the states that enter layers {entering:?}, and the target has {} layers",
            target.depth()
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
