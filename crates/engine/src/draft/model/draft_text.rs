//! The text in the draft model's tokens, and how much of it the model has cached. As long as the
//! text only grows, only new tokens are examined.

use foretoken_model::token::TokenId;

use crate::context::{Context, Mark, common};
use crate::draft::Vocabulary;

#[derive(Debug)]
pub(super) struct DraftText {
    /// The text, followed by the guesses while a draft is made.
    pub(super) tokens: Context,
    /// Mark of the target's text that it was translated from.
    source: Mark,
    /// Mark of `tokens` at the last comparison with the cache, and the length of their common
    /// prefix.
    compared: (Mark, usize),
}

impl Default for DraftText {
    fn default() -> Self {
        Self { tokens: Context::new(Vec::new()), source: Mark::default(), compared: Default::default() }
    }
}

impl DraftText {
    /// Translates the new tokens of `context`.
    pub(super) fn follow(&mut self, context: &Context, vocabulary: &Vocabulary) {
        if let Some(new) = self.new_of(context) {
            self.tokens.extend(vocabulary.translate(new));
        } else {
            let known = vocabulary.translate(context);
            let same = self.tokens.common(&known, 0);
            self.tokens.truncate(same);
            self.tokens.extend(known[same..].iter().copied());
        }
        self.source = context.mark();
    }

    /// Tokens of `context` that are not translated yet; `None` if the text was changed.
    fn new_of<'a>(&self, context: &'a Context) -> Option<&'a [TokenId]> {
        let translated = self.source.length();
        (translated > 0 && context.unchanged_since(self.source) == translated).then(|| &context[translated..])
    }

    /// Length of the common prefix of the tokens and `cached`.
    pub(super) fn common(&mut self, cached: &[TokenId]) -> usize {
        let same = self.tokens.common(cached, self.same());
        self.compared = (self.tokens.mark(), same);
        same
    }

    /// Length of the common prefix that needs no comparison.
    fn same(&self) -> usize {
        let (mark, same) = self.compared;
        self.tokens.unchanged_since(mark).min(same)
    }

    /// Resets the comparison after the cache was cleared.
    pub(super) fn forget(&mut self) {
        self.compared = Default::default();
    }

    /// Number of draft tokens of `context` that are not in `cached`.
    pub(super) fn behind(&self, cached: &[TokenId], context: &Context, vocabulary: &Vocabulary) -> usize {
        let Some(new) = self.new_of(context) else {
            // While the model does not draft, each round comes here.
            if matches!(vocabulary, Vocabulary::Same(_)) && !context.has_media() {
                return context.len() - common(context, cached, 0);
            }
            let known = vocabulary.translate(context);
            return known.len() - common(&known, cached, 0);
        };
        let new = vocabulary.translate(new);
        let same = self.tokens.common(cached, self.same());
        let more = if same == self.tokens.len() { common(&new, &cached[same..], 0) } else { 0 };
        self.tokens.len() + new.len() - same - more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_text_is_extended_and_a_changed_one_is_translated_again() {
        let vocabulary = Vocabulary::Same(100);
        let mut text = DraftText::default();
        let mut context = Context::new(vec![1, 2, 3]);
        text.follow(&context, &vocabulary);
        assert_eq!(text.common(&[1, 2]), 2);
        context.extend([4, 5]);
        assert_eq!(text.behind(&[1, 2], &context, &vocabulary), 3);
        assert_eq!(text.behind(&[1, 2, 3, 4], &context, &vocabulary), 1);
        assert_eq!(text.behind(&[1, 2, 9, 4], &context, &vocabulary), 3);
        text.follow(&context, &vocabulary);
        // The guesses stay in the cache after the draft.
        text.tokens.extend([6, 7]);
        assert_eq!(text.common(&[1, 2, 3, 4, 5, 6]), 6);
        text.tokens.truncate(5);
        context.extend([8]);
        text.follow(&context, &vocabulary);
        assert_eq!(&text.tokens[..], &context[..]);
        assert_eq!(text.common(&[1, 2, 3, 4, 5, 6]), 5);
        let edited = Context::new(vec![1, 9, 3]);
        assert_eq!(text.behind(&[1, 2, 3], &edited, &vocabulary), 2);
        text.follow(&edited, &vocabulary);
        assert_eq!(&text.tokens[..], &edited[..]);
        assert_eq!(text.common(&[1, 2, 3]), 1);
    }
}
