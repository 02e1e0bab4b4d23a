//! Check of a stored reply on the engine thread: compares it with the target's reply without
//! drafts.

use std::sync::Arc;

use foretoken_engine::check::{Difference, compare, reread};
use foretoken_engine::decoder::{Progress, Request};
use foretoken_engine::trace::Round;
use foretoken_forward::ORDER_OF_SUMS;
use foretoken_model::token::TokenId;
use foretoken_model::{Conversation, KvDtype, Tokenizer};

use super::job::{OnCheck, Stored};
use super::local::Local;
use super::replier::Chat;
use super::replying::{request, with_calls};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::ipc::{Candidate, CheckProgress, CommandError, ErrorCode, ReplyCheck, Settings, TextDifference};

impl Local {
    /// # Errors
    /// Returns `NoTarget` or `BadModel` unless the target that wrote the reply is loaded,
    /// `NotFound` if its prompt or settings are no longer known, `Cancelled`.
    pub(super) fn check(
        &mut self,
        stored: &Stored,
        on_progress: &OnCheck,
        cancel: &Cancel,
    ) -> Result<ReplyCheck> {
        let asked = self.asked(stored, cancel)?;
        let progress = |done: usize, total: usize| {
            on_progress(CheckProgress { done: done as u32, total: total as u32 });
            cancel.flow()
        };
        let session = &mut self.loaded()?.session;
        session.see(&Conversation::of(&stored.messages, None), &mut |_| cancel.flow())?;
        session.put_text_aside();
        let decoder = &mut session.decoder;
        if !asked.sampling.is_repeatable() {
            let found = reread(decoder, &asked, &stored.rounds, &mut |done, total| progress(done, total));
            let found = found.map_err(|error| self.failed(error))?;
            let check = ReplyCheck::Distribution {
                judged: found.judged as u32,
                different: found.different as u32,
                largest_difference: found.largest_difference,
            };
            return Ok(in_order(check, stored.summary.order_of_sums));
        }
        let tokens: Vec<TokenId> =
            stored.rounds.iter().flat_map(Round::emitted).map(|(token, _)| token).collect();
        let mut done = 0;
        let check = compare(decoder, &asked, &tokens, &mut |event| {
            done += usize::from(matches!(event, Progress::Round(_)));
            progress(done, tokens.len())
        });
        let tokenizer = Arc::clone(decoder.tokenizer());
        let check = check.map_err(|error| self.failed(error))?;
        let check = ReplyCheck::Text {
            tokens: tokens.len() as u32,
            seed: asked.sampling.seed.filter(|_| !asked.sampling.is_greedy()),
            difference: check.first_difference.map(|difference| shown(&difference, &tokenizer)),
        };
        Ok(in_order(check, stored.summary.order_of_sums))
    }

    /// Rebuilds the request of the reply, as far as it is known.
    fn asked(&mut self, stored: &Stored, cancel: &Cancel) -> Result<Request> {
        let gone = |what: &str| {
            let message =
                format!("{what}, so the reply can't be checked. Regenerate it, then check the new one.");
            CommandError::new(ErrorCode::NotFound, message)
        };
        let Some(written) = &stored.summary.settings else {
            return Err(gone("The settings of this reply were not recorded"));
        };
        if stored.rounds.is_empty() {
            return Err(gone("The trace of this reply was not kept"));
        }
        let settings = Settings {
            sampling: written.sampling.clone(),
            speculation: written.speculation.clone(),
            system_prompt: written.system_prompt.clone(),
            thinking: written.thinking,
            max_tokens: stored.summary.tokens,
            stop: written.stop.clone(),
            // Those of the reply are in its sampling.
            word_bias: Vec::new(),
            ..self.settings.clone()
        };
        let target = self.loaded()?;
        let label = &target.entry.label;
        if let Some(wrote) = stored.target.as_ref().filter(|wrote| *wrote != label) {
            let message = format!(
                "{wrote} wrote this reply, but {label} is loaded. Choose {wrote} as the target first."
            );
            return Err(CommandError::new(ErrorCode::BadModel, message));
        }
        if stored.summary.kv_dtype != target.session.kv_dtype() {
            let message = match stored.summary.kv_dtype {
                KvDtype::F16 => {
                    "This reply was written with a 16-bit KV cache. Switch the 8-bit KV cache off in the settings first."
                }
                KvDtype::Int8 => {
                    "This reply was written with an 8-bit KV cache. Switch it on in the settings first, on the CPU."
                }
            };
            return Err(CommandError::new(ErrorCode::BadModel, message));
        }
        if stored.has_calls && stored.tools.is_none() {
            return Err(gone("The tools of this reply were not recorded"));
        }
        let chat = Chat { messages: stored.messages.clone(), tools: stored.tools.clone() };
        let stop = || cancel.is_cancelled();
        let asked = request(&target.session, &chat.messages, chat.offered(), &settings, &stop)?;
        if asked.prompt.len() as u32 != stored.summary.prompt_tokens {
            return Err(gone("The messages before this reply have changed"));
        }
        Ok(with_calls(&target.session, &chat, asked)?.0)
    }
}

/// Returns the result for a reply whose engine added numbers in `order_of_sums`: in another order
/// than this engine's, a difference proves nothing.
fn in_order(check: ReplyCheck, order_of_sums: u32) -> ReplyCheck {
    let differs = match &check {
        ReplyCheck::Text { difference, .. } => difference.is_some(),
        ReplyCheck::Distribution { different, .. } => *different > 0,
        ReplyCheck::OtherOrder => false,
    };
    if differs && order_of_sums != ORDER_OF_SUMS { ReplyCheck::OtherOrder } else { check }
}

fn shown(difference: &Difference, tokenizer: &Tokenizer) -> TextDifference {
    let candidate = |token: Option<TokenId>, logit: Option<f32>| {
        Some(Candidate { token: token?, text: tokenizer.piece(token?), logit: logit? })
    };
    TextDifference {
        position: difference.position as u32,
        with: candidate(difference.with, difference.with_logit),
        without: candidate(difference.without, difference.without_logit),
        gap: difference.gap,
        near_tie: difference.near_tie,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_from_a_reply_of_another_order_of_sums_proves_nothing() {
        let found = |different| ReplyCheck::Distribution { judged: 9, different, largest_difference: 0.1 };
        assert_eq!(in_order(found(2), ORDER_OF_SUMS), found(2));
        assert_eq!(in_order(found(2), 1), ReplyCheck::OtherOrder);
        assert_eq!(in_order(found(0), 1), found(0));
    }
}
