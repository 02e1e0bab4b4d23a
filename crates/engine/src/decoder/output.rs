//! What a round adds to the text: its tokens as text, up to where the reply ends.

use super::loops::Loops;
use crate::model::{TextStream, Tokenizer};
use crate::token::TokenId;
use crate::trace::Finish;

/// The text of a reply under way.
pub struct Output<'a> {
    pub tokenizer: &'a Tokenizer,
    pub text: TextStream,
    /// Goes on after the model ended its text.
    pub ignore_end: bool,
    /// Whether the reply runs in circles; `None` where nobody looks.
    pub loops: Option<Loops>,
}

/// What a round adds to the text, in order, and why nothing follows it.
#[derive(Default)]
pub struct Emission {
    pub tokens: Vec<TokenId>,
    pub texts: Vec<String>,
    pub finish: Option<Finish>,
}

impl Output<'_> {
    /// Writes `tokens` up to the first that ends the reply, which has room for `room` of them and is full as
    /// `full` says.
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
