//! Mapping between the tokens of a draft model and its target: identical, or paired by equal text
//! (intersection of the vocabularies, Timor et al. 2025).

use std::collections::HashMap;

use foretoken_model::Tokenizer;
use foretoken_model::token::{TokenId, is_media};

/// Maximum bytes of a draft token that target tokens are spelled with; runs of white space are the
/// longest in use.
const LONGEST_LETTER: usize = 128;
/// Maximum bytes of a target token that is spelled; longer ones are left out.
const LONGEST_SPELLED: usize = 1024;
/// Maximum bytes of all spelled target tokens together: as many as the largest vocabulary in use
/// has. With a malicious model the draft reads the text with gaps instead of taking hours to load.
const MOST_SPELLED: usize = 2 << 20;

/// Tokens a draft model can guess, as the target's tokens.
#[derive(Debug)]
pub enum Vocabulary {
    /// The first so many tokens are identical; either vocabulary may be padded with tokens that
    /// never occur.
    Same(usize),
    Intersection(Box<Intersection>),
}

/// Two vocabularies that share many tokens.
#[derive(Debug)]
pub struct Intersection {
    /// Target token for each draft token.
    to_target: Vec<Option<TokenId>>,
    /// Draft tokens for each target token: one if both have it, otherwise several that spell its
    /// text as far as possible.
    to_draft: Vec<Vec<TokenId>>,
    shared: usize,
}

impl Intersection {
    /// Pairs tokens with equal bytes, control tokens with equal names, and BOS and EOS.
    pub fn of(target: &Tokenizer, draft: &Tokenizer) -> Self {
        let index = Index::of(draft);
        let end = |tokenizer: &Tokenizer| tokenizer.special().eos.as_ref().map(|token| token.id);
        let roles = [(target.bos(), draft.bos()), (end(target), end(draft))];
        let mut both = Self { to_target: vec![None; draft.vocabulary()], to_draft: Vec::new(), shared: 0 };
        let mut room = MOST_SPELLED;
        for token in 0..target.vocabulary() as TokenId {
            let role = roles.iter().find(|role| role.0 == Some(token)).and_then(|role| role.1);
            match role.or_else(|| index.find(target, token)) {
                Some(found) => both.pair(found, token),
                None => both.to_draft.push(index.spell(target.decode_bytes(token), &mut room)),
            }
        }
        both
    }

    fn pair(&mut self, draft: TokenId, target: TokenId) {
        // Several draft tokens may have the same text: guesses go to the first.
        self.shared += usize::from(self.to_target[draft as usize].is_none());
        self.to_target[draft as usize].get_or_insert(target);
        self.to_draft.push(vec![draft]);
    }

    /// Number of tokens that both have.
    pub fn shared(&self) -> usize {
        self.shared
    }

    /// Returns true if the draft can guess this target token.
    pub fn is_guessed(&self, token: TokenId) -> bool {
        let draft = self.to_draft.get(token as usize).and_then(|tokens| tokens.first());
        draft.is_some_and(|&draft| self.to_target[draft as usize] == Some(token))
    }

    /// Returns true if the target has this draft token.
    pub fn is_known(&self, token: TokenId) -> bool {
        self.to_target.get(token as usize).is_some_and(Option::is_some)
    }
}

/// A vocabulary indexed by text.
struct Index<'a> {
    texts: HashMap<&'a [u8], TokenId>,
    controls: HashMap<String, TokenId>,
    /// Bytes of the longest token that others are spelled with.
    longest: usize,
}

impl<'a> Index<'a> {
    fn of(tokenizer: &'a Tokenizer) -> Self {
        let mut index = Self { texts: HashMap::new(), controls: HashMap::new(), longest: 0 };
        for token in 0..tokenizer.vocabulary() as TokenId {
            let bytes = tokenizer.decode_bytes(token);
            index.longest = index.longest.max(bytes.len().min(LONGEST_LETTER));
            if bytes.is_empty() {
                index.controls.entry(tokenizer.piece(token)).or_insert(token);
            } else {
                index.texts.entry(bytes).or_insert(token);
            }
        }
        index
    }

    fn find(&self, tokenizer: &Tokenizer, token: TokenId) -> Option<TokenId> {
        let bytes = tokenizer.decode_bytes(token);
        if bytes.is_empty() {
            self.controls.get(&tokenizer.piece(token)).copied()
        } else {
            self.texts.get(bytes).copied()
        }
    }

    /// Greedy longest-match spelling of `bytes`. Bytes without a token are left out; the result is
    /// empty if `bytes` is very long or `room` is used up.
    fn spell(&self, mut bytes: &[u8], room: &mut usize) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        if bytes.len() > LONGEST_SPELLED.min(*room) {
            return tokens;
        }
        *room -= bytes.len();
        while !bytes.is_empty() {
            let found = (1..=self.longest.min(bytes.len())).rev().find_map(|length| {
                let token = self.texts.get(&bytes[..length])?;
                Some((length, *token))
            });
            tokens.extend(found.map(|(_, token)| token));
            bytes = &bytes[found.map_or(1, |(length, _)| length)..];
        }
        tokens
    }
}

impl Vocabulary {
    /// Translates `context` into the draft's tokens, without its pictures.
    pub fn translate(&self, context: &[TokenId]) -> Vec<TokenId> {
        match self {
            Self::Same(_) => context.iter().copied().filter(|&token| !is_media(token)).collect(),
            Self::Intersection(both) => {
                let draft = |&token: &TokenId| both.to_draft.get(token as usize).into_iter().flatten();
                context.iter().flat_map(draft).copied().collect()
            }
        }
    }

    /// Number of the target's first tokens among which all guesses are.
    pub fn guessed(&self) -> usize {
        match self {
            Self::Same(shared) => *shared,
            Self::Intersection(both) => {
                both.to_target.iter().flatten().max().map_or(0, |&token| token as usize + 1)
            }
        }
    }

    /// Draft token of a target token that the draft guessed; token 0 if the draft does not have it.
    pub fn in_draft(&self, token: TokenId) -> TokenId {
        match self {
            Self::Same(_) => token,
            Self::Intersection(both) => {
                both.to_draft.get(token as usize).and_then(|tokens| tokens.first()).copied().unwrap_or(0)
            }
        }
    }

    /// Rearranges the draft's `logits` by target token, with -inf where the draft has none. `None`
    /// if they are in this order already.
    pub fn align(&self, logits: &[f32]) -> Option<Vec<f32>> {
        let Self::Intersection(both) = self else { return None };
        let mut aligned = vec![f32::NEG_INFINITY; both.to_draft.len()];
        for (token, &logit) in both.to_target.iter().zip(logits) {
            if let Some(token) = token {
                aligned[*token as usize] = logit;
            }
        }
        Some(aligned)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::gguf_file::Value;

    use super::*;
    use foretoken_model::{ModelSource, Special};
    use foretoken_testkit::{Gguf, text};

    /// The tiny vocabulary of bytes, "he" (256), "hel" (257), `<s>`, `</s>` and `<tag>`, with these
    /// tokens after it.
    fn tokenizer(more: &[&str]) -> Tokenizer {
        let mut gguf = Gguf::tiny();
        gguf.tensors.clear();
        for (key, value) in [("tokens", None), ("token_type", Some(Value::I32(1)))] {
            let key = format!("tokenizer.ggml.{key}");
            let Some(Value::Array(mut list)) = gguf.values.remove(&key) else { panic!("{key}") };
            list.extend(more.iter().map(|token| value.clone().unwrap_or_else(|| text(token))));
            gguf.set(&key, Value::Array(list));
        }
        let folder = tempfile::tempdir().unwrap();
        ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap()
    }

    /// Token 261 of the target is "hello", which the draft has as 262. Only the target has "help!",
    /// and only the draft has "hea".
    fn pair() -> (Tokenizer, Tokenizer, Vocabulary) {
        let (target, draft) = (tokenizer(&["hello", "help!"]), tokenizer(&["hea", "hello"]));
        let both = Intersection::of(&target, &draft);
        assert_eq!(both.shared(), 262);
        (target, draft, Vocabulary::Intersection(Box::new(both)))
    }

    #[test]
    fn shared_tokens_map_to_one_token_and_others_to_the_longest_pieces() {
        let (target, draft, vocabulary) = pair();
        let context = [261, 262, b' '.into()];
        let known = vocabulary.translate(&context);
        assert_eq!(known, [262, 257, b'p'.into(), b'!'.into(), b' '.into()]);
        assert_eq!(draft.decode(&known), target.decode(&context));
    }

    #[test]
    fn the_draft_reads_the_targets_text() {
        let (target, draft, vocabulary) = pair();
        for written in ["hello, help! he hel <tag> été 你好", "\n\thelp!help!hello", ""] {
            let context = target.encode(written, Special::Parse).unwrap();
            assert_eq!(draft.decode(&vocabulary.translate(&context)), target.decode(&context));
        }
        assert_eq!(
            vocabulary.translate(&[258, 259]),
            [258, 259],
            "what begins and ends a text does so for both"
        );
    }

    #[test]
    fn spellings_are_bounded_for_any_vocabulary() {
        let (short, long) = ("p".repeat(LONGEST_SPELLED), "q".repeat(LONGEST_SPELLED + 1));
        let (target, draft) = (tokenizer(&[&short, &long]), tokenizer(&[&"p".repeat(2 * LONGEST_LETTER)]));
        let index = Index::of(&draft);
        assert_eq!(index.longest, LONGEST_LETTER);
        let vocabulary = Vocabulary::Intersection(Box::new(Intersection::of(&target, &draft)));
        assert_eq!(draft.decode(&vocabulary.translate(&[261])), short);
        assert!(vocabulary.translate(&[262]).is_empty());
        let mut room = 5;
        assert_eq!(index.spell(b"help!", &mut room).len(), 3);
        assert_eq!(room, 0);
        assert!(index.spell(b"h", &mut room).is_empty());
    }

    #[test]
    fn the_draft_guesses_only_shared_tokens() {
        let (_, _, vocabulary) = pair();
        let logits: Vec<f32> = (0..263).map(|token| token as f32).collect();
        let aligned = vocabulary.align(&logits).unwrap();
        assert_eq!((aligned[261], aligned[262], aligned[b'a' as usize]), (262.0, f32::NEG_INFINITY, 97.0));
        assert_eq!(vocabulary.in_draft(261), 262);
        assert_eq!((vocabulary.guessed(), Vocabulary::Same(100).guessed()), (262, 100));
        // No token of the draft.
        assert_eq!(vocabulary.in_draft(9999), 0);
        let Vocabulary::Intersection(both) = &vocabulary else { panic!() };
        assert!(both.is_guessed(261) && !both.is_guessed(262) && !both.is_guessed(9999));
        assert!(both.is_known(262) && !both.is_known(261) && !both.is_known(9999));
    }

    #[test]
    fn the_total_length_of_spellings_is_bounded() {
        let many: Vec<String> = (0..2050).map(|number| format!("{number:0>LONGEST_SPELLED$}")).collect();
        let target = tokenizer(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let vocabulary = Vocabulary::Intersection(Box::new(Intersection::of(&target, &tokenizer(&[]))));
        let last = target.vocabulary() as TokenId - 1;
        assert_eq!(target.decode(&[last]), many[2049]);
        assert!(!vocabulary.translate(&[261]).is_empty() && vocabulary.translate(&[last]).is_empty());
    }
}
