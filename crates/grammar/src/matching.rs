//! A grammar that follows a text: the masks after it and after guesses that might follow it.

use std::sync::Arc;

use foretoken_model::token::TokenId;
use llguidance::{Matcher, ParserFactory};

use crate::grammar::Grammar;
use crate::mask::Mask;

/// Most forced tokens after a path whose masks are computed, too.
const MOST_FORCED: usize = 17;

/// See the module. An error is final, and then the text has to begin again.
pub struct Matching {
    factory: Arc<ParserFactory>,
    /// The grammar after the text.
    matcher: Matcher,
}

impl Matching {
    /// Compiles a grammar.
    ///
    /// # Errors
    /// The reason if it cannot be compiled.
    pub fn begin(factory: Arc<ParserFactory>, grammar: &Grammar) -> Result<Self, String> {
        let matcher = Matcher::new(factory.create_parser(grammar.compiled()?));
        match matcher.get_error() {
            None => Ok(Self { factory, matcher }),
            Some(error) => Err(reason(error)),
        }
    }

    /// Appends tokens to the text.
    ///
    /// # Errors
    /// The reason if the grammar does not allow them or becomes too complex.
    pub fn extend(&mut self, tokens: &[TokenId]) -> Result<(), String> {
        self.matcher.consume_tokens(tokens).map_err(reason)
    }

    /// Masks after the text and after each token of `path`, up to the first token that is not
    /// allowed or ends the reply. If there is none, the masks after each of the forced tokens that
    /// follow come, too.
    ///
    /// # Errors
    /// The reason if the grammar accepts nothing or becomes too complex.
    pub fn masks(&mut self, path: &[TokenId]) -> Result<Vec<Mask>, String> {
        let most = path.len() + MOST_FORCED;
        let mut masks = Vec::new();
        loop {
            let mask = Mask::of_bits(self.matcher.compute_mask_or_eos().map_err(reason)?.as_slice());
            let next = match path.get(masks.len()) {
                Some(&token) => Some(token).filter(|&token| mask.allows(token)),
                None => mask.forced().filter(|_| masks.len() < most),
            };
            masks.push(mask);
            let Some(next) = next.filter(|&token| !self.is_end(token)) else { break };
            self.extend(&[next])?;
        }
        self.matcher.rollback(masks.len() - 1).map_err(reason)?;
        Ok(masks)
    }

    fn is_end(&self, token: TokenId) -> bool {
        self.factory.tok_env().tok_trie().eos_tokens().contains(&token)
    }
}

/// Reason of llguidance's `error`: its first line, as the others describe the matcher's state.
fn reason(error: impl std::fmt::Display) -> String {
    let error = error.to_string();
    match error.lines().next().unwrap_or_default() {
        "NoExtensionBias" => "it allows no text here".to_owned(),
        line => line.to_owned(),
    }
}
