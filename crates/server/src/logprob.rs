//! Log probability of a token with its text.

use foretoken_engine::logprobs::Logprobs;
use foretoken_model::Tokenizer;
use foretoken_model::token::TokenId;

/// See the module; natural logarithm.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprob {
    /// Text of the token; a token may be a part of a character.
    pub bytes: Vec<u8>,
    pub logprob: f32,
    /// Alternatives, the likeliest first; none has alternatives itself.
    pub top: Vec<Logprob>,
}

/// Logarithm that stands for that of 0, as in OpenAI's protocol.
const NEVER: f32 = -9999.0;

impl Logprob {
    /// Log probabilities of written tokens, without those that end a reply.
    pub(crate) fn all(found: &[Logprobs], tokenizer: &Tokenizer) -> Vec<Self> {
        let is_text = |one: &&Logprobs| !tokenizer.ends().contains(&one.token);
        found.iter().filter(is_text).map(|one| Self::of(one, tokenizer)).collect()
    }

    fn of(found: &Logprobs, tokenizer: &Tokenizer) -> Self {
        let one = |token: TokenId, logprob: f32| Self {
            bytes: tokenizer.decode_bytes(token).to_vec(),
            logprob: logprob.max(NEVER),
            top: Vec::new(),
        };
        let top = found.top.iter().map(|&(token, logprob)| one(token, logprob)).collect();
        Self { top, ..one(found.token, found.logprob) }
    }

    /// Text of the token, with replacement characters for parts of others.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
