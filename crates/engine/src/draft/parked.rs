//! Caches of drafters, put aside together with those of the target.

use foretoken_forward::Parked;
use foretoken_model::token::TokenId;

/// Caches of a drafter for a text.
#[derive(Debug, Clone)]
pub enum ParkedDrafter {
    /// A draft model, and in staged drafting the model that drafts for it.
    Model {
        model: Parked,
        stage: Option<Box<ParkedDrafter>>,
    },
    Head(ParkedHead),
}

/// Caches of a draft head, and the target's features that it has not run yet.
#[derive(Debug, Clone)]
pub struct ParkedHead {
    pub(crate) model: Parked,
    /// Tokens whose features were observed.
    pub(crate) observed: Vec<TokenId>,
    /// Features of the last observed tokens.
    pub(crate) waiting: Vec<f32>,
    /// State that a draft begins with, in heads that have one.
    pub(crate) state: Vec<f32>,
}

impl ParkedDrafter {
    /// Address and bytes of each buffer, as [`Parked::buffers`].
    pub fn buffers(&self) -> Vec<(usize, usize)> {
        match self {
            Self::Model { model, stage } => {
                let stage = stage.iter().flat_map(|stage| stage.buffers());
                model.buffers().chain(stage).collect()
            }
            Self::Head(head) => head.model.buffers().collect(),
        }
    }
}
