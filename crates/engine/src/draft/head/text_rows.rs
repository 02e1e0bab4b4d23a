//! Text rows of a head that has one row per token of the text: a block head, or an assistant that
//! reads the target's cache.
//!
//! No row depends on a guess, so rows are dropped only when the text itself changes.

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, HeadInput, Model, Want};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::start::DraftStart;
use crate::context::{Context, Mark};
use crate::draft::ParkedHead;

/// Maximum number of pending rows that are run with the next draft; more are run immediately.
const AT_ONCE: usize = 16;

/// See the module.
pub(super) struct TextRows {
    pub model: Box<dyn Model>,
    /// Features per token.
    width: usize,
    /// Tokens whose features were observed.
    observed: Vec<TokenId>,
    /// Features of the last observed tokens, whose rows are not run.
    waiting: Vec<f32>,
    /// State that an assistant's draft begins with, or features that a block begins with
    /// (LiLiCorr), of the last observed token; empty if they were dropped.
    state: Vec<f32>,
    /// Width of this state; 0 for other block heads, which have none.
    state_width: usize,
    /// Mark of the context at the last comparison with the observed tokens, and the length of their
    /// common prefix.
    compared: (Mark, usize),
}

impl TextRows {
    pub fn new(model: Box<dyn Model>, width: usize, state_width: usize) -> Self {
        let (observed, waiting, state) = (Vec::new(), Vec::new(), Vec::new());
        Self { model, width, observed, waiting, state, state_width, compared: Default::default() }
    }

    /// Drops all but the first `length` tokens and all rows of a block.
    pub fn cut(&mut self, length: usize) {
        let run = self.observed.len() - self.waiting.len() / self.width;
        let left = self.model.truncate(run.min(length));
        // If the model rewound further, the rows before the pending ones are missing.
        let length = if left < run.min(length) { left } else { length };
        if length < self.observed.len() {
            self.state.clear();
        }
        self.observed.truncate(length);
        self.waiting.truncate(self.observed.len().saturating_sub(run) * self.width);
        self.compared.1 = self.compared.1.min(length);
    }

    pub fn park(&self) -> Option<ParkedHead> {
        let (observed, waiting) = (self.observed.clone(), self.waiting.clone());
        Some(ParkedHead { model: self.model.park()?, observed, waiting, state: self.state.clone() })
    }

    pub fn resume(&mut self, parked: &ParkedHead) {
        self.cut(0);
        self.compared = Default::default();
        if parked.waiting.len().is_multiple_of(self.width) && self.model.resume(&parked.model) {
            self.observed.clone_from(&parked.observed);
            self.waiting.clone_from(&parked.waiting);
            self.state.clone_from(&parked.state);
        }
    }

    /// Observes what the target ran from position `at` on. Tokens that leave a gap are ignored.
    ///
    /// # Errors
    /// Errors of running the head.
    pub fn observe(&mut self, at: usize, tokens: &[TokenId], features: Option<Features<'_>>) -> Result<()> {
        self.cut(at);
        let Some(features) = features.filter(|_| self.observed.len() == at) else { return Ok(()) };
        self.observed.extend_from_slice(tokens);
        (0..tokens.len()).for_each(|row| self.waiting.extend_from_slice(features.row(row)));
        if let Some(last) = tokens.len().checked_sub(1) {
            self.state = features.row(last)[..self.state_width].to_vec();
        }
        if self.waiting.len() > AT_ONCE * self.width { self.run() } else { Ok(()) }
    }

    /// Runs the pending rows.
    fn run(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            let rows = Features::new(&self.waiting, self.width);
            let tree = TokenTree::chain(self.observed[self.observed.len() - rows.len()..].iter().copied());
            drop(self.model.run(&tree, &Want::nothing().head_input(HeadInput::Target(rows)))?);
            self.waiting.clear();
        }
        Ok(())
    }

    /// Number of tokens at the end of `context`, without the last, whose features are missing.
    pub fn missing_features(&self, context: &Context) -> usize {
        let (known, same) = (context.len().saturating_sub(1), self.common(context));
        // The initial state may have been dropped.
        let lost = same == known && same > 0 && !self.has_state(same);
        known - if lost { same - 1 } else { same }
    }

    /// Returns true if the initial state after `length` observed tokens is available or not needed.
    fn has_state(&self, length: usize) -> bool {
        self.state_width == 0 || length == self.observed.len() && !self.state.is_empty()
    }

    /// Length of the common prefix of the observed tokens and `context`, leaving at least one token
    /// of `context`.
    fn common(&self, context: &Context) -> usize {
        let (mark, same) = self.compared;
        let known = context.unchanged_since(mark).min(same).min(self.observed.len());
        context.common(&self.observed, known).min(context.len().saturating_sub(1))
    }

    /// Starts a token-by-token draft after `context`. `None` if features are missing.
    ///
    /// # Errors
    /// Errors of running the head.
    pub fn begin(&mut self, context: &Context) -> Result<Option<DraftStart<'_>>> {
        if !self.ready(context)? || self.state.is_empty() {
            return Ok(None);
        }
        let (model, tree) = (self.model.as_mut(), TokenTree::chain([context[context.len() - 1]]));
        let head_input = HeadInput::Own(Features::new(&self.state, self.state_width));
        Ok(Some(DraftStart { model, tree, head_input, text: 0 }))
    }

    /// State of the last observed token; empty if it was dropped.
    pub fn state(&self) -> &[f32] {
        &self.state
    }

    /// Prepares to draft the block that starts with the last token of `context`. Returns false if
    /// features are missing.
    ///
    /// # Errors
    /// Errors of running the head.
    pub fn ready(&mut self, context: &Context) -> Result<bool> {
        let same = self.common(context);
        self.cut(same);
        self.compared = (context.mark(), same);
        let complete = same + 1 == context.len() && self.has_state(same);
        if complete {
            self.run()?;
        }
        Ok(complete)
    }
}
