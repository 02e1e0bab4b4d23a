//! Running models: the [`Model`] trait, inputs and outputs of a forward pass over a [`tree`] of
//! tokens, and the engines that compute it on a [`device`]: `cpu`, `gpu` and `tensor`. Each keeps
//! its KV cache in line with a text. Token selection is in `foretoken-engine`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

mod bandwidth;
mod block_state;
mod cached;
pub mod cpu;
pub mod device;
mod features;
pub mod gpu;
mod grids;
mod lilicorr;
mod load;
mod logits;
mod media;
mod pair_scores;
mod parked;
mod pass;
mod routing;
mod sketch;
mod slices;
mod state_history;
mod tensor;
pub mod tree;
mod want;

use std::ops::ControlFlow;
use std::sync::Arc;

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;

use crate::tree::TokenTree;

pub use bandwidth::Bandwidth;
pub use block_state::BlockState;
pub use cpu::CpuModel;
pub use features::{Features, HeadInput, Taps};
pub use gpu::GpuModel;
pub use load::load;
pub use logits::{Logits, Peak, Row};
pub use media::{Embeddings, Media, MediaKey, MediaPicture, MediaRows, PictureShape};
pub use parked::Parked;
pub use pass::{Pass, Runner};
pub use sketch::LogitSubset;
pub use tensor::TensorModel;
pub use want::Want;

/// Number of the order in which the engines add numbers. A change that gives other bits changes it,
/// and replies record it: one of another order may differ where two tokens are nearly equal.
pub const ORDER_OF_SUMS: u32 = 2;

/// A causal language model whose cache can be rewound.
pub trait Model: Send {
    fn config(&self) -> &ModelConfig;

    /// The tokens whose keys and values are cached, in order.
    fn cached(&self) -> &[TokenId];

    /// Runs `tree` after the cached tokens, caches its nodes in order, and returns the requested
    /// outputs. [`Pass::keep`] decides what stays cached; by default a whole chain does.
    ///
    /// # Errors
    /// `Error::UnknownToken` for a token outside the vocabulary, `Error::PromptTooLong` when the
    /// context cannot hold the tree, `Error::Compute` when the device fails. The cache is
    /// unchanged.
    ///
    /// # Panics
    /// If `want` requests states of a layer that the model does not have.
    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>>;

    /// Waits until the device has finished its queued work. A pass without requested outputs may
    /// still run after [`Self::run`] returned.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Reads all weights of a pass at full memory bandwidth, without computing, and returns their
    /// size in bytes. This bounds how fast a pass can be. Returns 0 if the weights are not in this
    /// computer's memory.
    fn read_weights(&self) -> usize {
        0
    }

    /// Experts read per layer in the last pass, on average; they determine the cost of such a pass.
    /// `None` for dense models and for engines that do not count them.
    fn experts_read(&self) -> Option<f64> {
        None
    }

    /// Dispatches of the last pass, for engines with compute kernels of their own on the GPU.
    fn dispatch_stats(&self) -> Option<DispatchStats> {
        None
    }

    /// Drops all but the first `length` cached tokens, or more where the model cannot rewind to
    /// exactly that point. Returns the number of tokens left, at most `length`.
    fn truncate(&mut self, length: usize) -> usize;

    /// Sets the table of pictures whose ids may stand in texts; its embeddings are as wide as those
    /// of the target. Ids stay valid in texts that are cached.
    fn set_media(&mut self, _media: &Arc<Media>) {}

    /// Limits the context to `tokens`, at most the length the model was loaded with, and drops
    /// cached tokens beyond it.
    fn limit_context(&mut self, _tokens: usize) {}

    /// Puts the cached text aside with its caches, which this model goes on to share; `None` if its
    /// engine cannot share them.
    fn park(&self) -> Option<Parked> {
        None
    }

    /// Replaces the cached text by one that a model of the same weights parked. Returns `false` and
    /// changes nothing if it has other layers than this model.
    fn resume(&mut self, _parked: &Parked) -> bool {
        false
    }

    /// Number of leading cached tokens whose caches were read from files.
    fn restored(&self) -> usize {
        0
    }

    /// Prepares for a text of `length` tokens, including those of the next pass. Drops the whole
    /// cache if a text of that length needs other RoPE factors than the cached one
    /// ([`ModelConfig::rope_switch_length`]).
    fn prepare_for_length(&mut self, _length: usize) {}
}

/// Work of one pass on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchStats {
    /// Compute dispatches, which run one after the other.
    pub dispatches: usize,
    /// Bytes of weights that a pass over one row reads.
    pub bytes: u64,
}

/// Tokens per pass in prefill: enough to be efficient, few enough for visible progress and quick
/// cancellation.
const CHUNK: usize = 128;

/// A chunk of a text that ran in one pass.
#[derive(Debug, Clone, Copy)]
pub struct PrefillChunk<'a> {
    /// Position of the chunk's first token.
    pub at: usize,
    pub tokens: &'a [TokenId],
    /// Position at which the last chunk will end.
    pub total: usize,
    /// Tapped hidden states of each token.
    pub features: Option<Features<'a>>,
}

/// Brings the cache to all of `context` but its last token: keeps the common prefix, drops the rest
/// and runs what is missing. This one rule covers rejected drafts, prefix reuse across turns, edits
/// and regenerations.
///
/// Calls `on_progress(done, total)` between passes; `Break` stops early. Returns the number of
/// reused tokens, and `Continue` if the cache is complete.
///
/// # Errors
/// As [`Model::run`].
pub fn catch_up(
    model: &mut dyn Model,
    context: &[TokenId],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(usize, ControlFlow<()>)> {
    catch_up_with(model, context, &Taps::default(), &mut |chunk| {
        on_progress(chunk.at + chunk.tokens.len(), chunk.total)
    })
}

/// Does the same as [`catch_up`], and passes each chunk to `on_chunk` with the hidden states of
/// `taps`.
///
/// # Errors
/// As [`Model::run`].
pub fn catch_up_with(
    model: &mut dyn Model,
    context: &[TokenId],
    taps: &Taps,
    on_chunk: &mut dyn FnMut(PrefillChunk<'_>) -> ControlFlow<()>,
) -> Result<(usize, ControlFlow<()>)> {
    let total = context.len().saturating_sub(1);
    let reused = rewind(model, context);
    let mut at = reused;
    while at < total {
        let tokens = &context[at..total.min(at + CHUNK)];
        let pass = model.run(&TokenTree::chain(tokens.iter().copied()), &Want::nothing().features(taps))?;
        let goes_on = if taps.is_empty() {
            drop(pass);
            model.wait()?;
            on_chunk(PrefillChunk { at, tokens, total, features: None })
        } else {
            on_chunk(PrefillChunk { at, tokens, total, features: pass.features() })
        };
        if goes_on.is_break() {
            return Ok((reused, ControlFlow::Break(())));
        }
        at += tokens.len();
    }
    Ok((reused, ControlFlow::Continue(())))
}

/// Runs `context` again, up to its last token, if it has passed a length at which the model's RoPE
/// factors change; otherwise does nothing. Returns `Continue` if the cache is complete, as
/// [`catch_up`] does.
///
/// # Errors
/// As [`Model::run`].
pub fn rerun_if_outgrown(
    model: &mut dyn Model,
    context: &[TokenId],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    model.prepare_for_length(context.len());
    if model.cached().len() + 1 >= context.len() {
        return Ok(ControlFlow::Continue(()));
    }
    Ok(catch_up(model, context, on_progress)?.1)
}

/// Drops cached tokens after the common prefix with `context` without its last token, which always
/// runs again for its logits. Returns the number of tokens kept.
pub fn rewind(model: &mut dyn Model, context: &[TokenId]) -> usize {
    model.prepare_for_length(context.len());
    let wanted = &context[..context.len().saturating_sub(1)];
    let common = model.cached().iter().zip(wanted).take_while(|(cached, token)| cached == token).count();
    model.truncate(common)
}
