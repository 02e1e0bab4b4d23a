//! Reading a reply again: the target alone, token by token and without drafts, gives its probabilities, and
//! those by which drafted tokens were judged are compared with them. Judged by the target's own probabilities
//! a text has its distribution, whatever was drafted (Leviathan et al. 2023, theorem 1).

use std::ops::ControlFlow;

use crate::context::Context;
use crate::decoder::{Decoder, Request};
use crate::distribution::Distribution;
use crate::error::{Error, Result};
use crate::forward::{Want, catch_up, outgrow};
use crate::penalties::Penalties;
use crate::sampler::shown_probability;
use crate::token::TokenId;
use crate::trace::{Outcome, Round};
use crate::tree::TokenTree;

/// Probabilities further apart are not the same.
const SAME: f32 = 1e-6;

/// How a trace's probabilities compare with the target's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Agreement {
    /// Drafted tokens that were accepted or rejected.
    pub judged: usize,
    /// Of these, whose probability is not the one they were judged by.
    pub different: usize,
    /// Between two probabilities, 0..=1.
    pub largest_difference: f32,
}

/// Reads the reply to `request` that `rounds` tell of. `on_progress(done, total)` counts its tokens; `Break`
/// ends the reading.
///
/// # Errors
/// Those of [`crate::forward::Model::run`], of [`Request::admit`], and `Error::Cancelled`.
pub fn reread(
    decoder: &mut Decoder,
    request: &Request,
    rounds: &[Round],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Agreement> {
    request.admit(decoder.target().config().context)?;
    let request = &Request { sampling: decoder.sampling(&request.sampling), ..request.clone() };
    let tokens = decoder.penalty_tokens(&request.sampling);
    let mut penalties = Penalties::with_tokens(&request.sampling, tokens);
    let target = decoder.target_mut();
    target.truncate(0);
    let interest = Distribution::interest(&request.sampling);
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
            let _ = outgrow(target, &context, &mut |_, _| ControlFlow::Continue(()))?;
            let last = TokenTree::chain(context.last().copied());
            penalties.follow(&context);
            let list = penalties.at(&context[..]);
            let penalised: Vec<TokenId> = list.iter().map(|penalty| penalty.token).collect();
            let want = Want::all_rows().interest(interest).penalised(&penalised);
            let pass = target.run(&last, &want)?;
            let row = pass.logits().row(0);
            let judged: Vec<(TokenId, f32)> = judged_after(round, parent).collect();
            if !judged.is_empty() {
                let processed = Distribution::processed(row, &request.sampling, &list)?;
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

/// Places of the accepted tokens, one after the other.
fn accepted(round: &Round) -> Vec<usize> {
    let is_accepted = |&slot: &usize| round.drafted[slot].outcome == Outcome::Accepted;
    (0..round.drafted.len()).filter(is_accepted).collect()
}

/// The guesses that followed a token of the round, or the text, with the probabilities that judged them.
fn judged_after(round: &Round, parent: Option<usize>) -> impl Iterator<Item = (TokenId, f32)> {
    let parent = parent.map(|slot| slot as u32);
    let followers = round.drafted.iter().filter(move |drafted| drafted.parent == parent);
    followers.filter_map(|drafted| Some((drafted.token, drafted.target_probability?)))
}
