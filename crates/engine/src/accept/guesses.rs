//! Tree of guesses as a list in which parents come before their children.

use std::ops::Deref;

use foretoken_forward::tree::TokenTree;
use foretoken_model::token::TokenId;

use super::guess::Guess;

/// Guesses of a round; empty for plain decoding.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guesses {
    list: Vec<Guess>,
}

impl Guesses {
    /// Adds a guess below its own `parent`.
    pub fn push(&mut self, guess: Guess) {
        self.list.push(guess);
    }

    /// Adds a guess below the last one, whatever its `parent` was.
    pub fn follow(&mut self, guess: Guess) {
        let parent = self.list.len().checked_sub(1);
        self.list.push(Guess { parent, ..guess });
    }

    /// Keeps the first `length` guesses.
    pub fn truncate(&mut self, length: usize) {
        self.list.truncate(length);
    }

    /// Keeps the guesses with `true` in `kept` whose ancestors are kept, too.
    #[must_use]
    pub fn retained(self, kept: &[bool]) -> Self {
        let mut places = vec![None; self.list.len()];
        let mut list = Vec::with_capacity(self.list.len());
        for (index, guess) in self.list.into_iter().enumerate() {
            let parent = guess.parent.map(|parent| places[parent]);
            if kept[index] && parent != Some(None) {
                places[index] = Some(list.len());
                list.push(Guess { parent: parent.flatten(), ..guess });
            }
        }
        Self { list }
    }

    /// Tokens from the root to guess `last`, inclusive; empty for `None`, the end of the text.
    pub fn path(&self, last: Option<usize>) -> Vec<TokenId> {
        let up = std::iter::successors(last, |&guess| self.list[guess].parent);
        let mut path: Vec<TokenId> = up.map(|guess| self.list[guess].token).collect();
        path.reverse();
        path
    }

    /// Depth of each guess: the number of guesses before it on its path.
    pub fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.list.len());
        for guess in &self.list {
            depths.push(guess.parent.map_or(0, |parent| depths[parent] + 1));
        }
        depths
    }

    /// Returns true if each guess follows the one before it in the list.
    pub fn is_chain(&self) -> bool {
        self.list.iter().enumerate().all(|(index, guess)| guess.parent == index.checked_sub(1))
    }

    /// Tree for the target to verify: `last`, the last token of the text, with the guesses below
    /// it.
    pub fn tree(&self, last: TokenId) -> TokenTree {
        let mut tree = TokenTree::chain([last]);
        for guess in &self.list {
            tree.push(guess.token, Some(Self::row(guess.parent)));
        }
        tree
    }

    /// Row of the target's logits after `guess`, or after the text for `None`. It is also the
    /// guess's node in [`Self::tree`].
    pub fn row(guess: Option<usize>) -> usize {
        guess.map_or(0, |guess| guess + 1)
    }
}

impl Deref for Guesses {
    type Target = [Guess];

    fn deref(&self) -> &[Guess] {
        &self.list
    }
}

impl From<Vec<Guess>> for Guesses {
    fn from(list: Vec<Guess>) -> Self {
        Self { list }
    }
}

impl FromIterator<Guess> for Guesses {
    fn from_iter<I: IntoIterator<Item = Guess>>(guesses: I) -> Self {
        Self { list: guesses.into_iter().collect() }
    }
}

impl IntoIterator for Guesses {
    type Item = Guess;
    type IntoIter = std::vec::IntoIter<Guess>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drafter_kind::DrafterKind;

    fn guess(token: TokenId, parent: Option<usize>) -> Guess {
        let (probability, confidence) = (1.0, 1.0);
        Guess { token, parent, drawn_from: None, probability, confidence, drafter: DrafterKind::Model }
    }

    #[test]
    fn a_tree_has_paths_depths_and_a_row_for_each_guess() {
        let guesses: Guesses =
            [guess(5, None), guess(6, Some(0)), guess(7, None), guess(8, Some(1))].into_iter().collect();
        assert!(!guesses.is_chain());
        assert_eq!(guesses.depths(), [0, 1, 0, 2]);
        assert_eq!((guesses.path(Some(3)), guesses.path(None)), (vec![5, 6, 8], vec![]));
        let tree = guesses.tree(4);
        assert_eq!(tree.tokens().collect::<Vec<_>>(), [4, 5, 6, 7, 8]);
        assert_eq!(tree.depths(), [0, 1, 2, 1, 3]);
        assert_eq!((Guesses::row(None), Guesses::row(Some(3))), (0, 4));
    }

    #[test]
    fn a_dropped_guess_takes_all_that_follows_it_along() {
        let list = [(5, None), (6, Some(0)), (7, None), (8, Some(1)), (9, Some(2))];
        let guesses: Guesses = list.into_iter().map(|(token, parent)| guess(token, parent)).collect();
        let kept = guesses.retained(&[true, false, true, true, true]);
        let left: Vec<_> = kept.iter().map(|guess| (guess.token, guess.parent)).collect();
        assert_eq!(left, [(5, None), (7, None), (9, Some(1))]);
    }

    #[test]
    fn guesses_that_follow_each_other_are_a_chain() {
        let mut guesses = Guesses::default();
        assert!(guesses.is_chain());
        (0..3).for_each(|token| guesses.follow(guess(token, Some(9))));
        assert!(guesses.is_chain());
        guesses.truncate(2);
        assert_eq!(guesses.path(Some(1)), [0, 1]);
    }
}
