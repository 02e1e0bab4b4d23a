//! Trials of every draft, one after another, on the user's own text.

use std::sync::Arc;

use foretoken_engine::draft::{CaughtDrafter, Drafter, Evaluation, EvaluationText, NgramDrafter};
use foretoken_model::{ChatMessage, Role};

use super::job::OnAdvice;
use super::local::{Local, no_target};
use super::replying::request;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{Advice, AdviceState, CommandError, DRAFT_NGRAM, DraftOption, ErrorCode, Probe};

/// Sample for trials in an empty conversation.
const SAMPLE: [(Role, &str); 4] = [
    (Role::User, "How do I keep basil alive on a window sill?"),
    (
        Role::Assistant,
        "Give it the brightest place you have and water it when the top of the soil feels dry. Pinch off the tips \
         before it flowers, so that it grows bushy, and turn the pot every few days. In winter keep it away from \
         cold glass.",
    ),
    (Role::User, "Write a function in Python that says whether a word is a palindrome."),
    (
        Role::Assistant,
        "def is_palindrome(word):\n    letters = [c.lower() for c in word if c.isalpha()]\n    return letters == \
         letters[::-1]\n\nIt ignores case and everything that is not a letter.",
    ),
];

impl Local {
    /// Tries every usable draft on `text`, and reports when each begins and ends.
    pub(super) fn advise(
        &mut self,
        text: &[ChatMessage],
        on_advice: &OnAdvice,
        cancel: &Cancel,
    ) -> Result<()> {
        let Some(prompt) = self.trial_prompt(text, cancel)? else { return Ok(()) };
        for draft in self.draft_options() {
            if !draft.drafts() || draft.problem.is_some() {
                continue;
            }
            let advice = |state, probe, reason| Advice { id: draft.id.clone(), state, probe, reason };
            on_advice(advice(AdviceState::Probing, None, None));
            let outcome = self.fits(&draft).and_then(|()| self.try_draft(&draft, &prompt, cancel));
            if cancel.is_cancelled() {
                on_advice(advice(AdviceState::Waiting, None, None));
                return Ok(());
            }
            on_advice(match outcome {
                Ok(Some(trial)) => {
                    self.remember_trial(&draft.id, trial.speedup());
                    advice(AdviceState::Done, Some(probe(&trial)), None)
                }
                Ok(None) => advice(AdviceState::Waiting, None, None),
                Err(error) => advice(AdviceState::Failed, None, Some(error.message)),
            });
        }
        Ok(())
    }

    /// Remembers a trial's result, which affects the next choice of a draft.
    fn remember_trial(&mut self, draft: &str, speedup: f64) {
        if let Some(target) = &self.target {
            self.trials.insert((target.id.clone(), draft.to_owned()), speedup);
            self.choose_draft();
        }
    }

    /// Formats the conversation, or the sample without one, with the target's template and prefills
    /// it; `None` if it was cancelled.
    fn trial_prompt(&mut self, text: &[ChatMessage], cancel: &Cancel) -> Result<Option<EvaluationText>> {
        let settings = self.settings.clone();
        let sample = SAMPLE.map(|(role, content)| ChatMessage::new(role, content));
        let messages = if text.is_empty() { &sample } else { text };
        let session = &mut self.loaded()?.session;
        let prompt = match request(session, messages, &[], &settings, &|| cancel.is_cancelled()) {
            Err(error) if error.code == ErrorCode::Cancelled => return Ok(None),
            request => request?.prompt,
        };
        session.put_text_aside();
        let sampling = session.decoder.sampling(&settings.sampling);
        let prompt =
            EvaluationText::prepare(session.decoder.target_mut(), &prompt, &sampling, &mut || cancel.flow());
        prompt.map_err(|error| self.failed(error))
    }

    pub(super) fn fits(&self, draft: &DraftOption) -> Result<()> {
        if self.draft_bytes(&draft.id) > self.room() {
            let message = "It doesn't fit into memory together with the target.";
            return Err(CommandError::new(ErrorCode::BadModel, message));
        }
        Ok(())
    }

    /// Tries one draft; `None` if it was cancelled.
    fn try_draft(
        &mut self,
        draft: &DraftOption,
        prompt: &EvaluationText,
        cancel: &Cancel,
    ) -> Result<Option<Evaluation>> {
        let mut drafter = CaughtDrafter::new(self.drafter_on_trial(&draft.id, cancel)?);
        let target = self.loaded()?.session.decoder.target_mut();
        Ok(prompt.evaluate(target, &mut drafter, &mut || cancel.flow())?)
    }

    fn drafter_on_trial(&mut self, id: &str, cancel: &Cancel) -> Result<Box<dyn Drafter>> {
        if id == DRAFT_NGRAM {
            return Ok(Box::<NgramDrafter>::default());
        }
        let cancel = cancel.clone();
        let source = self.draft_source(id)?.watched_by(Arc::new(move |_, _| cancel.flow()));
        let session = &self.target.as_ref().ok_or_else(no_target)?.session;
        let device = session.draft_device(self.draft_device().as_ref());
        Ok(session.load_drafter(&source, &device)?.0)
    }
}

fn probe(evaluation: &Evaluation) -> Probe {
    Probe {
        acceptance: evaluation.acceptance,
        draft_length: evaluation.draft_length as u32,
        tokens_per_second: evaluation.tokens_per_second,
        plain_tokens_per_second: evaluation.plain_tokens_per_second,
        speedup: evaluation.speedup(),
        tokens: evaluation.tokens as u32,
    }
}
