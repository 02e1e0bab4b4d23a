//! Log probability of a token with its text.

use foretoken_engine::logprobs::Logprobs;
use foretoken_model::Tokenizer;
use foretoken_model::token::TokenId;
use serde_json::{Value, json};

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
    /// Log probability of a written token; `None` for one that ends a reply.
    pub(crate) fn of_text(found: &Logprobs, tokenizer: &Tokenizer) -> Option<Self> {
        (!tokenizer.ends().contains(&found.token)).then(|| Self::of(found, tokenizer))
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

    /// JSON with the alternatives, as in OpenAI's protocols.
    pub fn json(&self) -> Value {
        let mut json = self.alone();
        json["top_logprobs"] = self.top.iter().map(Self::alone).collect();
        json
    }

    fn alone(&self) -> Value {
        json!({ "token": self.text(), "logprob": self.logprob, "bytes": self.bytes })
    }

    /// Text of the token, with replacement characters for parts of others.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
