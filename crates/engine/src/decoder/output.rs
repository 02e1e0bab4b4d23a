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
            let ended = !self.ignore_end && self.tokenizer.ends().contains(&token);
            // The name of a token that ends replies is never part of one.
            let mut text = if ended && !self.tokenizer.is_control(token) {
                String::new()
            } else {
                self.text.push(token)
            };
            room -= 1;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use foretoken_model::ModelSource;
    use foretoken_testkit::Gguf;

    use super::*;

    #[test]
    fn the_name_of_a_marker_that_ends_a_reply_is_not_part_of_it() {
        let mut gguf = Gguf::tiny();
        let end = gguf.extend_vocabulary([("<|fin|>".to_owned(), 4)]);
        let folder = tempfile::tempdir().unwrap();
        let mut tokenizer = ModelSource::open(&gguf.write(folder.path())).unwrap().tokenizer().unwrap();
        tokenizer.add_end(end);
        let tokenizer = Arc::new(tokenizer);
        let text = TextStream::new(Arc::clone(&tokenizer), &[]);
        let mut output = Output { tokenizer: &tokenizer, text, ignore_end: false, loops: None };
        let emission = output.emit([u32::from(b'a'), end, 99].into_iter(), 9, Finish::Length);
        assert_eq!((emission.texts.concat().as_str(), emission.finish), ("a", Some(Finish::Stop)));
    }
}
