//! A finished pass: its outputs, and the choice of what stays cached. [`Runner`] is the model's
//! side.

use foretoken_model::error::{Error, Result};
use foretoken_model::token::{TokenId, is_media};

use super::Model;
use super::block_state::BlockState;
use super::features::{Features, HeadInput, Taps};
use super::logits::{Logits, Row};
use super::media::Media;
use super::want::Want;
use crate::tree::TokenTree;

/// The model's side of its passes, which [`Model::run`] is built on.
pub trait Runner: Model {
    /// Runs and caches the nodes of `tree` from index `first` on; the nodes before are the last
    /// cached tokens. The caller has checked the tree's length and its token ids.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails. The cache is unchanged.
    fn extend(&mut self, tree: &TokenTree, first: usize, want: &Want<'_>) -> Result<()>;

    /// Table of pictures whose ids may stand in texts, if any.
    fn media(&self) -> Option<&Media> {
        None
    }

    /// Logits that the last [`Self::extend`] was asked for.
    fn logits(&self) -> Logits<'_>;

    /// State before the tokens of the block that the last [`Self::extend`] ran. `anchor`: the
    /// target's states for the token before the block, if the head [reads
    /// them](foretoken_model::BlockHead::lilicorr) once more.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn begin_block(&mut self, _anchor: Option<Features<'_>>) -> Result<BlockState> {
        Ok(BlockState::default())
    }

    /// State of a block after `state` and another `token`.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        Ok(state.after(token, Vec::new()))
    }

    /// Row `row` of [`Self::logits`], given the block's tokens before the position it scores. Also
    /// returns the head's confidence in it, 0 to 1, if it has one.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn row_after(&mut self, row: usize, _state: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        Ok((self.logits().row(row), None))
    }

    /// Hidden states that the last [`Self::extend`] was asked for, if any.
    fn features(&self) -> Option<Features<'_>>;

    /// Keeps those of the last `nodes` cached tokens that are on `path` (ascending indices from the
    /// first of them) and drops the others. Tokens before them stay, whatever [`Model::truncate`]
    /// can rewind to.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn keep(&mut self, nodes: usize, path: &[usize]) -> Result<()>;
}

/// A pass over a tree of tokens. Borrows the model, so that no other pass can begin before this one
/// ends.
///
/// [`Self::keep`] decides what stays cached. A pass that is dropped without it keeps a whole chain,
/// whose tokens form a text, and nothing of a tree with branches.
pub struct Pass<'a> {
    runner: &'a mut dyn Runner,
    /// Nodes of the tree, all cached.
    nodes: usize,
    /// The cached tokens form one text, without branches.
    is_text: bool,
}

impl<'a> Pass<'a> {
    /// Runs `tree` after the tokens that `runner` has cached.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn run(runner: &'a mut dyn Runner, tree: &TokenTree, want: &Want<'_>) -> Result<Self> {
        Self { runner, nodes: 0, is_text: true }.grow(tree, want)
    }

    /// Continues this pass: `tree` begins with the pass's nodes; its further nodes run now and join
    /// them.
    ///
    /// # Errors
    /// As [`Model::run`]. The earlier part of the pass then counts as dropped.
    ///
    /// # Panics
    /// If the tree does not begin with this pass's nodes, or a draft head's required input is
    /// missing.
    pub fn grow(mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Self> {
        let start = self.start();
        let own = &self.runner.cached()[start..];
        assert!(tree.tokens().take(own.len()).eq(own.iter().copied()), "another pass's tree");
        admit(self.runner, tree, want, start, tree.len() - self.nodes)?;
        self.runner.extend(tree, self.nodes, want)?;
        self.nodes = tree.len();
        self.is_text = tree.is_chain();
        Ok(self)
    }

    /// Logits of the nodes in [`Want::rows`] that the last [`Self::run`] or [`Self::grow`] ran. Row
    /// `i` scores the token after the `i`th of them.
    pub fn logits(&self) -> Logits<'_> {
        self.runner.logits()
    }

    /// State before the tokens of the block that the pass ran. `anchor`: the target's states for
    /// the token before the block, if the head [reads
    /// them](foretoken_model::BlockHead::lilicorr) once more.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn begin_block(&mut self, anchor: Option<Features<'_>>) -> Result<BlockState> {
        self.runner.begin_block(anchor)
    }

    /// State of a block after `state` and another `token`, first the text's last one.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        self.runner.next_state(state, token)
    }

    /// Row `row` of [`Self::logits`], given the block's tokens before the position it scores. Also
    /// returns the head's confidence in it, 0 to 1, if it has one. Both can depend on these tokens
    /// in heads that draft blocks.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn row_after(&mut self, row: usize, state: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        self.runner.row_after(row, state)
    }

    /// Hidden states of all nodes that the last [`Self::run`] or [`Self::grow`] ran, in order;
    /// `None` if none were requested.
    pub fn features(&self) -> Option<Features<'_>> {
        self.runner.features()
    }

    /// Value of [`Model::experts_read`] for the last [`Self::run`] or [`Self::grow`].
    pub fn experts_read(&self) -> Option<f64> {
        self.runner.experts_read()
    }

    /// Keeps the nodes on `path` (ascending indices, each the child of the one before) and drops
    /// the pass's other nodes.
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

/// Checks that `runner` with `cached` tokens can run `tree` with its `new` nodes and return what is
/// requested. Pictures stand before the first branch alone: nothing drafts them.
fn admit(runner: &dyn Runner, tree: &TokenTree, want: &Want<'_>, cached: usize, new: usize) -> Result<()> {
    let config = runner.config();
    let vocabulary = config.tokens();
    let stem = (0..tree.len()).take_while(|&node| tree.parent(node) == node.checked_sub(1)).count();
    let is_picture = |node, token| {
        is_media(token) && node < stem && runner.media().is_some_and(|media| media.contains(token))
    };
    let is_unknown =
        |&(node, token): &(usize, TokenId)| token as usize >= vocabulary && !is_picture(node, token);
    if let Some((_, token)) = tree.tokens().enumerate().find(is_unknown) {
        return Err(Error::UnknownToken { token, vocabulary });
    }
    let (found, limit) = (cached + tree.len(), config.context);
    if found > limit {
        return Err(Error::PromptTooLong { found, limit });
    }
    if let Some(Taps { entering, cached, .. }) = want.features {
        let ascending = entering.is_sorted_by(|left, right| left < right);
        let there = entering.last().is_none_or(|&last| last <= config.depth());
        assert!(ascending && there, "the states entering {entering:?} of {} layers", config.depth());
        let has = cached.iter().all(|&layer| config.cached_keys(layer).is_some());
        assert!(has, "the keys of layers {cached:?}, of which some cache none");
    }
    let given = want.head_input.map(|input| (input.features().len(), input.features().width()));
    let needed = config.draft_head.as_ref().filter(|_| new > 0).and_then(|head| match want.head_input {
        Some(HeadInput::Target(_)) => Some((new, head.states())),
        // A block is drafted from the head inputs of earlier passes.
        _ if head.block().is_some() => None,
        _ => Some((new, config.carried())),
    });
    assert!(given == needed, "head input {given:?} where it should be {needed:?}");
    let whole = tree.is_chain() && new == tree.len() && (given.is_none() || want.rows.is_empty());
    assert!(
        config.block().is_none() || whole,
        "a block is guessed as a whole, and a text's rows guess nothing"
    );
    Ok(())
}
