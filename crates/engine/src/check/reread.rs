//! Recomputes the target's probabilities of a reply, token by token and without drafts, and
//! compares them with the probabilities by which drafted tokens were judged. If these are the
//! target's own, the text has the target's distribution, whatever was drafted (Leviathan et al.
//! 2023, theorem 1).

use std::ops::ControlFlow;

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Want, catch_up, rerun_if_outgrown};
use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;

use crate::context::Context;
use crate::decoder::{Decoder, Request};
use crate::sampler::shown_probability;
use crate::trace::{Outcome, Round};

/// Largest difference of two equal probabilities.
const SAME: f32 = 1e-6;

/// Comparison of a trace's probabilities with the target's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Agreement {
    /// Number of drafted tokens that were accepted or rejected.
    pub judged: usize,
    /// Number of these with another probability than the recorded one.
    pub different: usize,
    /// Largest difference of two probabilities, 0..=1.
    pub largest_difference: f32,
}

/// Recomputes the reply to `request` that `rounds` record. `on_progress(done, total)` counts its
/// tokens; `Break` stops.
///
/// # Errors
/// Errors of [`foretoken_forward::Model::run`] and [`Request::admit`], and `Error::Cancelled`.
pub fn reread(
    decoder: &mut Decoder,
    request: &Request,
    rounds: &[Round],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Agreement> {
    request.admit(decoder.target().config().context)?;
    let request = &Request { sampling: decoder.sampling(&request.sampling), ..request.clone() };
    let mut sampler = decoder.sampler(request)?;
    let target = decoder.target_mut();
    target.truncate(0);
    let subset = sampler.logit_subset(1);
    if catch_up(target, &request.prompt, &mut |_, _| on_progress(0, 0))?.1.is_break() {
        return Err(Error::Cancelled);
    }
    let total: usize = rounds.iter().map(|round| round.emitted().count()).sum();
    let mut context = Context::new(request.prompt.clone());
    let mut agreement = Agreement::default();
    for round in rounds {
        let mut parent = None;
        let path = accepted(round);
        for (depth, (token, _)) in round.emitted().enumerate() {
            let _ = rerun_if_outgrown(target, &context, &mut |_, _| ControlFlow::Continue(()))?;
            let last = TokenTree::chain(context.last().copied());
            sampler.follow(&context);
            let penalised = sampler.rules.penalties.tokens(&context, std::iter::empty());
            let want = Want::all_rows().subset(subset).penalised(&penalised);
            let pass = target.run(&last, &want)?;
            let row = pass.logits().row(0);
            let judged: Vec<(TokenId, f32)> = judged_after(round, parent).collect();
            if !judged.is_empty() {
                let processed = sampler.rules.distribution(row, (&context[..]).into())?;
                for (guess, then) in judged {
                    let now = shown_probability(&request.sampling, row, &processed, guess)?;
                    agreement.add((now - then).abs());
                }
            }
            context.push(token);
            parent = path.get(depth).copied();
        }
        if on_progress(context.len() - request.prompt.len(), total).is_break() {
            return Err(Error::Cancelled);
        }
    }
    Ok(agreement)
}

impl Agreement {
    fn add(&mut self, difference: f32) {
        self.judged += 1;
        self.different += usize::from(difference > SAME);
        self.largest_difference = self.largest_difference.max(difference);
    }
}

/// Indices of the accepted tokens, in order.
fn accepted(round: &Round) -> Vec<usize> {
    let is_accepted = |&slot: &usize| round.drafted[slot].outcome == Outcome::Accepted;
    (0..round.drafted.len()).filter(is_accepted).collect()
}

/// Guesses after a token of the round, or after the text, with their recorded probabilities.
fn judged_after(round: &Round, parent: Option<usize>) -> impl Iterator<Item = (TokenId, f32)> {
    let parent = parent.map(|slot| slot as u32);
    let followers = round.drafted.iter().filter(move |drafted| drafted.parent == parent);
    followers.filter_map(|drafted| Some((drafted.token, drafted.target_probability?)))
}
