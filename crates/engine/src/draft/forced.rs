//! Forced tokens: where the constraint of a reply allows a single token, that is a certain guess
//! which is never rejected.

use foretoken_model::error::Result;

use super::{Draft, DraftRequest, Drafter};
use crate::accept::Guess;
use crate::context::{After, Context};
use crate::drafter_kind::DrafterKind;
use crate::sampler::Sampler;
use crate::trace::LengthReason;

/// See the module.
pub struct ForcedDrafter;

impl Drafter for ForcedDrafter {
    fn kind(&self) -> DrafterKind {
        DrafterKind::Forced
    }

    fn draft(
        &mut self,
        context: &Context,
        request: &DraftRequest<'_>,
        sampler: &mut Sampler,
    ) -> Result<Draft> {
        let (mut draft, mut path) = (Draft::default(), request.ahead.to_vec());
        while draft.guesses.len() < request.length {
            let Some(token) = sampler.forced(After { text: context, guesses: &path })? else {
                draft.shortened = Some(LengthReason::NoMatch);
                break;
            };
            path.push(token);
            draft.guesses.follow(Guess {
                token,
                parent: None,
                drawn_from: None,
                probability: 1.0,
                confidence: 1.0,
                drafter: DrafterKind::Forced,
            });
        }
        Ok(draft)
    }
}
