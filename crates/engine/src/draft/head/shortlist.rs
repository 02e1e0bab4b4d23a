//! Part of the vocabulary that an MTP head guesses from, as long as the text stays within it.
//!
//! The output matrix is most of what a step of the head reads. Byte-pair vocabularies are ordered
//! by merge, that is by frequency, so their first tokens are a shortlist that needs no data. A
//! token outside of it is never guessed; the target emits it.

use foretoken_model::DraftHead;
use foretoken_model::token::{TokenId, is_media};

/// Tokens at the end of the text that are examined.
const RECENT: usize = 256;
/// One in `LACKING` of the recent tokens may lie outside of a part,
const LACKING: usize = 5;
/// plus `BESIDES` more: the control tokens of turns are the last of a vocabulary in any language.
const BESIDES: usize = 8;

/// Length of the prefix of the vocabulary to guess from after `text`.
pub(super) fn length(text: &[TokenId], vocabulary: usize) -> usize {
    let recent = &text[text.len().saturating_sub(RECENT)..];
    let holds = |length: &usize| {
        let lacks = |token: &&TokenId| **token as usize >= *length && !is_media(**token);
        let lacking = recent.iter().filter(lacks).count();
        lacking <= recent.len() / LACKING + BESIDES
    };
    DraftHead::PARTS.iter().map(|part| vocabulary.div_ceil(*part)).find(holds).unwrap_or(vocabulary)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of `count` tokens. One in `every` is the last of a vocabulary of 1,000, and one in
    /// two of the others is `rare`.
    fn text(count: usize, every: usize, rare: TokenId) -> Vec<TokenId> {
        let token = |at: usize| if at.is_multiple_of(every) { 999 } else { [7, rare][at % 2] };
        (0..count).map(token).collect()
    }

    #[test]
    fn guesses_come_from_the_part_of_the_vocabulary_that_the_text_uses() {
        for (rare, expected) in [(249, 250), (250, 500), (499, 500), (500, 1000)] {
            assert_eq!(length(&text(300, 1000, rare), 1000), expected, "with {rare}");
        }
        assert_eq!(length(&text(300, 6, 7), 1000), 250);
        assert_eq!(length(&text(300, 3, 7), 1000), 1000);
        assert_eq!(length(&[], 1000), 250);
        assert_eq!(length(&[], 1), 1);
    }

    #[test]
    fn control_tokens_of_turns_do_not_count() {
        let turns = [vec![999; BESIDES], vec![7; 4]].concat();
        assert_eq!(length(&turns, 1000), 250);
        assert_eq!(length(&[&turns[..], &[999; 5]].concat(), 1000), 1000);
    }

    #[test]
    fn a_language_used_long_ago_no_longer_counts() {
        let mut text = vec![900; 400];
        assert_eq!(length(&text, 1000), 1000);
        text.extend([7; RECENT]);
        assert_eq!(length(&text, 1000), 250);
    }
}
