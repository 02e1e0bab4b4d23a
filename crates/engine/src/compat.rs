//! Whether a draft model's vocabulary is the target's, and if not, why not.

use serde::Serialize;

use crate::draft::Intersection;
use crate::model::Tokenizer;
use crate::trace::TokenId;

/// How a draft's tokens become the target's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// They are the same tokens.
    Same,
    /// Those with the same text are; the draft guesses these only.
    Intersection,
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

/// Of the larger vocabulary at least this share must be in the other for the shared tokens to do: the draft
/// would else mostly want to say what it may not.
const LEAST_SHARED: f64 = 0.5;

/// Compares sizes, every token both have, and the tokens that begin and end a text; where something differs,
/// counts the tokens with equal texts.
pub fn compare(target: &Tokenizer, draft: &Tokenizer) -> Compatibility {
    let (ours, theirs) = (target.vocabulary(), draft.vocabulary());
    let Some(reason) = difference(target, draft) else {
        let reason = format!("the same vocabulary of {} tokens", ours.min(theirs));
        return Compatibility { compatible: true, method: Some(Method::Same), reason };
    };
    let shared = Intersection::of(target, draft).shared();
    let share = shared as f64 / ours.max(theirs).max(1) as f64;
    let counted =
        format!("{shared} tokens, {:.0} % of the larger vocabulary, have the same text", share * 100.0);
    if share >= LEAST_SHARED {
        let reason = format!("{reason}; {counted}, and only these are drafted");
        return Compatibility { compatible: true, method: Some(Method::Intersection), reason };
    }
    let reason =
        format!("{reason}; {counted}, and drafting with these alone needs {:.0} %", LEAST_SHARED * 100.0);
    Compatibility { compatible: false, method: None, reason }
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
