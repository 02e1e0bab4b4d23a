//! Staged drafting (Spector and Re 2023): the draft model verifies guesses of a drafter of its own.
//! Each guess is distributed as if the draft model had drawn it itself.

use foretoken_forward::Logits;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::{ModelDrafter, in_target};
use crate::accept::{Guess, Guesses, accept};
use crate::context::{After, Context};
use crate::distribution::Distribution;
use crate::draft::{DraftRequest, Vocabulary};
use crate::sampler::Sampler;
use crate::speculation::Verification;

/// Draft length of the stage. Its guesses cost next to nothing, and verifying them little.
const STAGE: usize = 4;

impl ModelDrafter {
    /// Drafts the next tokens after `context` and `drafted`, at least one and at most `left`, and
    /// appends them to the known tokens.
    pub(super) fn guess_staged(
        &mut self,
        context: &Context,
        drafted: &[TokenId],
        left: usize,
        sampler: &mut Sampler,
    ) -> Result<Vec<Guess>> {
        let after = After { text: context, guesses: drafted };
        let stage = self.draft_stage(context, drafted, left - 1, sampler)?;
        let fed = self.catch_up()?;
        let mut new = self.unfed(fed);
        for guess in stage.iter() {
            new.push(guess.token, new.len().checked_sub(1));
        }
        let want = self.want(new.len() - stage.len() - 1..new.len(), sampler, 1);
        let pass = self.model.run(&new, &want)?;
        let guesses = verify(&stage, &pass.logits(), &self.vocabulary, after, sampler)?;
        drop(pass);
        self.model.truncate(self.text.tokens.len() + guesses.len() - 1);
        self.learn(&guesses);
        Ok(guesses)
    }

    fn draft_stage(
        &mut self,
        context: &Context,
        drafted: &[TokenId],
        most: usize,
        sampler: &mut Sampler,
    ) -> Result<Guesses> {
        let length = STAGE.min(most).min(self.room().saturating_sub(1));
        let Vocabulary::Same(shared) = self.vocabulary else {
            // The stage would guess tokens that the target may not have.
            return Ok(Guesses::default());
        };
        let request = DraftRequest::chain(length);
        let draft = if self.stage.cost().is_free() {
            // It follows the text only: the guesses may be rejected, and everything would have to
            // be read again.
            self.stage.draft(context, &DraftRequest { ahead: drafted, ..request }, sampler)?
        } else {
            self.stage.draft(&self.text.tokens, &request, sampler)?
        };
        let known_to_both = |guess: &Guess| (guess.token as usize) < shared;
        Ok(draft.guesses.into_iter().take(length).take_while(known_to_both).collect())
    }
}

/// Verifies `stage`, a chain at `after`, and returns the resulting guesses. Row `i` of `logits`
/// follows the first `i` tokens of the stage.
fn verify(
    stage: &Guesses,
    logits: &Logits<'_>,
    vocabulary: &Vocabulary,
    after: After<'_>,
    sampler: &mut Sampler,
) -> Result<Vec<Guess>> {
    let staged: Vec<TokenId> =
        after.guesses.iter().copied().chain(stage.iter().map(|guess| guess.token)).collect();
    // Distribution that each resulting token is drawn from.
    let mut rows: Vec<Distribution> = Vec::new();
    let Sampler { rules, generator } = sampler;
    let target = |guess: Option<usize>| -> Result<Distribution> {
        let index = Guesses::row(guess);
        let after = After { guesses: &staged[..after.guesses.len() + index], ..after };
        let row = logits.row(index);
        let distribution = in_target(vocabulary, row, |row| rules.distribution(row, after))?;
        rows.push(distribution.clone());
        Ok(distribution)
    };
    let verdict = accept(stage, Verification::Token, after.position(), target, generator)?;
    let tokens = verdict.path.iter().map(|&guess| stage[guess].token).chain([verdict.extra]);
    let guess = |(index, (token, distribution))| {
        in_target(vocabulary, logits.row(index), |row| sampler.as_guess(token, row, &distribution))
    };
    tokens.zip(rows.into_iter().map(Into::into)).enumerate().map(guess).collect()
}
