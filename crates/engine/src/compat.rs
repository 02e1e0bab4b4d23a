//! Whether a draft model's vocabulary is the target's, and if not, why not.

use serde::Serialize;

use crate::model::Tokenizer;
use crate::trace::TokenId;

/// How a draft's tokens become the target's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// They are the same tokens.
    Same,
}

/// The verdict on a pair, with a reason either way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compatibility {
    pub compatible: bool,
    pub method: Option<Method>,
    pub reason: String,
}

/// Vocabularies may differ in size by this many tokens of padding.
const MOST_PADDING: usize = 128;

/// Compares sizes, every token both have, and the tokens that begin and end a text.
pub fn compare(target: &Tokenizer, draft: &Tokenizer) -> Compatibility {
    match difference(target, draft) {
        None => Compatibility {
            compatible: true,
            method: Some(Method::Same),
            reason: format!("the same vocabulary of {} tokens", target.vocabulary().min(draft.vocabulary())),
        },
        Some(reason) => Compatibility { compatible: false, method: None, reason },
    }
}

fn difference(target: &Tokenizer, draft: &Tokenizer) -> Option<String> {
    let (ours, theirs) = (target.vocabulary(), draft.vocabulary());
    if ours.abs_diff(theirs) > MOST_PADDING {
        return Some(format!(
            "the vocabularies differ in size: the target's has {ours} tokens, the draft's {theirs}, \
             and at most {MOST_PADDING} may be padding"
        ));
    }
    let first = (0..ours.min(theirs) as u32).find(|&token| target.piece(token) != draft.piece(token));
    if let Some(token) = first {
        return Some(format!(
            "the vocabularies differ at token {token}: '{}' in the target, '{}' in the draft",
            target.piece(token),
            draft.piece(token)
        ));
    }
    let end = |tokenizer: &Tokenizer| tokenizer.special().eos.as_ref().map(|token| token.id);
    let roles = [("begins", target.bos(), draft.bos()), ("ends", end(target), end(draft))];
    let (role, ours, theirs) = roles.into_iter().find(|(_, ours, theirs)| ours != theirs)?;
    let show = |token: Option<TokenId>| token.map_or_else(|| "none".to_owned(), |id| id.to_string());
    Some(format!(
        "the token that {role} a text differs: {} in the target, {} in the draft",
        show(ours),
        show(theirs)
    ))
}
