//! A smaller language model as the drafter.

use std::ops::ControlFlow;

use super::{Draft, Drafter};
use crate::compat::compare;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::forward::{Model, catch_up, load, rewind};
use crate::model::{ModelSource, Tokenizer};
use crate::sampler::Sampler;
use crate::trace::{DrafterKind, LengthReason, TokenId};
use crate::tree::TokenTree;

/// Decodes ahead one token at a time with a model of the target's vocabulary.
pub struct ModelDrafter {
    model: Box<dyn Model>,
    /// Tokens both models have; one of them may be padded with tokens that never occur.
    shared_vocabulary: usize,
    /// Tokens that end a reply: nothing is drafted after one.
    ends: Vec<TokenId>,
}

impl ModelDrafter {
    /// `target_vocabulary` and `ends` are the target's; that the vocabularies agree is for
    /// [`compat`](crate::compat) to say.
    pub fn new(model: Box<dyn Model>, target_vocabulary: usize, ends: &[TokenId]) -> Self {
        let shared_vocabulary = model.config().vocabulary.min(target_vocabulary);
        Self { model, shared_vocabulary, ends: ends.to_vec() }
    }

    /// Loads the model that `source` describes, to draft for a target with the tokenizer `target`.
    ///
    /// # Errors
    /// `Error::Incompatible` when it has another vocabulary, and those of loading a model.
    pub fn open(source: &ModelSource, device: &Device, target: &Tokenizer) -> Result<Self> {
        let verdict = compare(target, &source.tokenizer()?);
        if !verdict.compatible {
            return Err(Error::Incompatible(verdict.reason));
        }
        Ok(Self::new(load(source, device)?, target.vocabulary(), target.ends()))
    }

    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }
}

impl Drafter for ModelDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Model
    }

    fn prepare(
        &mut self,
        context: &[TokenId],
        on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if context.len() >= self.model.config().context {
            // It will not draft.
            return Ok(ControlFlow::Continue(()));
        }
        Ok(catch_up(self.model.as_mut(), context, on_progress)?.1)
    }

    fn draft(&mut self, context: &[TokenId], length: usize, sampler: &mut Sampler) -> Result<Draft> {
        let room = self.model.config().context.saturating_sub(context.len());
        let mut draft = Draft::default();
        if room < length {
            draft.shortened = Some(LengthReason::DraftContextFull);
        }
        let length = length.min(room);
        if length == 0 {
            return Ok(draft);
        }
        let mut known = context.to_vec();
        let mut fed = rewind(self.model.as_mut(), context);
        // After full acceptance the last drafted token and the bonus token are both new: fed in one
        // pass they cost no pass more than plain decoding.
        if known.len() - fed > 2 {
            let _ = catch_up(self.model.as_mut(), context, &mut |_, _| ControlFlow::Continue(()))?;
            fed = known.len() - 1;
        }
        while draft.guesses.len() < length {
            let new = TokenTree::chain(known[fed..].iter().copied());
            let last = new.len() - 1;
            let logits = self.model.forward(&new, last..last + 1)?;
            let guess = sampler.guess(logits.row(0).first(self.shared_vocabulary), &known);
            fed = known.len();
            known.push(guess.token);
            let ended = self.ends.contains(&guess.token);
            draft.guesses.push(guess);
            if ended && draft.guesses.len() < length {
                draft.shortened = Some(LengthReason::EndOfText);
                break;
            }
        }
        Ok(draft)
    }
}
