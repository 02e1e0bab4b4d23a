//! Set of tokens that may come next.

use foretoken_model::token::TokenId;
use serde::{Deserialize, Serialize};

/// Most tokens of a set that is kept as a list.
const LISTED: usize = 256;

/// Bits of a word.
const WORD: usize = u32::BITS as usize;

/// Set of tokens that may come next, at least one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Form<String>", into = "Form<String>")]
pub struct Mask(Form<Vec<u32>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form<Bits> {
    /// These tokens, ascending.
    Only(Vec<TokenId>),
    /// All tokens but these, ascending.
    AllBut(Vec<TokenId>),
    /// Tokens by their bits.
    Bits(Bits),
}

impl Mask {
    /// Set of `tokens`.
    pub fn only(mut tokens: Vec<TokenId>) -> Self {
        tokens.sort_unstable();
        Self(Form::Only(tokens))
    }

    /// Set of all tokens but `tokens`.
    pub fn all_but(mut tokens: Vec<TokenId>) -> Self {
        tokens.sort_unstable();
        Self(Form::AllBut(tokens))
    }

    /// Set of the tokens whose bits are set, the lowest bit of the first word first.
    pub fn of_bits(words: &[u32]) -> Self {
        let count: u32 = words.iter().map(|word| word.count_ones()).sum();
        if count as usize > LISTED {
            return Self(Form::Bits(words.to_vec()));
        }
        let mut tokens = Vec::with_capacity(count as usize);
        for (index, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                tokens.push(index as TokenId * u32::BITS + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Self(Form::Only(tokens))
    }

    /// The set with one more token.
    #[must_use]
    pub fn and(&self, token: TokenId) -> Self {
        let mut mask = self.clone();
        match &mut mask.0 {
            Form::Only(tokens) => {
                if let Err(at) = tokens.binary_search(&token) {
                    tokens.insert(at, token);
                }
            }
            Form::AllBut(tokens) => tokens.retain(|&other| other != token),
            Form::Bits(words) => {
                if let Some(word) = words.get_mut(token as usize / WORD) {
                    *word |= 1 << (token % u32::BITS);
                }
            }
        }
        mask
    }

    pub fn allows(&self, token: TokenId) -> bool {
        match &self.0 {
            Form::Only(tokens) => tokens.binary_search(&token).is_ok(),
            Form::AllBut(tokens) => tokens.binary_search(&token).is_err(),
            Form::Bits(words) => {
                words.get(token as usize / WORD).is_some_and(|word| word >> (token % u32::BITS) & 1 == 1)
            }
        }
    }

    /// The only token of the set.
    pub fn forced(&self) -> Option<TokenId> {
        self.listed().and_then(|tokens| if let [token] = tokens { Some(*token) } else { None })
    }

    /// Tokens of a small set, ascending.
    pub fn listed(&self) -> Option<&[TokenId]> {
        if let Form::Only(tokens) = &self.0 { Some(tokens) } else { None }
    }
}

impl From<Form<String>> for Mask {
    fn from(form: Form<String>) -> Self {
        Self(match form {
            Form::Only(tokens) => Form::Only(tokens),
            Form::AllBut(tokens) => Form::AllBut(tokens),
            Form::Bits(text) => Form::Bits(words(&text)),
        })
    }
}

impl From<Mask> for Form<String> {
    fn from(mask: Mask) -> Self {
        match mask.0 {
            Form::Only(tokens) => Self::Only(tokens),
            Form::AllBut(tokens) => Self::AllBut(tokens),
            Form::Bits(words) => Self::Bits(text(&words)),
        }
    }
}

/// Words as text of six bits a character, in characters that JSON does not escape.
fn text(words: &[u32]) -> String {
    let mut text = Vec::with_capacity(words.len() * WORD / 6 + 16);
    for part in words.chunks(3) {
        let bits = part.iter().rev().fold(0, |bits: u128, &word| bits << WORD | u128::from(word));
        text.extend((0..(part.len() * WORD).div_ceil(6)).map(|at| {
            let six = (bits >> (6 * at) & 63) as u8;
            six + b'#' + u8::from(six >= b'\\' - b'#')
        }));
    }
    // All of it is ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// Words of [`text`], whose characters come from there.
fn words(text: &str) -> Vec<u32> {
    let mut words = Vec::with_capacity(text.len() * 6 / WORD);
    for part in text.as_bytes().chunks(16) {
        let six = |character: u8| character.wrapping_sub(b'#' + u8::from(character > b'\\')) & 63;
        let bits = part.iter().rev().fold(0, |bits: u128, &character| bits << 6 | u128::from(six(character)));
        words.extend((0..part.len() * 6 / WORD).map(|word| (bits >> (WORD * word)) as u32));
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_mask_has_the_tokens_of_its_bits_also_after_a_way_through_json(
            words in prop::collection::vec(prop_oneof![Just(0u32), Just(u32::MAX), any::<u32>()], 1..40),
            added in 0u32..1280,
        ) {
            let mask = Mask::of_bits(&words);
            let json = serde_json::to_string(&mask).unwrap();
            let read: Mask = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read, &mask);
            let bit = |token: u32| {
                words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
            };
            for token in 0..1290 {
                prop_assert_eq!(mask.allows(token), bit(token));
            }
            let added = added % (32 * words.len() as u32);
            prop_assert!(mask.and(added).allows(added));
        }
    }

    #[test]
    fn a_set_of_one_token_forces_it() {
        assert_eq!(Mask::of_bits(&[0, 4]).forced(), Some(34));
        assert_eq!(Mask::of_bits(&[1, 4]).forced(), None);
        assert_eq!(Mask::of_bits(&[1, 4]).listed(), Some(&[0, 34][..]));
        assert_eq!(Mask::only(vec![7, 3]).listed(), Some(&[3, 7][..]));
        let all = Mask::all_but(vec![9, 2]);
        assert!(all.allows(0) && !all.allows(2) && !all.allows(9));
        assert!(all.and(9).allows(9));
    }
}
