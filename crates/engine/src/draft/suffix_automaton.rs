//! Suffix automaton (Blumer et al. 1985) over a growing sequence of tokens: every substring with
//! its number of occurrences and the end of the last one. Extending it visits the longest suffixes
//! that occurred before; nothing is ever removed.

use std::collections::HashMap;

use foretoken_model::token::TokenId;

type StateId = u32;
const ROOT: StateId = 0;

/// Maximum number of suffixes per position that are counted and looked up, longest first. Only a
/// text that repeats in circles has as many; there the longest are informative enough, and the
/// others are undercounted. Without a bound, a token repeated n times takes n^2 / 2 steps.
const MAX_SUFFIXES: usize = 256;

/// Substrings with the same set of end positions. They are suffixes of the longest of them.
#[derive(Debug, Clone, Default)]
struct State {
    /// Length of the longest substring.
    length: usize,
    /// State of the longest suffix with more end positions.
    link: Option<StateId>,
    next: HashMap<TokenId, StateId>,
    /// Number of occurrences of the substrings.
    count: u32,
    /// Their last end position.
    last_end: usize,
}

#[derive(Debug, Clone)]
pub struct SuffixAutomaton {
    states: Vec<State>,
    whole: StateId,
}

/// Likely continuation of a substring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Continuation {
    pub token: TokenId,
    /// Occurrences of this continuation, and of all continuations.
    pub count: u32,
    pub total: u32,
    state: StateId,
}

impl Default for SuffixAutomaton {
    fn default() -> Self {
        Self { states: vec![State::default()], whole: ROOT }
    }
}

impl SuffixAutomaton {
    /// Appends a token.
    pub fn push(&mut self, token: TokenId) {
        let length = self.states[self.whole as usize].length + 1;
        let new = self.add(State { length, ..State::default() });
        let mut walk = Some(self.whole);
        while let Some(state) = walk.filter(|&s| !self.states[s as usize].next.contains_key(&token)) {
            self.states[state as usize].next.insert(token, new);
            walk = self.states[state as usize].link;
        }
        let link = walk.map_or(ROOT, |state| self.suffix_state(state, token));
        self.states[new as usize].link = Some(link);
        self.whole = new;
        self.count_suffixes(length);
    }

    /// Longest suffix of the sequence that occurred before.
    pub fn end(&self) -> Match {
        let link = self.states[self.whole as usize].link;
        let length = link.map_or(0, |state| self.states[state as usize].length);
        Match { state: link.unwrap_or(ROOT), length }
    }

    /// Suffixes of a match with their lengths, longest first, at most [`MAX_SUFFIXES`].
    pub fn suffixes(&self, matched: Match) -> impl Iterator<Item = (usize, Suffix)> {
        let mut walk = Some((matched.state, matched.length));
        std::iter::from_fn(move || {
            let (state, length) = walk.filter(|&(state, _)| state != ROOT)?;
            let link = self.states[state as usize].link;
            walk = link.map(|link| (link, self.states[link as usize].length));
            Some((length, Suffix(state)))
        })
        .take(MAX_SUFFIXES)
    }

    /// Longest suffix of another text that occurs here, after appending `token` to that text.
    pub fn extend(&self, matched: Match, token: TokenId) -> Match {
        let Match { mut state, mut length } = matched;
        loop {
            if let Some(&next) = self.states[state as usize].next.get(&token) {
                return Match { state: next, length: length + 1 };
            }
            let Some(link) = self.states[state as usize].link else { return Match::default() };
            (state, length) = (link, self.states[link as usize].length);
        }
    }

    /// Likeliest continuation, the most recent of equals; `None` if nothing ever followed.
    pub fn continuation(&self, suffix: Suffix) -> Option<Continuation> {
        let next = &self.states[suffix.0 as usize].next;
        let total: u32 = next.values().map(|&s| self.states[s as usize].count).sum();
        let rank = |&(_, &s): &(&TokenId, &StateId)| {
            let state = &self.states[s as usize];
            (state.count, state.last_end)
        };
        let (&token, &state) = next.iter().max_by_key(rank)?;
        Some(Continuation { token, count: self.states[state as usize].count, total, state })
    }

    fn add(&mut self, state: State) -> StateId {
        self.states.push(state);
        (self.states.len() - 1) as StateId
    }

    /// State whose longest substring is the longest of `state` followed by `token`, split off if
    /// necessary.
    fn suffix_state(&mut self, state: StateId, token: TokenId) -> StateId {
        let length = self.states[state as usize].length + 1;
        let old = self.states[state as usize].next[&token];
        if self.states[old as usize].length == length {
            return old;
        }
        let split = State { length, ..self.states[old as usize].clone() };
        let split = self.add(split);
        self.states[old as usize].link = Some(split);
        let mut walk = Some(state);
        while let Some(s) = walk.filter(|&s| self.states[s as usize].next.get(&token) == Some(&old)) {
            self.states[s as usize].next.insert(token, split);
            walk = self.states[s as usize].link;
        }
        split
    }

    fn count_suffixes(&mut self, end: usize) {
        let mut walk = self.whole;
        for _ in 0..MAX_SUFFIXES {
            let state = &mut self.states[walk as usize];
            state.count += 1;
            state.last_end = end;
            let Some(link) = state.link else { break };
            walk = link;
        }
    }
}

/// A substring of the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suffix(StateId);

/// Longest suffix of another text that is a substring of the sequence; empty by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Match {
    state: StateId,
    length: usize,
}

impl From<Continuation> for Suffix {
    fn from(continuation: Continuation) -> Self {
        Self(continuation.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn over(tokens: &[TokenId]) -> SuffixAutomaton {
        let mut automaton = SuffixAutomaton::default();
        tokens.iter().for_each(|&token| automaton.push(token));
        automaton
    }

    /// Followers of `suffix` in `tokens` with count and last end position, by brute force.
    fn followers(tokens: &[TokenId], suffix: &[TokenId]) -> HashMap<TokenId, (u32, usize)> {
        let mut found = HashMap::new();
        for (start, window) in tokens.windows(suffix.len() + 1).enumerate() {
            if window.starts_with(suffix) {
                let entry = found.entry(window[suffix.len()]).or_insert((0, 0));
                *entry = (entry.0 + 1, start + window.len());
            }
        }
        found
    }

    #[test]
    fn an_endless_word_is_counted_in_growing_steps() {
        const TOKENS: usize = 1 << 16;
        let automaton = over(&[7; TOKENS]);
        // No state is split here, so each counting step is in one of the counts.
        let steps: usize = automaton.states.iter().map(|state| state.count as usize).sum();
        assert!(steps <= MAX_SUFFIXES * TOKENS, "{steps}");
        let suffixes: Vec<_> = automaton.suffixes(automaton.end()).collect();
        assert_eq!(suffixes.len(), MAX_SUFFIXES);
        let (length, longest) = suffixes[0];
        let next = automaton.continuation(longest).unwrap();
        assert_eq!((length, next.token, next.count, next.total), (TOKENS - 1, 7, 1, 1));
    }

    proptest! {
        #[test]
        fn continuations_equal_those_of_a_full_search(tokens in prop::collection::vec(0u32..4, 1..60)) {
            let automaton = over(&tokens);
            for (length, suffix) in automaton.suffixes(automaton.end()) {
                let expected = followers(&tokens, &tokens[tokens.len() - length..]);
                let best = expected.iter().max_by_key(|(_, rank)| **rank).unwrap();
                let total: u32 = expected.values().map(|(count, _)| count).sum();
                let found = automaton.continuation(suffix).unwrap();
                prop_assert_eq!(found.token, *best.0);
                prop_assert_eq!((found.count, found.total), (best.1.0, total));
            }
        }

        #[test]
        fn the_longest_repeated_suffix_is_found(tokens in prop::collection::vec(0u32..3, 1..60)) {
            let occurs = |s: &[TokenId]| tokens.windows(s.len()).filter(|w| *w == s).count() > 1;
            let expected = (1..=tokens.len()).rev().find(|&l| occurs(&tokens[tokens.len() - l..]));
            let automaton = over(&tokens);
            let found = automaton.suffixes(automaton.end()).next().map(|(length, _)| length);
            prop_assert_eq!(found, expected);
        }
    }
}
