//! Compatibility of a draft model's vocabulary with the target's, and of a draft head with its
//! target, with reasons.

use foretoken_model::error::{Error, Result};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelSource, Special, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::draft::Intersection;

/// Mapping of a draft's tokens to the target's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Both vocabularies are equal.
    Same,
    /// Tokens with equal texts are mapped; only these are drafted.
    Intersection,
    /// A draft head for this target.
    Head,
}

/// Difference between two vocabularies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// Sizes differ by more than padding.
    Size { target: usize, draft: usize },
    /// Only special tokens differ: one vocabulary is of a newer release. `count` tokens, from
    /// `first` on.
    SpecialTokens { first: TokenId, count: usize },
    /// Ordinary tokens differ. `count` tokens, from `first` on.
    Tokens { first: TokenId, count: usize },
    /// The tokens that begin or end a text differ.
    Roles,
}

/// Result for a pair, with a reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compatibility {
    pub compatible: bool,
    pub method: Option<Method>,
    /// First difference; `None` if there is none.
    pub difference: Option<Difference>,
    /// Reason in a few words.
    pub reason: String,
    /// Details of the comparison.
    pub detail: String,
}

/// Largest difference in vocabulary size that counts as padding.
const MAX_PADDING: usize = 128;

/// Least share of ordinary text's tokens, in either vocabulary, that both vocabularies must have.
/// Below it, the draft would mostly want tokens that it may not draft, or read tokens that it does
/// not know. The governor decides whether drafting pays.
const MIN_SHARED: f64 = 0.5;

/// Sample of ordinary text: prose, numbers and code.
const ORDINARY: &str = "\
To keep basil alive on a window sill, give it the brightest place you have and water it when the top of the soil \
feels dry. In the first week it loses 12 % of its leaves; after that, 3 or 4 a month. \"Is that normal?\" people \
ask. Yes: pinch off the tips before it flowers, and turn the pot every few days.\n\n\
1. The train leaves at 9:45 and travels 240 km in 2.5 hours, so its speed is 240 / 2.5 = 96 km/h.\n\
2. However, the government's decision was criticised by several scientists from Germany and Brazil.\n\n\
```python\ndef is_palindrome(word: str) -> bool:\n    \"\"\"Whether it reads the same backwards.\"\"\"\n    \
letters = [c.lower() for c in word if c.isalpha()]\n    return letters == letters[::-1]\n```\n";

/// Result for the draft head `draft` and the model it is [for](ModelSource::for_target).
///
/// # Errors
/// `Error::OtherTarget` if that model is not `target`.
pub fn of_head(target: &ModelSource, draft: &ModelSource) -> Result<Compatibility> {
    draft.for_target(target)?;
    Ok(Compatibility {
        compatible: true,
        method: Some(Method::Head),
        difference: None,
        reason: "a draft head for this model".to_owned(),
        detail: "it reads states of this width, of layers this model has, and knows its tokens".to_owned(),
    })
}

/// Result for two models: compares tokenizers, or a head and its target.
///
/// # Errors
/// `Error::Tokenizer` if a tokenizer is missing, damaged or of an unknown kind.
pub fn verdict(target: &ModelSource, draft: &ModelSource) -> Result<Compatibility> {
    if !draft.is_draft_head() {
        return Ok(compare(&target.tokenizer()?, &draft.tokenizer()?));
    }
    of_head(target, draft).or_else(|error| match error {
        Error::OtherTarget(reason) => Ok(Compatibility {
            compatible: false,
            method: None,
            difference: None,
            reason: "a draft head for another model".to_owned(),
            detail: reason,
        }),
        other => Err(other),
    })
}

/// Compares sizes, all common token ids, and the tokens that begin and end a text. If anything
/// differs, finds tokens with equal texts and their share of ordinary text.
pub fn compare(target: &Tokenizer, draft: &Tokenizer) -> Compatibility {
    let Some((difference, found)) = difference(target, draft) else {
        return same(target, draft);
    };
    let both = Intersection::of(target, draft);
    let share = common(&both, target, draft);
    let compatible = share >= MIN_SHARED;
    let percent = share * 100.0;
    let reason = if compatible {
        format!("the vocabularies differ, but share {percent:.0} % of ordinary text")
    } else {
        format!("the vocabularies share only {percent:.0} % of ordinary text")
    };
    let rule = if compatible {
        "only these are drafted".to_owned()
    } else {
        format!("drafting needs {:.0} %", MIN_SHARED * 100.0)
    };
    let detail = format!(
        "{found}; {} of the draft's {} tokens are in both, which covers {percent:.0} % of ordinary text; {rule}",
        both.shared(),
        draft.vocabulary()
    );
    let method = compatible.then_some(Method::Intersection);
    Compatibility { compatible, method, difference: Some(difference), reason, detail }
}

impl Compatibility {
    /// Reason with its details.
    pub fn whole(&self) -> String {
        format!("{} ({})", self.reason, self.detail)
    }
}

/// Share of ordinary text's tokens that both vocabularies have; the smaller one of both
/// tokenizations.
fn common(both: &Intersection, target: &Tokenizer, draft: &Tokenizer) -> f64 {
    let written = |tokenizer: &Tokenizer| tokenizer.encode(ORDINARY, Special::Ignore).unwrap_or_default();
    let share = |tokens: &[TokenId], shared: &dyn Fn(TokenId) -> bool| {
        let count = tokens.iter().filter(|&&token| shared(token)).count();
        count as f64 / tokens.len().max(1) as f64
    };
    let target_share = share(&written(target), &|token| both.is_guessed(token));
    let draft_share = share(&written(draft), &|token| both.is_known(token));
    target_share.min(draft_share)
}

/// Result for vocabularies that are equal up to padding and extra special tokens.
fn same(target: &Tokenizer, draft: &Tokenizer) -> Compatibility {
    let (ours, theirs) = (target.vocabulary(), draft.vocabulary());
    let mut detail = format!("both have the same {} tokens", ours.min(theirs));
    // Padding tokens have an empty name.
    let named = |token: &TokenId| draft.is_control(*token) && !draft.piece(*token).is_empty();
    let more: Vec<TokenId> = (ours.min(theirs) as TokenId..theirs as TokenId).filter(named).collect();
    let difference = more.first().map(|&first| {
        let count = more.len();
        detail = format!(
            "{detail}; the draft is newer than the target's tokenizer: its {count} extra special tokens, from \
             token {first} '{}' on, are not drafted",
            draft.piece(first)
        );
        Difference::SpecialTokens { first, count }
    });
    let reason = "the same vocabulary".to_owned();
    Compatibility { compatible: true, method: Some(Method::Same), difference, reason, detail }
}

fn difference(target: &Tokenizer, draft: &Tokenizer) -> Option<(Difference, String)> {
    let (ours, theirs) = (target.vocabulary(), draft.vocabulary());
    if ours.abs_diff(theirs) > MAX_PADDING {
        let reason = format!(
            "the vocabularies differ in size: {ours} tokens in the target, {theirs} in the draft; up to \
             {MAX_PADDING} more would count as padding"
        );
        return Some((Difference::Size { target: ours, draft: theirs }, reason));
    }
    different_tokens(target, draft).or_else(|| different_roles(target, draft))
}

fn different_tokens(target: &Tokenizer, draft: &Tokenizer) -> Option<(Difference, String)> {
    let both = target.vocabulary().min(draft.vocabulary());
    let differ = |&token: &TokenId| target.piece(token) != draft.piece(token);
    let differing: Vec<TokenId> = (0..both as TokenId).filter(differ).collect();
    let (first, count) = (*differing.first()?, differing.len());
    let mut reason = format!(
        "the vocabularies differ at token {first}: '{}' in the target, '{}' in the draft",
        shown(&target.piece(first)),
        shown(&draft.piece(first))
    );
    let special = |&token: &TokenId| target.is_special(token) && draft.is_special(token);
    if differing.iter().all(special) {
        reason =
            format!("{reason}; {count} special tokens differ in all, as between two releases of a model");
        return Some((Difference::SpecialTokens { first, count }, reason));
    }
    Some((Difference::Tokens { first, count }, reason))
}

/// Text of a token on one line, shortened.
fn shown(piece: &str) -> String {
    const LONGEST: usize = 40;
    let end = if piece.chars().nth(LONGEST).is_some() { "..." } else { "" };
    format!("{}{end}", piece.chars().take(LONGEST).collect::<String>().escape_debug())
}

fn different_roles(target: &Tokenizer, draft: &Tokenizer) -> Option<(Difference, String)> {
    let end = |tokenizer: &Tokenizer| tokenizer.special().eos.as_ref().map(|token| token.id);
    let roles = [("begins", target.bos(), draft.bos()), ("ends", end(target), end(draft))];
    let (role, ours, theirs) = roles.into_iter().find(|(_, ours, theirs)| ours != theirs)?;
    let show = |token: Option<TokenId>| token.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let reason = format!(
        "the token that {role} a text differs: {} in the target, {} in the draft",
        show(ours),
        show(theirs)
    );
    Some((Difference::Roles, reason))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::quantized::gguf_file::Value;

    use super::*;
    use foretoken_model::ModelSource;
    use foretoken_testkit::{Gguf, text};

    fn tokenizer(change: impl FnOnce(&mut Vec<Value>, &mut Vec<Value>)) -> Tokenizer {
        let mut gguf = Gguf::tiny();
        gguf.tensors.clear();
        let mut list = |key: &str| match gguf.values.remove(key) {
            Some(Value::Array(values)) => values,
            other => panic!("{other:?}"),
        };
        let (mut tokens, mut types) = (list("tokenizer.ggml.tokens"), list("tokenizer.ggml.token_type"));
        change(&mut tokens, &mut types);
        gguf.set("tokenizer.ggml.tokens", Value::Array(tokens));
        gguf.set("tokenizer.ggml.token_type", Value::Array(types));
        let folder = tempfile::tempdir().unwrap();
        ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap()
    }

    /// Tokenizer with two more tokens: new special tokens, or padding.
    fn released(special: [&str; 2], kind: i32) -> Tokenizer {
        tokenizer(|tokens, types| {
            tokens.extend(special.map(text));
            types.extend([Value::I32(kind), Value::I32(kind)]);
        })
    }

    #[test]
    fn a_draft_with_more_special_tokens_drafts_shared_tokens_only() {
        let verdict = compare(&tokenizer(|_, _| {}), &released(["<think>", "</think>"], 3));
        assert_eq!((verdict.compatible, verdict.method), (true, Some(Method::Same)));
        assert_eq!(verdict.difference, Some(Difference::SpecialTokens { first: 261, count: 2 }));
        assert!(verdict.detail.contains("newer than the target's tokenizer"), "{}", verdict.detail);
        assert!(verdict.detail.contains("token 261 '<think>'"), "{}", verdict.detail);
    }

    #[test]
    fn different_special_tokens_and_different_words_have_different_verdicts() {
        let target = released(["[PAD261]", "[PAD262]"], 5);
        let verdict = compare(&target, &released(["<think>", "</think>"], 4));
        assert_eq!((verdict.compatible, verdict.method), (true, Some(Method::Intersection)));
        assert_eq!(verdict.difference, Some(Difference::SpecialTokens { first: 261, count: 2 }));
        assert!(verdict.detail.contains("between two releases of a model"), "{}", verdict.detail);
        let words = compare(&tokenizer(|_, _| {}), &tokenizer(|tokens, _| tokens.swap(97, 98)));
        assert_eq!(words.difference, Some(Difference::Tokens { first: 97, count: 2 }));
        assert!(
            words.detail.contains("at token 97: 'a' in the target, 'b' in the draft"),
            "{}",
            words.detail
        );
    }

    #[test]
    fn different_sizes_and_roles_have_their_own_verdicts() {
        let larger = tokenizer(|tokens, types| {
            tokens.extend((0..129).map(|n| text(&format!("more{n}"))));
            types.extend(vec![Value::I32(1); 129]);
        });
        let size = compare(&tokenizer(|_, _| {}), &larger).difference;
        assert_eq!(size, Some(Difference::Size { target: 261, draft: 390 }));
        assert_eq!(compare(&larger, &larger).difference, None);
    }
}
