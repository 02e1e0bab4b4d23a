//! The tokens of a text that grows, and how much of it is still what somebody read before: who follows a text
//! looks at what is new and no more.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::token::TokenId;

/// Cuts that are remembered: who followed the text more of them ago compares all of it.
const MAX_CUTS: usize = 8;

/// A text: prompt and reply so far. It is appended to and cut.
#[derive(Debug)]
pub struct Context {
    tokens: Vec<TokenId>,
    /// Of this text and no other.
    id: u64,
    /// Cuts so far.
    cuts: u64,
    /// The last of them with the length that was left, both ascending: a longer one says nothing any more.
    last_cuts: Vec<(u64, usize)>,
    /// Cuts up to this number are forgotten.
    forgotten: u64,
}

/// What somebody has read of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    id: u64,
    cuts: u64,
    length: usize,
}

impl Mark {
    /// Tokens that had been read.
    pub fn length(self) -> usize {
        self.length
    }
}

impl Context {
    pub fn new(tokens: Vec<TokenId>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { tokens, id, cuts: 0, last_cuts: Vec::with_capacity(MAX_CUTS + 1), forgotten: 0 }
    }

    pub fn push(&mut self, token: TokenId) {
        self.tokens.push(token);
    }

    pub fn extend(&mut self, tokens: impl IntoIterator<Item = TokenId>) {
        self.tokens.extend(tokens);
    }

    /// Forgets all but the first `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.tokens.len() {
            return;
        }
        self.tokens.truncate(length);
        self.cuts += 1;
        while self.last_cuts.pop_if(|&mut (_, left)| left >= length).is_some() {}
        self.last_cuts.push((self.cuts, length));
        if self.last_cuts.len() > MAX_CUTS {
            self.forgotten = self.last_cuts.remove(0).0;
        }
    }

    /// That all of it has been read.
    pub fn mark(&self) -> Mark {
        Mark { id: self.id, cuts: self.cuts, length: self.tokens.len() }
    }

    /// How many of the tokens that were read by `mark` are still its first; 0 where that is not known.
    pub fn unchanged_since(&self, mark: Mark) -> usize {
        if mark.id != self.id || mark.cuts < self.forgotten {
            return 0;
        }
        let later = self.last_cuts.iter().find(|&&(cut, _)| cut > mark.cuts);
        later.map_or(mark.length, |&(_, left)| left.min(mark.length))
    }

    /// How many of its first tokens `others` begins with too, where the first `known` are known to be the same.
    pub fn common(&self, others: &[TokenId], known: usize) -> usize {
        common(&self.tokens, others, known)
    }
}

/// How many tokens two texts have in common from the beginning, the first `known` of which are known to be.
pub fn common(ours: &[TokenId], theirs: &[TokenId], known: usize) -> usize {
    let known = known.min(ours.len()).min(theirs.len());
    let new = ours[known..].iter().zip(&theirs[known..]);
    known + new.take_while(|(ours, theirs)| ours == theirs).count()
}

impl Deref for Context {
    type Target = [TokenId];

    fn deref(&self) -> &[TokenId] {
        &self.tokens
    }
}

impl From<&[TokenId]> for Context {
    fn from(tokens: &[TokenId]) -> Self {
        Self::new(tokens.to_vec())
    }
}

/// A place in a text that may go on otherwise: after the text, or after some guesses that follow it.
#[derive(Debug, Clone, Copy)]
pub struct After<'a> {
    pub text: &'a [TokenId],
    pub guesses: &'a [TokenId],
}

impl After<'_> {
    /// The position of the token that comes next.
    pub fn position(self) -> usize {
        self.text.len() + self.guesses.len()
    }
}

impl<'a> From<&'a [TokenId]> for After<'a> {
    fn from(text: &'a [TokenId]) -> Self {
        Self { text, guesses: &[] }
    }
}

impl<'a> From<&'a Vec<TokenId>> for After<'a> {
    fn from(text: &'a Vec<TokenId>) -> Self {
        text.as_slice().into()
    }
}

impl<'a, const N: usize> From<&'a [TokenId; N]> for After<'a> {
    fn from(text: &'a [TokenId; N]) -> Self {
        text.as_slice().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_that_only_grew_is_unchanged_and_another_is_not_known() {
        let mut context = Context::new(vec![1, 2, 3]);
        let mark = context.mark();
        context.extend([4, 5]);
        assert_eq!((context.unchanged_since(mark), &context[..]), (3, &[1, 2, 3, 4, 5][..]));
        assert_eq!(Context::new(vec![1, 2, 3]).unchanged_since(mark), 0);
        assert_eq!(context.unchanged_since(Mark::default()), 0);
    }

    #[test]
    fn what_both_have_is_counted_from_what_is_known() {
        let context = Context::new(vec![1, 2, 3, 4]);
        assert_eq!(context.common(&[1, 2, 9], 0), 2);
        assert_eq!(context.common(&[7, 7, 3], 2), 3, "what is known is not looked at");
        assert_eq!(context.common(&[1], 3), 1);
    }

    proptest! {
        #[test]
        fn what_is_unchanged_is_never_more_than_is_the_same(
            steps in prop::collection::vec((any::<bool>(), 0usize..6), 1..60),
        ) {
            let mut context = Context::new(vec![0; 4]);
            let mut next = 1;
            let mut marks = Vec::new();
            for (cut, count) in steps {
                marks.push((context.mark(), context.to_vec()));
                if cut {
                    context.truncate(context.len().saturating_sub(count));
                } else {
                    // No token comes twice, so that what was cut and written again differs.
                    context.extend(next..next + count as TokenId);
                    next += count as TokenId;
                }
                for (age, (mark, before)) in marks.iter().rev().enumerate() {
                    let same = context.common(before, 0);
                    let unchanged = context.unchanged_since(*mark);
                    prop_assert!(unchanged <= same);
                    prop_assert!(unchanged == same || age >= MAX_CUTS);
                }
            }
        }
    }
}
