//! DRY ("don't repeat yourself", p-e-w 2024) as in llama.cpp: finds earlier occurrences of a text's
//! end and the tokens that followed. A token that would continue a repeated sequence of n tokens
//! loses multiplier x base^(n - allowed) from its logit, from n = allowed on.
//!
//! Occurrences are found by the last few tokens, so that text with little repetition costs almost
//! nothing. Of equal ones, the last [`MAX_OCCURRENCES`] count.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use foretoken_model::sampling::Sampling;
use foretoken_model::token::TokenId;

use super::tokens::PenaltyTokens;
use crate::context::After;

/// Maximum number of occurrences that are compared for one position.
const MAX_OCCURRENCES: usize = 256;

/// Number of tokens by which occurrences are found.
const KEY: usize = 4;

/// Logarithm of the largest 32-bit float, as in llama.cpp.
const LOG_OF_MAX: f32 = 88.722_84;

/// No position.
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub struct Repeats {
    multiplier: f32,
    base: f32,
    allowed: usize,
    reach: usize,
    /// Longest sequence that makes a difference.
    longest: usize,
    /// Last position by the hash of the tokens before it.
    last: HashMap<u64, u32>,
    /// For each position, the previous one with the same hash.
    before: Vec<u32>,
}

impl Repeats {
    pub fn new(sampling: &Sampling) -> Self {
        let allowed = sampling.dry_allowed_length.max(1) as usize;
        let base = sampling.dry_base;
        let exponent = if base > 1.000_001 { (LOG_OF_MAX / base.ln()) as usize } else { 0 };
        Self {
            multiplier: sampling.dry_multiplier,
            base,
            allowed,
            reach: usize::try_from(sampling.dry_penalty_last_n).unwrap_or(usize::MAX),
            longest: allowed.saturating_add(exponent),
            last: HashMap::new(),
            before: Vec::new(),
        }
    }

    pub fn clear(&mut self) {
        self.last.clear();
        self.before.clear();
    }

    fn key_length(&self) -> usize {
        self.allowed.min(KEY)
    }

    /// Adds the position after `text`; all earlier positions were added.
    pub fn push(&mut self, text: &[TokenId]) {
        let position = text.len() as u32;
        let before = text.len().checked_sub(self.key_length()).and_then(|start| {
            let key = key(text[start..].iter().copied());
            self.last.insert(key, position)
        });
        self.before.push(before.unwrap_or(NONE));
    }

    /// Tokens that would continue a repeated sequence at `after`, ascending, and their penalties.
    /// The first `read` positions of the text were added.
    pub fn at(&self, after: After<'_>, read: usize, tokens: &PenaltyTokens) -> Vec<(TokenId, f32)> {
        let end = after.position();
        let start = end.saturating_sub(self.reach);
        if end - start < self.allowed {
            return Vec::new();
        }
        let text = Whole(after);
        let mut occurrences = self.occurrences(&text, read, start).peekable();
        if occurrences.peek().is_none() {
            return Vec::new();
        }
        let most = self.since_breaker(&text, start, tokens);
        let mut found: Vec<(TokenId, usize)> = Vec::new();
        for other in occurrences.take(MAX_OCCURRENCES) {
            let most = most.min(other - start);
            let same = |&back: &usize| text.at(other - back) == text.at(end - back);
            let length = (1..=most).take_while(same).count();
            if length < self.allowed {
                continue;
            }
            let token = text.at(other);
            match found.iter_mut().find(|(other, _)| *other == token) {
                Some((_, longest)) => *longest = length.max(*longest),
                None => found.push((token, length)),
            }
        }
        found.sort_unstable_by_key(|&(token, _)| token);
        let penalty = |length: usize| self.multiplier * self.base.powi((length - self.allowed) as i32);
        found.into_iter().map(|(token, length)| (token, penalty(length))).collect()
    }

    /// Positions before the end with the same last tokens before them, latest first, from `start`
    /// on.
    fn occurrences<'a>(
        &'a self,
        text: &'a Whole<'a>,
        read: usize,
        start: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let (end, length) = (text.0.position(), self.key_length());
        let first = start + length;
        let read = read.min(self.before.len()).min(text.0.text.len());
        let same =
            move |position: &usize| (1..=length).all(|back| text.at(position - back) == text.at(end - back));
        let beyond = (first.max(read + 1)..end).rev().filter(same);
        let wanted = key((end - length..end).map(|position| text.at(position)));
        let mut walk = self.last.get(&wanted).copied();
        let known = std::iter::from_fn(move || {
            let position = walk.filter(|&position| position as usize >= first)?;
            walk = Some(self.before[position as usize - 1]).filter(|&before| before != NONE);
            Some(position as usize)
        });
        // The position itself is skipped, and others with the same hash may have other tokens.
        beyond.chain(known.filter(move |&position| position < end).filter(same))
    }

    /// Number of tokens since the last sequence breaker, as far as it makes a difference.
    fn since_breaker(&self, text: &Whole<'_>, start: usize, tokens: &PenaltyTokens) -> usize {
        let end = text.0.position();
        let most = self.longest.min(end - start);
        // A breaker of several tokens may begin before the range.
        let far = (most + tokens.longest_tail()).min(end - start);
        (0..far)
            .find_map(|back| Some(back - tokens.breaks(end - 1 - back, end, |at| text.at(at))?))
            .map_or(most, |since| since.min(most))
    }
}

/// Text and guesses as one sequence.
struct Whole<'a>(After<'a>);

impl Whole<'_> {
    fn at(&self, position: usize) -> TokenId {
        let After { text, guesses } = self.0;
        if position < text.len() { text[position] } else { guesses[position - text.len()] }
    }
}

fn key(tokens: impl Iterator<Item = TokenId>) -> u64 {
    let mut hasher = DefaultHasher::new();
    tokens.for_each(|token| token.hash(&mut hasher));
    hasher.finish()
}
