//! Number of occurrences of each token in a reply so far.

use foretoken_model::token::TokenId;

use crate::context::After;

/// See the module.
#[derive(Debug)]
pub struct Counts {
    /// Length of the prompt, whose tokens do not count.
    prompt: usize,
    /// Counted tokens, ascending.
    counts: Vec<(TokenId, u32)>,
}

impl Counts {
    pub fn new(prompt: usize) -> Self {
        Self { prompt, counts: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Adds the last token of `text`; all earlier ones were added.
    pub fn push(&mut self, text: &[TokenId]) {
        if let Some(&token) = text.last().filter(|_| text.len() > self.prompt) {
            add(&mut self.counts, token);
        }
    }

    /// Tokens of the reply up to `after`, ascending, and how often they occur; the first `read`
    /// tokens of the text were added.
    pub fn at(&self, after: After<'_>, read: usize) -> Vec<(TokenId, u32)> {
        let mut counts = self.counts.clone();
        let new = read.max(self.prompt).min(after.text.len());
        after.text[new..].iter().chain(after.guesses).for_each(|&token| add(&mut counts, token));
        counts
    }
}

fn add(counts: &mut Vec<(TokenId, u32)>, token: TokenId) {
    match counts.binary_search_by_key(&token, |&(token, _)| token) {
        Ok(found) => counts[found].1 += 1,
        Err(index) => counts.insert(index, (token, 1)),
    }
}
