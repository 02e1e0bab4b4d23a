//! The text in the draft model's tokens, and how much of it the model has cached. As long as the
//! text only grows, only new tokens are examined.

use foretoken_model::token::TokenId;

use crate::context::{Context, Mark, common};
use crate::draft::Vocabulary;

#[derive(Debug)]
pub(super) struct Reading {
    /// The text, followed by the guesses while a draft is made.
    pub(super) known: Context,
    /// Mark of the target's text that it was translated from.
    text: Mark,
    /// Mark of `known` at the last comparison with the cache, and the length of their common
    /// prefix.
    compared: (Mark, usize),
}

impl Default for Reading {
    fn default() -> Self {
        Self { known: Context::new(Vec::new()), text: Mark::default(), compared: Default::default() }
    }
}

impl Reading {
    /// Translates the new tokens of `context`.
    pub(super) fn follow(&mut self, context: &Context, vocabulary: &Vocabulary) {
        if let Some(new) = self.new_of(context) {
            self.known.extend(vocabulary.translate(new));
        } else {
            let known = vocabulary.translate(context);
            let same = self.known.common(&known, 0);
            self.known.truncate(same);
            self.known.extend(known[same..].iter().copied());
        }
        self.text = context.mark();
    }

    /// Tokens of `context` that are not translated yet; `None` if the text was changed.
    fn new_of<'a>(&self, context: &'a Context) -> Option<&'a [TokenId]> {
        let translated = self.text.length();
        (translated > 0 && context.unchanged_since(self.text) == translated).then(|| &context[translated..])
    }

    /// Length of the common prefix of the known tokens and `cached`.
    pub(super) fn common(&mut self, cached: &[TokenId]) -> usize {
        let same = self.known.common(cached, self.same());
        self.compared = (self.known.mark(), same);
        same
    }

    /// Length of the common prefix that needs no comparison.
    fn same(&self) -> usize {
        let (mark, same) = self.compared;
        self.known.unchanged_since(mark).min(same)
    }

    /// Resets the comparison after the cache was cleared.
    pub(super) fn forget(&mut self) {
        self.compared = Default::default();
    }

    /// Number of draft tokens of `context` that are not in `cached`.
    pub(super) fn behind(&self, cached: &[TokenId], context: &Context, vocabulary: &Vocabulary) -> usize {
        let Some(new) = self.new_of(context) else {
            if matches!(vocabulary, Vocabulary::Same(_)) {
                return context.len() - common(context, cached, 0);
            }
            let known = vocabulary.translate(context);
            return known.len() - common(&known, cached, 0);
        };
        let new = vocabulary.translate(new);
        let same = self.known.common(cached, self.same());
        let more = if same == self.known.len() { common(&new, &cached[same..], 0) } else { 0 };
        self.known.len() + new.len() - same - more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_grows_is_followed_and_one_that_was_changed_is_read_again() {
        let vocabulary = Vocabulary::Same(100);
        let mut reading = Reading::default();
        let mut context = Context::new(vec![1, 2, 3]);
        reading.follow(&context, &vocabulary);
        assert_eq!(reading.common(&[1, 2]), 2);
        context.extend([4, 5]);
        assert_eq!(reading.behind(&[1, 2], &context, &vocabulary), 3);
        assert_eq!(reading.behind(&[1, 2, 3, 4], &context, &vocabulary), 1);
        assert_eq!(reading.behind(&[1, 2, 9, 4], &context, &vocabulary), 3);
        reading.follow(&context, &vocabulary);
        // The guesses stay in the cache after the draft.
        reading.known.extend([6, 7]);
        assert_eq!(reading.common(&[1, 2, 3, 4, 5, 6]), 6);
        reading.known.truncate(5);
        context.extend([8]);
        reading.follow(&context, &vocabulary);
        assert_eq!(&reading.known[..], &context[..]);
        assert_eq!(reading.common(&[1, 2, 3, 4, 5, 6]), 5);
        let edited = Context::new(vec![1, 9, 3]);
        assert_eq!(reading.behind(&[1, 2, 3], &edited, &vocabulary), 2);
        reading.follow(&edited, &vocabulary);
        assert_eq!(&reading.known[..], &edited[..]);
        assert_eq!(reading.common(&[1, 2, 3]), 1);
    }
}
