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

    /// Guesses that follow guess `parent`: index, token and confidence.
    pub(super) fn children(&self, parent: Option<usize>) -> impl Iterator<Item = (usize, TokenId, f32)> + '_ {
        let parent = parent.map(|parent| parent as u16);
        let draft = self.draft.iter().enumerate();
        draft
            .filter(move |(_, guess)| guess.0 == parent)
            .map(|(index, &(_, token, confidence))| (index, token, confidence))
    }
}
