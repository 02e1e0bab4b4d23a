//! Text of a round: its tokens as text, up to the end of the reply.

use foretoken_model::token::TokenId;
use foretoken_model::{TextStream, Tokenizer};

use super::loops::Loops;
use crate::trace::Finish;

/// Text of a reply so far.
pub struct Output<'a> {
    pub tokenizer: &'a Tokenizer,
    pub text: TextStream,
    /// True to continue after an end-of-text token.
    pub ignore_end: bool,
    /// Loop detection; `None` if it is off.
    pub loops: Option<Loops>,
}

/// Tokens and texts that a round adds, in order, and the reason if the reply ends.
#[derive(Default)]
pub struct Emission {
    pub tokens: Vec<TokenId>,
    pub texts: Vec<String>,
    pub finish: Option<Finish>,
}

impl Output<'_> {
    /// Emits `tokens` up to the first one that ends the reply. `room` is the number of tokens that
    /// may still be written, and `full` the reason when it is used up.
    pub fn emit(&mut self, tokens: impl Iterator<Item = TokenId>, mut room: usize, full: Finish) -> Emission {
        let mut emission = Emission::default();
        for token in tokens {
            let mut text = self.text.push(token);
            room -= 1;
            let ended = !self.ignore_end && self.tokenizer.ends().contains(&token);
            let circles = self.loops.as_mut().is_some_and(|loops| loops.push(token, &text));
            emission.finish = match room {
                _ if ended || self.text.stopped() => Some(Finish::Stop),
                _ if circles => Some(Finish::Repeating),
                0 => Some(full),
                _ => None,
            };
            if emission.finish.is_some() {
                text.push_str(&self.text.finish());
            }
            emission.tokens.push(token);
            emission.texts.push(text);
            if emission.finish.is_some() {
                break;
            }
        }
        emission
    }
}
