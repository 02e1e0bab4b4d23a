//! A pass that has been: what it gives, and what stays of it. What a model does for that is [`Runner`].

use super::Model;
use super::features::{Carried, Features, Taps};
use super::logits::{Logits, Row};
use super::want::Want;
use crate::error::{Error, Result};
use crate::model::ModelConfig;
use crate::token::TokenId;
use crate::tree::TokenTree;

/// A model's part in its passes: what [`Model::run`] is made of.
pub trait Runner: Model {
    /// Runs the nodes of `tree` from number `first` on and caches them; the ones before are the last tokens
    /// cached. That the tree has room and the vocabulary its tokens has been seen to.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails. The cache is unchanged.
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()>;

    /// Those that the last [`Self::extend`] was asked for.
    fn logits(&self) -> Logits<'_>;

    /// Row `row` of [`Self::logits`] where the token `before` stands before the place it scores, and how sure of it the
    /// model then is, 0 to 1, if it tells.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn row_after(&mut self, row: usize, _before: TokenId) -> Result<(Row<'_>, Option<f32>)> {
        Ok((self.logits().row(row), None))
    }

    /// Those that the last [`Self::extend`] was asked for, if it was.
    fn features(&self) -> Option<Features<'_>>;

    /// Of the last `nodes` cached tokens keeps those on `path` (ascending, counted from the first of them)
    /// and forgets the others: just these and nothing before them, whatever [`Model::truncate`] can do.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn keep(&mut self, nodes: usize, path: &[usize]) -> Result<()>;
}

/// A pass over a tree of tokens. Borrows the model: there is no other before this one is over.
///
/// What stays cached is said by [`Self::keep`]. Dropped without it, all of a chain stays, since each of its
/// tokens follows the one before; of a tree with branches nothing does, since they are no text.
pub struct Pass<'a> {
    runner: &'a mut dyn Runner,
    /// Nodes of the tree, all of them cached.
    nodes: usize,
    /// What is cached is a text as it is.
    is_text: bool,
}

impl<'a> Pass<'a> {
    /// Runs `tree` after what `runner` has cached.
    ///
    /// # Errors
    /// Those of [`Model::run`].
    pub fn run(runner: &'a mut dyn Runner, tree: &TokenTree, want: &Want<'_>) -> Result<Self> {
        Self { runner, nodes: 0, is_text: true }.grow(tree, want)
    }

    /// Goes on with this pass: `tree` begins with its nodes and has more, which are run and counted to it.
    ///
    /// # Errors
    /// Those of [`Model::run`]. What was run before is then treated as dropped.
    ///
    /// # Panics
    /// If the tree does not begin with this pass's nodes, or a draft head is not given what it needs.
    pub fn grow(mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Self> {
        let start = self.start();
        let own = &self.runner.cached()[start..];
        assert!(tree.tokens().take(own.len()).eq(own.iter().copied()), "another pass's tree");
        admit(tree, want, self.runner.config(), start, tree.len() - self.nodes)?;
        self.runner.extend(tree, self.nodes, want)?;
        self.nodes = tree.len();
        self.is_text = tree.is_chain();
        Ok(self)
    }

    /// Of the nodes in [`Want::rows`] that the last [`Self::run`] or [`Self::grow`] ran: row `i` scores what may
    /// follow the `i`th of them.
    pub fn logits(&self) -> Logits<'_> {
        self.runner.logits()
    }

    /// Row `row` of [`Self::logits`] where the token `before` stands before the place it scores, and how sure the model
    /// is of it, 0 to 1, if it tells. In a draft head that guesses blocks the one may depend on the other.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn row_after(&mut self, row: usize, before: TokenId) -> Result<(Row<'_>, Option<f32>)> {
        self.runner.row_after(row, before)
    }

    /// Of all nodes that the last [`Self::run`] or [`Self::grow`] ran, in their order; `None` where none were
    /// wanted.
    pub fn features(&self) -> Option<Features<'_>> {
        self.runner.features()
    }

    /// [`Model::experts_read`] of the last [`Self::run`] or [`Self::grow`].
    pub fn experts_read(&self) -> Option<f64> {
        self.runner.experts_read()
    }

    /// Of the pass's nodes keeps those on `path` (indices, ascending, each the child of the one before) and
    /// forgets the others.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn keep(mut self, path: &[usize]) -> Result<()> {
        self.runner.keep(self.nodes, path)?;
        self.is_text = true;
        Ok(())
    }

    /// Tokens that were cached before the pass.
    fn start(&self) -> usize {
        self.runner.cached().len() - self.nodes
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.is_text {
            self.runner.truncate(self.start());
        }
    }
}

/// Whether a model with `cached` tokens can run `tree`, of which `new` nodes were not run before, and give what is
/// wanted.
fn admit(tree: &TokenTree, want: &Want<'_>, config: &ModelConfig, cached: usize, new: usize) -> Result<()> {
    let vocabulary = config.tokens();
    if let Some(token) = tree.tokens().find(|&token| token as usize >= vocabulary) {
        return Err(Error::UnknownToken { token, vocabulary });
    }
    let (found, limit) = (cached + tree.len(), config.context);
    if found > limit {
        return Err(Error::PromptTooLong { found, limit });
    }
    if let Some(Taps { entering, cached, .. }) = want.features {
        let ascending = entering.is_sorted_by(|left, right| left < right);
        let there = entering.last().is_none_or(|&last| last <= config.layers);
        assert!(ascending && there, "the states entering {entering:?} of {} layers", config.layers);
        let has = cached.iter().all(|&layer| config.cached_heads(layer) > 0);
        assert!(has, "the keys of layers {cached:?}, of which some cache none");
    }
    let carried = want.carried.map(|carried| (carried.features().len(), carried.features().width()));
    let needed = config.draft_head.as_ref().filter(|_| new > 0).and_then(|head| match want.carried {
        Some(Carried::Target(_)) => Some((new, head.states())),
        // A block is guessed from what was carried before.
        _ if head.block.is_some() => None,
        _ => Some((new, config.carried())),
    });
    assert!(carried == needed, "{carried:?} carried where it should be {needed:?}");
    let whole = tree.is_chain() && new == tree.len() && (carried.is_none() || want.rows.is_empty());
    assert!(
        config.block().is_none() || whole,
        "a block is guessed as a whole, and a text's rows guess nothing"
    );
    Ok(())
}
