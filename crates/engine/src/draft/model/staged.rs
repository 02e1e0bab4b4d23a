//! Drafting for the draft model (Spector and Re 2023): it verifies what its own drafter guessed, so that
//! each guess is distributed as if it had been made by itself.

use super::{ModelDrafter, in_target};
use crate::accept::{Guess, Verification, accept};
use crate::distribution::Distribution;
use crate::draft::{Order, Vocabulary};
use crate::error::Result;
use crate::forward::Logits;
use crate::sampler::Sampler;
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// How far ahead is drafted for the draft. Such guesses cost next to nothing, and verifying them little.
const STAGE: usize = 4;

impl ModelDrafter {
    /// The next guesses, one to `left`. `known` is `context` in this model's tokens, and grows with it.
    pub(super) fn guess_staged(
        &mut self,
        context: &[TokenId],
        known: &mut Vec<TokenId>,
        left: usize,
        sampler: &mut Sampler,
    ) -> Result<Vec<Guess>> {
        let stage = self.draft_stage(known, left - 1, sampler)?;
        let fed = self.catch_up(known)?;
        let new = known[fed..].iter().copied().chain(stage.iter().map(|guess| guess.token));
        let new = TokenTree::chain(new);
        let logits = self.model.forward(&new, new.len() - stage.len() - 1..new.len())?;
        let guesses = verify(&stage, &logits, &self.vocabulary, context, sampler)?;
        self.model.truncate(known.len() + guesses.len() - 1);
        known.extend(guesses.iter().map(|guess| self.vocabulary.in_draft(guess.token)));
        Ok(guesses)
    }

    fn draft_stage(&mut self, known: &[TokenId], most: usize, sampler: &mut Sampler) -> Result<Vec<Guess>> {
        let length = STAGE.min(most).min(self.room(known).saturating_sub(1));
        let Vocabulary::Same(shared) = self.vocabulary else {
            // Its drafter would guess tokens the target may not have.
            return Ok(Vec::new());
        };
        let draft = self.stage.draft(known, &Order::chain(length), sampler)?;
        let known_to_both = |guess: &Guess| (guess.token as usize) < shared;
        Ok(draft.guesses.into_iter().take(length).take_while(known_to_both).collect())
    }
}

/// The guesses that come of `stage`, a chain after `context`: row `i` of `logits` is of what may follow the
/// first `i` of it.
fn verify(
    stage: &[Guess],
    logits: &Logits<'_>,
    vocabulary: &Vocabulary,
    context: &[TokenId],
    sampler: &mut Sampler,
) -> Result<Vec<Guess>> {
    let mut text = context.to_vec();
    text.extend(stage.iter().map(|guess| guess.token));
    // Of each token that comes, the distribution it comes from.
    let mut rows: Vec<Distribution> = Vec::new();
    let Sampler { sampling, generator } = sampler;
    let target = |guess: Option<usize>| -> Result<Distribution> {
        let index = guess.map_or(0, |guess| guess + 1);
        let context = &text[..context.len() + index];
        let row = logits.row(index);
        let distribution = in_target(vocabulary, row, |row| Distribution::processed(row, sampling, context))?;
        rows.push(distribution.clone());
        Ok(distribution)
    };
    let verdict = accept(stage, Verification::Token, context.len(), target, generator)?;
    let tokens = verdict.path.iter().map(|&guess| stage[guess].token).chain([verdict.extra]);
    let guess = |(index, (token, distribution))| {
        in_target(vocabulary, logits.row(index), |row| sampler.as_guess(token, row, &distribution))
    };
    tokens.zip(rows.into_iter().map(Into::into)).enumerate().map(guess).collect()
}
