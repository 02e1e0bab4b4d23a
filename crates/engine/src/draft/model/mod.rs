//! A smaller language model as the drafter: chains, guess by guess. Trees and drafts for the draft itself
//! are its children's.

mod staged;
mod tree;

use std::ops::ControlFlow;

use super::vocabulary::{Intersection, Vocabulary};
use super::{Draft, Drafter, NgramDrafter, Order};
use crate::accept::Guess;
use crate::compat::{Method, compare};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::forward::{Interest, Model, Row, catch_up, load, rewind};
use crate::model::{ModelSource, Tokenizer};
use crate::sampler::Sampler;
use crate::speculation::WIDEST_TREE;
use crate::trace::{DrafterKind, LengthReason, TokenId};
use crate::tree::TokenTree;

/// Tokens that are fed in one pass with the one whose scores are asked for.
const AT_ONCE: usize = 16;

/// Decodes ahead with a model of the target's vocabulary, or of one that shares many tokens with it.
pub struct ModelDrafter {
    model: Box<dyn Model>,
    vocabulary: Vocabulary,
    /// Who drafts for the draft, where that is asked for, in the draft's tokens.
    stage: Box<dyn Drafter>,
    /// Tokens that end a reply: nothing is drafted after one.
    ends: Vec<TokenId>,
}

impl ModelDrafter {
    /// `ends` are the target's.
    pub fn new(mut model: Box<dyn Model>, vocabulary: Vocabulary, ends: &[TokenId]) -> Self {
        if let Vocabulary::Same(shared) = vocabulary {
            model.narrow(shared);
        }
        Self { model, vocabulary, stage: Box::<NgramDrafter>::default(), ends: ends.to_vec() }
    }

    /// Lets `stage` draft for this model where staged drafting is asked for, instead of the repetitions of
    /// the conversation.
    #[must_use]
    pub fn drafted_by(self, stage: Self) -> Self {
        Self { stage: Box::new(stage), ..self }
    }

    /// Loads the model that `source` describes, to draft for a target with the tokenizer `target`.
    ///
    /// # Errors
    /// `Error::Incompatible` when the vocabularies share too little, and those of loading a model.
    pub fn open(source: &ModelSource, device: &Device, target: &Tokenizer) -> Result<Self> {
        Self::open_by(source, target, |source| load(source, device))
    }

    /// The same, loading it by `load`, which is asked once the vocabularies are known to fit.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_by(
        source: &ModelSource,
        target: &Tokenizer,
        load: impl FnOnce(&ModelSource) -> Result<Box<dyn Model>>,
    ) -> Result<Self> {
        let tokenizer = source.tokenizer()?;
        let verdict = compare(target, &tokenizer);
        let vocabulary = match verdict.method {
            None => return Err(Error::Incompatible(verdict.whole())),
            Some(Method::Same) => Vocabulary::Same(target.vocabulary().min(tokenizer.vocabulary())),
            Some(Method::Intersection) => {
                Vocabulary::Intersection(Box::new(Intersection::of(target, &tokenizer)))
            }
        };
        Ok(Self::new(load(source)?, vocabulary, target.ends()))
    }

    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// Tokens this model may still be fed after `known`, in its own tokens.
    fn room(&self, known: &[TokenId]) -> usize {
        self.model.config().context.saturating_sub(known.len())
    }

    /// Brings the cache to where `known` less what a pass takes anyway is in it; returns how much is.
    fn catch_up(&mut self, known: &[TokenId]) -> Result<usize> {
        let fed = rewind(self.model.as_mut(), known);
        // After full acceptance the last drafted token and the bonus token are both new, and what others drafted
        // meanwhile is: fed in the pass that scores the last of them, they cost no pass of their own.
        if known.len() - fed <= AT_ONCE {
            return Ok(fed);
        }
        let _ = catch_up(self.model.as_mut(), known, &mut |_, _| ControlFlow::Continue(()))?;
        Ok(known.len() - 1)
    }

    fn draft_chain(
        &mut self,
        context: &[TokenId],
        order: &Order<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let (mut context, mut known) = (context.to_vec(), self.vocabulary.translate(context));
        let mut draft = Draft::default();
        let mut reach = 1.0;
        while draft.guesses.len() < order.length {
            let guesses = if order.staged {
                let left = order.length - draft.guesses.len();
                self.guess_staged(&context, &mut known, left, sampler)?
            } else {
                self.guess(&context, &mut known, sampler)?
            };
            for guess in guesses.into_iter().take(order.length - draft.guesses.len()) {
                if let Some(bound) = order.bound {
                    let Some(extended) = bound.extend(reach, draft.guesses.len(), &guess) else {
                        draft.shortened = Some(LengthReason::Unlikely);
                        return Ok(draft);
                    };
                    reach = extended;
                }
                context.push(guess.token);
                let ended = self.ends.contains(&guess.token);
                draft.follow(guess);
                let unlikely = order.bound.is_some_and(|bound| bound.ends(reach));
                if (ended || unlikely) && draft.guesses.len() < order.length {
                    let reason = if ended { LengthReason::EndOfText } else { LengthReason::Unlikely };
                    draft.shortened = Some(reason);
                    return Ok(draft);
                }
            }
        }
        Ok(draft)
    }

    /// The next guess. `known` is `context` in this model's tokens, and grows with it.
    fn guess(
        &mut self,
        context: &[TokenId],
        known: &mut Vec<TokenId>,
        sampler: &mut Sampler,
    ) -> Result<Vec<Guess>> {
        let fed = self.catch_up(known)?;
        let new = TokenTree::chain(known[fed..].iter().copied());
        let last = new.len() - 1;
        let logits = self.model.forward(&new, last..last + 1)?;
        let guesses = in_target(&self.vocabulary, logits.row(0), |row| sampler.guess(row, context, 1))?;
        known.extend(guesses.iter().map(|guess| self.vocabulary.in_draft(guess.token)));
        Ok(guesses)
    }
}

/// What `choose` makes of a row in terms of the target's tokens.
fn in_target<T>(
    vocabulary: &Vocabulary,
    row: Row<'_>,
    choose: impl FnOnce(Row<'_>) -> Result<T>,
) -> Result<T> {
    match vocabulary {
        Vocabulary::Same(shared) => choose(row.first(*shared)?),
        Vocabulary::Intersection(_) => match vocabulary.align(row.logits()?) {
            Some(aligned) => choose(Row::of(&aligned)),
            None => choose(row),
        },
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
        let known = self.vocabulary.translate(context);
        if self.room(&known) == 0 {
            // It will not draft.
            return Ok(ControlFlow::Continue(()));
        }
        Ok(catch_up(self.model.as_mut(), &known, on_progress)?.1)
    }

    fn draft(&mut self, context: &[TokenId], order: &Order<'_>, sampler: &mut Sampler) -> Result<Draft> {
        let known = self.vocabulary.translate(context);
        let room = self.room(&known);
        if known.is_empty() || order.length == 0 {
            return Ok(Draft::default());
        }
        self.model.expect(match self.vocabulary {
            Vocabulary::Same(_) => sampler.interest(order.shape.map_or(1, |_| WIDEST_TREE)),
            Vocabulary::Intersection(_) => Interest::Everything,
        });
        // A tree is drafted only where all of it has room.
        if let Some(shape) = order.shape.filter(|shape| shape.len() < room) {
            return self.draft_tree(context, shape, sampler);
        }
        let fits = Order { length: order.length.min(room), ..*order };
        let mut draft = self.draft_chain(context, &fits, sampler)?;
        if room < order.length && draft.shortened.is_none() {
            draft.shortened = Some(LengthReason::DraftContextFull);
        }
        Ok(draft)
    }

    fn forget(&mut self) {
        self.model.truncate(0);
        self.stage.forget();
    }

    fn behind(&self, context: &[TokenId]) -> usize {
        let known = self.vocabulary.translate(context);
        let common = self.model.cached().iter().zip(&known).take_while(|(cached, token)| cached == token);
        known.len() - common.count()
    }

    fn is_cheap(&self) -> bool {
        false
    }
}
