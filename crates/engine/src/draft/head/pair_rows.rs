//! Text rows of an EAGLE-3 or MTP head: observed tokens, pending features and the head's cache.

use foretoken_forward::tree::TokenTree;
use foretoken_forward::{Features, HeadInput, Model, Want};
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use super::start::DraftStart;
use crate::context::{Context, Mark};
use crate::draft::ParkedHead;

/// Maximum number of pending rows that are run with the next draft; more are run immediately.
const AT_ONCE: usize = 16;

/// See the module. Row `p` of the cache holds token `p + 1`, so a row is run once the next token is
/// known.
pub(super) struct PairRows {
    pub model: Box<dyn Model>,
    /// Features per token.
    width: usize,
    /// Tokens whose features were observed.
    observed: Vec<TokenId>,
    /// Features of the last observed tokens: all that are not run, and usually the last one's,
    /// which a draft needs.
    waiting: Vec<f32>,
    /// Mark of the context at the last comparison with the observed tokens, and the length of their
    /// common prefix.
    compared: (Mark, usize),
}

impl PairRows {
    pub fn new(model: Box<dyn Model>, width: usize) -> Self {
        Self { model, width, observed: Vec::new(), waiting: Vec::new(), compared: Default::default() }
    }

    pub fn forget(&mut self) {
        self.model.truncate(0);
        self.observed.clear();
        self.waiting.clear();
        self.compared = Default::default();
    }

    pub fn park(&self) -> Option<ParkedHead> {
        let (observed, waiting) = (self.observed.clone(), self.waiting.clone());
        Some(ParkedHead { model: self.model.park()?, observed, waiting, state: Vec::new() })
    }

    pub fn resume(&mut self, parked: &ParkedHead) {
        self.forget();
        if parked.waiting.len().is_multiple_of(self.width) && self.model.resume(&parked.model) {
            self.observed.clone_from(&parked.observed);
            self.waiting.clone_from(&parked.waiting);
        }
    }

    /// Number of pending rows, which belong to the last observed tokens.
    fn rows(&self) -> usize {
        self.waiting.len() / self.width
    }

    /// Observes what the target ran from position `at` on. Tokens that leave a gap are ignored.
    ///
    /// # Errors
    /// Errors of running the head.
    pub fn observe(&mut self, at: usize, tokens: &[TokenId], features: Option<Features<'_>>) -> Result<()> {
        self.cut(at);
        let (Some(features), Some(&first)) = (features, tokens.first()) else { return Ok(()) };
        if self.observed.len() < at || (at > 0 && !self.joins(at, first)) {
            self.observed.truncate(at.saturating_sub(1));
            return Ok(());
        }
        self.observed.extend_from_slice(tokens);
        (0..tokens.len()).for_each(|row| self.waiting.extend_from_slice(features.row(row)));
        if self.rows() > AT_ONCE { self.run_waiting() } else { Ok(()) }
    }

    /// Drops all but the first `length` tokens.
    fn cut(&mut self, length: usize) {
        let gone = self.observed.len().saturating_sub(length);
        self.waiting.truncate(self.rows().saturating_sub(gone) * self.width);
        self.observed.truncate(length);
        self.model.truncate(self.observed.len());
    }

    /// Returns true if the row of token `at - 1` was run with `next` after it, or can still be run
    /// so. A row run with another token is dropped. The first `at` tokens must have been observed.
    fn joins(&mut self, at: usize, next: TokenId) -> bool {
        let same = self.model.cached().get(at - 1) == Some(&next);
        if !same {
            self.model.truncate(at - 1);
        }
        same || self.rows() > 0
    }

    /// Runs the pending rows except the last, whose next token is unknown.
    fn run_waiting(&mut self) -> Result<()> {
        let (run, end) = (self.model.cached().len(), self.observed.len() - 1);
        let first = self.observed.len() - self.rows();
        let tree = TokenTree::chain(self.observed[run + 1..=end].iter().copied());
        let rows = &self.waiting[(run - first) * self.width..(end - first) * self.width];
        if !tree.is_empty() {
            let head_input = HeadInput::Target(Features::new(rows, self.width));
            drop(self.model.run(&tree, &Want::nothing().head_input(head_input))?);
        }
        self.waiting.drain(..(end - first) * self.width);
        Ok(())
    }

    /// Number of tokens at the end of `context`, without the last, whose features are missing.
    pub fn missing_features(&self, context: &Context) -> usize {
        let (known, same) = (context.len().saturating_sub(1), self.common(context));
        let gone = self.observed.len() - same;
        let has_features = self.rows() > gone;
        let is_run = same < known && same > 0 && self.model.cached().get(same - 1) == Some(&context[same]);
        let observed = if same == 0 || has_features || is_run { same } else { same - 1 };
        known - observed
    }

    /// Length of the common prefix of the observed tokens and `context`, leaving at least one token
    /// of `context`.
    fn common(&self, context: &Context) -> usize {
        let (mark, same) = self.compared;
        let known = context.unchanged_since(mark).min(same).min(self.observed.len());
        context.common(&self.observed, known).min(context.len().saturating_sub(1))
    }

    /// Starts a draft after `context`: the rows still to run, at least the last. `None` if features
    /// are [missing](Self::missing_features).
    pub fn begin(&mut self, context: &Context) -> Option<DraftStart<'_>> {
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
        let head_input = HeadInput::Target(Features::new(&self.waiting, self.width));
        Some(DraftStart { model: self.model.as_mut(), text: tree.len(), tree, head_input })
    }
}
