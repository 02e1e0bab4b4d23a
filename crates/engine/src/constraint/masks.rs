//! Masks of a reply's positions: the tokens that may follow its text and guesses after it.

use std::collections::HashMap;
use std::sync::Arc;

use foretoken_grammar::{Cursor, Grammars, Mask};
use foretoken_model::Tokenizer;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::Constraint;
use super::opening::Opening;
use crate::accept::Guesses;
use crate::context::After;

/// See the module. A mask depends on the tokens before it alone, whatever was drafted.
pub struct Masks {
    cursor: Cursor,
    /// Tokens that end the reply.
    ends: Vec<TokenId>,
    phase: Phase,
    /// Length of the text that was followed.
    read: usize,
    /// Masks after paths of guesses that follow this text.
    known: HashMap<Vec<TokenId>, Arc<Mask>>,
}

/// Part of the reply at the end of the text.
enum Phase {
    /// The reply's first token decides whether it reasons.
    First(Opening),
    /// The model reasons; the last tokens may begin the end of that.
    Reasoning(Opening, Vec<TokenId>),
    Constrained,
}

impl Masks {
    /// Compiles the grammar for a reply to `prompt`.
    ///
    /// # Errors
    /// As [`Grammars::begin`].
    pub fn begin(
        grammars: &Arc<Grammars>,
        constraint: &Constraint,
        prompt: &[TokenId],
        tokenizer: &Tokenizer,
    ) -> Result<Self> {
        let opening = constraint.thinking.and_then(|tags| Opening::after(prompt, tokenizer, tags));
        Ok(Self {
            cursor: grammars.begin(&constraint.grammar)?,
            ends: tokenizer.ends().to_vec(),
            phase: match opening {
                None => Phase::Constrained,
                Some(opening) if opening.open.is_some() => Phase::First(opening),
                Some(opening) => Phase::Reasoning(opening, Vec::new()),
            },
            read: prompt.len(),
            known: HashMap::new(),
        })
    }

    /// Processes the new tokens of `text`.
    pub fn follow(&mut self, text: &[TokenId]) {
        let new = &text[self.read..];
        if new.is_empty() {
            return;
        }
        self.known.clear();
        self.read = text.len();
        if let Some(start) = self.start(new) {
            self.cursor.extend(&new[start..]);
            self.phase = Phase::Constrained;
            return;
        }
        self.phase = match std::mem::replace(&mut self.phase, Phase::Constrained) {
            Phase::First(opening) => Phase::Reasoning(opening, new.to_vec()),
            Phase::Reasoning(opening, last) => {
                let all = [&last, new].concat();
                let last = all[all.len().saturating_sub(opening.close.len())..].to_vec();
                Phase::Reasoning(opening, last)
            }
            Phase::Constrained => Phase::Constrained,
        };
    }

    /// Number of tokens of a path before the grammar begins; `None` if the model reasons after all
    /// of it.
    fn start(&self, path: &[TokenId]) -> Option<usize> {
        match &self.phase {
            Phase::Constrained => Some(0),
            Phase::First(opening) if path.first() != opening.open.as_ref() => Some(0),
            Phase::First(opening) => opening.end(path),
            Phase::Reasoning(opening, last) => {
                opening.end(&[last, path].concat()).map(|end| end - last.len())
            }
        }
    }

    /// Mask at `after`, whose text begins with the one that was [followed](Self::follow).
    ///
    /// # Errors
    /// As [`Cursor::masks`].
    pub fn at(&mut self, after: After<'_>) -> Result<Arc<Mask>> {
        let path = self.path(after);
        if !self.known.contains_key(&path) {
            self.learn(std::slice::from_ref(&path))?;
        }
        // A path that is not allowed can only end.
        Ok(self.known.get(&path).map_or_else(|| Arc::new(Mask::only(self.ends.clone())), Arc::clone))
    }

    /// The only token that may follow `after`, unless the reply has ended.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn forced(&mut self, after: After<'_>) -> Result<Option<TokenId>> {
        let ended = self.path(after).iter().any(|token| self.ends.contains(token));
        if ended { Ok(None) } else { Ok(self.at(after)?.forced()) }
    }

    /// Drops certain guesses at `after` that are not allowed, with all that follows them. Drawn
    /// ones stay: the fate of a drawn token must not depend on it.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn cut(&mut self, after: After<'_>, guesses: Guesses) -> Result<Guesses> {
        let before = self.path(after);
        let path = |guess: Option<usize>| [&before[..], &guesses.path(guess)].concat();
        let leaves =
            (0..guesses.len()).filter(|&guess| guesses.iter().all(|other| other.parent != Some(guess)));
        let paths: Vec<Vec<TokenId>> = leaves.map(|guess| path(Some(guess))).collect();
        self.learn(&paths)?;
        let allows = |parent: Option<usize>, token: TokenId| {
            self.known.get(&path(parent)).is_some_and(|mask| mask.allows(token))
        };
        let kept: Vec<bool> = guesses
            .iter()
            .map(|guess| guess.drawn_from.is_some() || allows(guess.parent, guess.token))
            .collect();
        Ok(guesses.retained(&kept))
    }

    /// Tokens of `after` that follow the text.
    fn path(&self, after: After<'_>) -> Vec<TokenId> {
        [&after.text[self.read..], after.guesses].concat()
    }

    /// Finds the masks along `paths`, up to a token that is not allowed.
    fn learn(&mut self, paths: &[Vec<TokenId>]) -> Result<()> {
        let mut constrained: Vec<(&[TokenId], &[TokenId])> = Vec::new();
        for path in paths {
            let start = self.start(path);
            constrained.extend(start.map(|start| path.split_at(start)));
            for length in 0..start.unwrap_or(path.len() + 1) {
                let mask = Arc::new(self.while_reasoning(&path[..length]));
                self.known.insert(path[..length].to_vec(), mask);
            }
        }
        let first = if let Phase::First(opening) = &self.phase { opening.open } else { None };
        if first.is_some() {
            constrained.push((&[], &[]));
        }
        if constrained.is_empty() {
            return Ok(());
        }
        let asked: Vec<&[TokenId]> = constrained.iter().map(|&(_, path)| path).collect();
        for ((before, path), masks) in constrained.iter().zip(self.cursor.masks(&asked)?) {
            let mut along = before.to_vec();
            for (depth, mask) in masks.into_iter().enumerate() {
                let next = path.get(depth).copied().or(mask.forced());
                let mask = match first.filter(|_| along.is_empty()) {
                    Some(open) => Arc::new(mask.and(open)),
                    None => mask,
                };
                self.known.insert(along.clone(), mask);
                along.extend(next);
            }
        }
        Ok(())
    }

    /// Mask within the reasoning, after `path`: anything but the end of the reply.
    fn while_reasoning(&self, path: &[TokenId]) -> Mask {
        let last = match &self.phase {
            Phase::Reasoning(opening, last) => opening.last_of_close(&[last, path].concat()),
            Phase::First(opening) => opening.last_of_close(path),
            Phase::Constrained => None,
        };
        last.map_or_else(|| Mask::all_but(self.ends.clone()), |last| Mask::only(vec![last]))
    }
}
