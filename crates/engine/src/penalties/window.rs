//! Distinct tokens among the last ones of a text.

use std::collections::HashMap;

use foretoken_model::token::TokenId;

use crate::context::After;

/// Distinct tokens in the range of the repetition penalty.
#[derive(Debug)]
pub struct Window {
    /// Maximum number of tokens in the window.
    reach: usize,
    counts: HashMap<TokenId, u32>,
    /// Distinct tokens, ascending.
    distinct: Vec<TokenId>,
}

impl Window {
    pub fn new(reach: usize) -> Self {
        Self { reach, counts: HashMap::new(), distinct: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.counts.clear();
        self.distinct.clear();
    }

    /// Adds the last token of `text`; all earlier ones were added.
    pub fn push(&mut self, text: &[TokenId]) {
        let [.., token] = *text else { return };
        *self.counts.entry(token).or_insert(0) += 1;
        if let Err(index) = self.distinct.binary_search(&token) {
            self.distinct.insert(index, token);
        }
        if text.len() > self.reach {
            let left = text[text.len() - 1 - self.reach];
            let count = self.counts.entry(left).or_insert(1);
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&left);
                if let Ok(index) = self.distinct.binary_search(&left) {
                    self.distinct.remove(index);
                }
            }
        }
    }

    /// Distinct tokens of the window that ends at `after`, ascending; the first `read` tokens of
    /// the text were added.
    pub fn tokens(&self, after: After<'_>, read: usize) -> Vec<TokenId> {
        let read = read.min(after.text.len());
        let new = after.text[read..].iter().chain(after.guesses);
        let start = after.position().saturating_sub(self.reach);
        if start >= read {
            let mut last: Vec<TokenId> = new.skip(start - read).copied().collect();
            last.sort_unstable();
            last.dedup();
            return last;
        }
        let mut distinct = self.distinct.clone();
        let gone = &after.text[read.saturating_sub(self.reach)..start];
        for (index, token) in gone.iter().enumerate() {
            let times = gone[..=index].iter().filter(|other| *other == token).count();
            if self.counts.get(token).is_some_and(|&count| count as usize == times)
                && let Ok(index) = distinct.binary_search(token)
            {
                distinct.remove(index);
            }
        }
        for &token in new {
            if let Err(index) = distinct.binary_search(&token) {
                distinct.insert(index, token);
            }
        }
        distinct
    }
}
