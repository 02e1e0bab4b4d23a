//! Token context that grows and is cut, with marks: a reader that follows it processes only new
//! tokens.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

use foretoken_model::token::{TokenId, is_media};

/// Number of cuts that are kept; a reader with an older mark compares everything.
const MAX_CUTS: usize = 8;

/// Prompt and reply so far; it is appended to and cut.
#[derive(Debug)]
pub struct Context {
    tokens: Vec<TokenId>,
    /// Number of tokens that name embeddings of pictures.
    media: usize,
    /// Unique identifier of this context.
    id: u64,
    /// Number of cuts so far.
    cuts: u64,
    /// Last cuts with the remaining length, both ascending; a cut makes earlier longer ones
    /// irrelevant.
    last_cuts: Vec<(u64, usize)>,
    /// Number of the last cut that was dropped from the list.
    forgotten: u64,
}

/// Mark of the tokens that a reader has processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    id: u64,
    cuts: u64,
    length: usize,
}

impl Mark {
    /// Number of processed tokens.
    pub fn length(self) -> usize {
        self.length
    }
}

impl Context {
    pub fn new(tokens: Vec<TokenId>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let media = count_media(&tokens);
        Self { tokens, media, id, cuts: 0, last_cuts: Vec::with_capacity(MAX_CUTS + 1), forgotten: 0 }
    }

    pub fn push(&mut self, token: TokenId) {
        self.extend([token]);
    }

    pub fn extend(&mut self, tokens: impl IntoIterator<Item = TokenId>) {
        let before = self.tokens.len();
        self.tokens.extend(tokens);
        self.media += count_media(&self.tokens[before..]);
    }

    /// Returns true if some of its tokens name embeddings of pictures.
    pub fn has_media(&self) -> bool {
        self.media > 0
    }

    /// Drops all but the first `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.tokens.len() {
            return;
        }
        self.media -= count_media(&self.tokens[length..]);
        self.tokens.truncate(length);
        self.cuts += 1;
        while self.last_cuts.pop_if(|&mut (_, left)| left >= length).is_some() {}
        self.last_cuts.push((self.cuts, length));
        if self.last_cuts.len() > MAX_CUTS {
            self.forgotten = self.last_cuts.remove(0).0;
        }
    }

    /// Mark for all present tokens.
    pub fn mark(&self) -> Mark {
        Mark { id: self.id, cuts: self.cuts, length: self.tokens.len() }
    }

    /// Number of leading tokens that are unchanged since `mark`; 0 if that is unknown.
    pub fn unchanged_since(&self, mark: Mark) -> usize {
        if mark.id != self.id || mark.cuts < self.forgotten {
            return 0;
        }
        let later = self.last_cuts.iter().find(|&&(cut, _)| cut > mark.cuts);
        later.map_or(mark.length, |&(_, left)| left.min(mark.length))
    }

    /// Length of the common prefix with `others`, whose first `known` tokens are known to be equal.
    pub fn common(&self, others: &[TokenId], known: usize) -> usize {
        common(&self.tokens, others, known)
    }
}

fn count_media(tokens: &[TokenId]) -> usize {
    tokens.iter().filter(|&&token| is_media(token)).count()
}

/// Length of the common prefix of two texts, whose first `known` tokens are known to be equal.
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

/// Position after a text, or after some guesses that follow it.
#[derive(Debug, Clone, Copy)]
pub struct After<'a> {
    pub text: &'a [TokenId],
    pub guesses: &'a [TokenId],
}

impl After<'_> {
    /// Position of the next token.
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
    use foretoken_model::token::MEDIA_IDS;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_context_that_only_grew_is_unchanged_and_another_context_is_unknown() {
        let mut context = Context::new(vec![1, 2, 3]);
        let mark = context.mark();
        context.extend([4, 5]);
        assert_eq!((context.unchanged_since(mark), &context[..]), (3, &[1, 2, 3, 4, 5][..]));
        assert_eq!(Context::new(vec![1, 2, 3]).unchanged_since(mark), 0);
        assert_eq!(context.unchanged_since(Mark::default()), 0);
    }

    #[test]
    fn pictures_are_counted_while_the_context_grows_and_is_cut() {
        let mut context = Context::new(vec![1, MEDIA_IDS]);
        context.push(MEDIA_IDS + 1);
        context.truncate(2);
        assert!(context.has_media());
        context.truncate(1);
        assert!(!context.has_media());
        context.extend([2, MEDIA_IDS]);
        assert!(context.has_media());
    }

    #[test]
    fn the_common_prefix_is_counted_from_its_known_part() {
        let context = Context::new(vec![1, 2, 3, 4]);
        assert_eq!(context.common(&[1, 2, 9], 0), 2);
        assert_eq!(context.common(&[7, 7, 3], 2), 3, "what is known is not looked at");
        assert_eq!(context.common(&[1], 3), 1);
    }

    proptest! {
        #[test]
        fn the_unchanged_prefix_is_never_longer_than_the_common_one(
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
                    // Token ids are unique, so that tokens written after a cut differ.
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
