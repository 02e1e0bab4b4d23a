//! A recorded text with the drafts at each of its positions.

use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;
use serde::{Deserialize, Serialize};

use crate::governor::TextKind;

/// A text and the drafts at each of its positions. It is stored as a line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Topic of the prompt: "chat", "code".
    pub topic: String,
    pub kind: TextKind,
    pub sampling: Sampling,
    pub prompt: Vec<TokenId>,
    /// The reply's tokens; never empty.
    pub text: Vec<TokenId>,
    /// For each token of the reply, what was known before it.
    pub positions: Vec<RecordedPosition>,
}

/// Candidates for the token at a position.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedPosition {
    /// The target's likeliest tokens with their probabilities, likeliest first.
    pub leaders: Vec<(TokenId, f32)>,
    /// The drafter's tree: index of the parent (`None` after the text), token and confidence.
    /// Parents come before their children, siblings in the drafter's order.
    pub draft: Vec<(Option<u16>, TokenId, f32)>,
}

impl RecordedPosition {
    /// The leaders' tokens, ascending, and their logits.
    pub(super) fn leaders_by_token(&self) -> (Vec<TokenId>, Vec<f32>) {
        let mut leaders = self.leaders.clone();
        leaders.sort_unstable_by_key(|&(token, _)| token);
        leaders.into_iter().map(|(token, probability)| (token, probability.max(1e-6).ln())).unzip()
    }

    /// Guesses after the guesses `path`: token and confidence. None if these were not recorded.
    pub(super) fn after(&self, path: &[TokenId]) -> impl Iterator<Item = (TokenId, f32)> + '_ {
        let children = |parent: Option<usize>| {
            let parent = parent.map(|parent| parent as u16);
            self.draft.iter().enumerate().filter(move |(_, guess)| guess.0 == parent)
        };
        let step = |parent: Option<usize>, token: &TokenId| {
            children(parent).find(|(_, guess)| guess.1 == *token).map(|(index, _)| Some(index))
        };
        let last = path.iter().try_fold(None, step);
        last.into_iter().flat_map(children).map(|(_, &(_, token, confidence))| (token, confidence))
    }
}
