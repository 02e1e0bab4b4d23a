//! What a draft head has heard of a text, and what of it is in its cache.

use super::beginning::Beginning;
use crate::context::{Context, Mark};
use crate::error::Result;
use crate::forward::{Carried, Features, Model, Want};
use crate::token::TokenId;
use crate::tree::TokenTree;

/// Rows that wait for the next draft to be run with it: more are run as they are heard.
const AT_ONCE: usize = 16;

/// See the module. Row `p` of the cache is of token `p + 1`, so that one is run as soon as the token after it is known.
pub(super) struct Hearing {
    pub model: Box<dyn Model>,
    /// Numbers of a token's features.
    width: usize,
    /// The tokens whose features were heard.
    heard: Vec<TokenId>,
    /// The features of the last of them: all that are not run, and mostly that of the last, without which there is no
    /// draft.
    waiting: Vec<f32>,
    /// Of the context, as it was when its beginning was last compared with what was heard, and how much they had in
    /// common.
    compared: (Mark, usize),
}

impl Hearing {
    pub fn new(model: Box<dyn Model>, width: usize) -> Self {
        Self { model, width, heard: Vec::new(), waiting: Vec::new(), compared: Default::default() }
    }

    pub fn forget(&mut self) {
        self.model.truncate(0);
        self.heard.clear();
        self.waiting.clear();
        self.compared = Default::default();
    }

    /// Of the last of the tokens heard so many have features that wait.
    fn rows(&self) -> usize {
        self.waiting.len() / self.width
    }

    /// Takes in what the target ran from position `at` on. What does not follow what was heard before is not heard.
    ///
    /// # Errors
    /// Those of running the head.
    pub fn hear(&mut self, at: usize, tokens: &[TokenId], features: Option<Features<'_>>) -> Result<()> {
        self.cut(at);
        let (Some(features), Some(&first)) = (features, tokens.first()) else { return Ok(()) };
        if self.heard.len() < at || (at > 0 && !self.joins(at, first)) {
            self.heard.truncate(at.saturating_sub(1));
            return Ok(());
        }
        self.heard.extend_from_slice(tokens);
        (0..tokens.len()).for_each(|row| self.waiting.extend_from_slice(features.row(row)));
        if self.rows() > AT_ONCE { self.run_waiting() } else { Ok(()) }
    }

    /// Forgets all but the first `length` tokens.
    fn cut(&mut self, length: usize) {
        let gone = self.heard.len().saturating_sub(length);
        self.waiting.truncate(self.rows().saturating_sub(gone) * self.width);
        self.heard.truncate(length);
        self.model.truncate(self.heard.len());
    }

    /// Whether the row of the last of the first `at` tokens, all of which were heard, is that with `next` after it, or
    /// can be run so; one with another token is forgotten.
    fn joins(&mut self, at: usize, next: TokenId) -> bool {
        let same = self.model.cached().get(at - 1) == Some(&next);
        if !same {
            self.model.truncate(at - 1);
        }
        same || self.rows() > 0
    }

    /// Runs what waits, but for the last token, of which it is not known what follows it.
    fn run_waiting(&mut self) -> Result<()> {
        let (run, end) = (self.model.cached().len(), self.heard.len() - 1);
        let first = self.heard.len() - self.rows();
        let tree = TokenTree::chain(self.heard[run + 1..=end].iter().copied());
        let rows = &self.waiting[(run - first) * self.width..(end - first) * self.width];
        if !tree.is_empty() {
            let carried = Carried::Target(Features::new(rows, self.width));
            drop(self.model.run(&tree, &Want::nothing().carrying(carried))?);
        }
        self.waiting.drain(..(end - first) * self.width);
        Ok(())
    }

    /// Tokens at the end of `context`, less the last, that it would have to hear to draft after it.
    pub fn deaf(&self, context: &Context) -> usize {
        let (known, same) = (context.len().saturating_sub(1), self.common(context));
        let gone = self.heard.len() - same;
        let has_features = self.rows() > gone;
        let is_run = same < known && same > 0 && self.model.cached().get(same - 1) == Some(&context[same]);
        let heard = if same == 0 || has_features || is_run { same } else { same - 1 };
        known - heard
    }

    /// How many of the tokens heard `context` begins with, and one follows.
    fn common(&self, context: &Context) -> usize {
        let (mark, same) = self.compared;
        let known = context.unchanged_since(mark).min(same).min(self.heard.len());
        context.common(&self.heard, known).min(context.len().saturating_sub(1))
    }

    /// The beginning of a draft after `context`, of which it is not [deaf](Self::deaf): what is not run of it, of which
    /// the last row always is some; `None` where there is nothing to draft from.
    pub fn begin(&mut self, context: &Context) -> Option<Beginning<'_>> {
        let same = self.common(context);
        self.compared = (context.mark(), same);
        self.cut(same);
        if same + 1 != context.len() || self.rows() == 0 {
            return None;
        }
        self.joins(same, context[same]);
        let run = self.model.truncate(self.model.cached().len().min(same - 1));
        self.waiting.drain(..(self.rows() - (same - run)) * self.width);
        let tree = TokenTree::chain(context[run + 1..].iter().copied());
        let carried = Carried::Target(Features::new(&self.waiting, self.width));
        Some(Beginning { model: self.model.as_mut(), text: tree.len(), tree, carried })
    }
}
