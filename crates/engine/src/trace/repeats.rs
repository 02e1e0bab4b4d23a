//! Detection of token sequences that repeat at the end of a text.

use foretoken_model::token::TokenId;

/// Longest sequence whose repetition is detected, in tokens.
const LONGEST: usize = 128;
/// Least number of repetitions in a row after the first occurrence.
const TIMES: usize = 2;
/// Least number of tokens in these repetitions.
const LEAST: usize = 24;

/// Tokens of a text and, for each period, the number of last tokens that equal those one period
/// before.
#[derive(Debug, Clone)]
pub(super) struct Repeats {
    tokens: Vec<TokenId>,
    runs: [usize; LONGEST],
}

impl Default for Repeats {
    fn default() -> Self {
        Self { tokens: Vec::new(), runs: [0; LONGEST] }
    }
}

impl Repeats {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn push(&mut self, token: TokenId) {
        for (run, before) in self.runs.iter_mut().zip(self.tokens.iter().rev()) {
            *run = if *before == token { *run + 1 } else { 0 };
        }
        self.tokens.push(token);
    }

    /// Index of the first repeated token, if the text ends in a repetition. The first occurrence of
    /// the sequence is not included.
    pub(super) fn start(&self) -> Option<usize> {
        let repeats = |&(period, run): &(usize, &usize)| *run >= (TIMES * period).max(LEAST);
        let longest = (1..).zip(&self.runs).filter(repeats).map(|(_, &run)| run).max()?;
        Some(self.tokens.len() - longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(tokens: impl IntoIterator<Item = TokenId>) -> Option<usize> {
        let mut repeats = Repeats::default();
        tokens.into_iter().for_each(|token| repeats.push(token));
        repeats.start()
    }

    #[test]
    fn a_repeated_sequence_counts_from_its_second_occurrence() {
        let text = (0..50).chain((0..40).map(|at| 100 + at % 5));
        assert_eq!(start(text), Some(55));
        let whole_sentences = (0..10).chain((0..300).map(|at| 100 + at % 100));
        assert_eq!(start(whole_sentences), Some(110));
    }

    #[test]
    fn new_text_is_not_counted_as_repeated() {
        assert_eq!(start(0..500), None);
        assert_eq!(start((0..60).map(|at| at % 30)), None, "a sequence that came twice");
        assert_eq!(start([7; 20]), None, "a short line of dashes");
        let over = (0..60).map(|at| at % 3).chain([9]);
        assert_eq!(start(over), None, "a repetition that is over");
    }
}
