//! Running a model: what a forward pass is asked for and what it gives back. Does not choose
//! tokens.

pub mod cpu;
mod logits;
mod sketch;
mod tensor;

use std::ops::{ControlFlow, Range};

use candle_core::Device;

use crate::error::{Error, Result};
use crate::model::{ModelConfig, ModelSource};
use crate::trace::TokenId;
use crate::tree::TokenTree;

pub use cpu::CpuModel;
pub(crate) use logits::Peak;
pub use logits::{Logits, Row};
pub use sketch::Interest;
pub use tensor::TensorModel;

/// A causal language model whose cache can be rewound.
pub trait Model: Send {
    fn config(&self) -> &ModelConfig;

    /// The tokens whose keys and values are cached, in order.
    fn cached(&self) -> &[TokenId];

    /// Runs `tree` after the cached tokens, caches its nodes in their order, and returns the logits
    /// of the nodes in `rows`: row `i` scores what may follow node `rows.start + i`.
    ///
    /// After a tree that is no chain, [`grow`](Self::grow) or [`keep`](Self::keep) must be called before
    /// the next pass.
    ///
    /// # Errors
    /// `Error::UnknownToken` for a token outside the vocabulary, `Error::PromptTooLong` when the
    /// context cannot hold the tree, `Error::Compute` when the device fails. The cache is unchanged.
    fn forward(&mut self, tree: &TokenTree, rows: Range<usize>) -> Result<Logits<'_>> {
        self.pass(tree, 0, rows)
    }

    /// Goes on with the tree of the last pass: `tree` begins with its nodes and has more. Runs these, and
    /// counts them to that pass.
    ///
    /// # Errors
    /// Those of [`Self::forward`].
    fn grow(&mut self, tree: &TokenTree, rows: Range<usize>) -> Result<Logits<'_>> {
        self.pass(tree, self.last_pass(), rows)
    }

    /// Runs the nodes of `tree` from number `first` on; the ones before are the last pass's.
    ///
    /// # Errors
    /// Those of [`Self::forward`].
    fn pass(&mut self, tree: &TokenTree, first: usize, rows: Range<usize>) -> Result<Logits<'_>>;

    /// Says what the rows of later passes will be asked for. What is asked for beyond that costs time on a
    /// device whose memory is not this computer's.
    fn expect(&mut self, _interest: Interest) {}

    /// Says that rows of later passes need to have the first `vocabulary` tokens alone; they may have more.
    fn narrow(&mut self, _vocabulary: usize) {}

    /// Waits until the device has computed what it was handed. A pass whose scores nobody asked for may go
    /// on after it returned.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Nodes that the last pass ran, or of them those that were kept.
    fn last_pass(&self) -> usize;

    /// Reads all weights that a pass reads, as fast as memory gives them and without computing, and
    /// returns how many bytes they are: the bound on how fast a pass can be. 0 where the weights are not
    /// in this computer's memory.
    fn read_weights(&self) -> usize {
        0
    }

    /// Of the last pass's nodes keeps those on `path` (indices, ascending) and forgets the others.
    fn keep(&mut self, path: &[usize]) -> Result<()>;

    /// Forgets all but the first `length` cached tokens.
    fn truncate(&mut self, length: usize);
}

/// Loads the model that `source` describes onto `device`: the CPU by the engine made for it, others by
/// candle's tensors.
///
/// # Errors
/// What `ModelSource::weights` reports, and `Error::Compute` when the device has no room.
pub fn load(source: &ModelSource, device: &Device) -> Result<Box<dyn Model>> {
    Ok(if device.is_cpu() {
        Box::new(CpuModel::load(source)?)
    } else {
        Box::new(TensorModel::load(source, device)?)
    })
}

/// Whether a model with `cached` tokens can run `tree`.
fn admit(tree: &TokenTree, config: &ModelConfig, cached: usize) -> Result<()> {
    let vocabulary = config.vocabulary;
    if let Some(token) = tree.tokens().find(|&token| token as usize >= vocabulary) {
        return Err(Error::UnknownToken { token, vocabulary });
    }
    let (found, limit) = (cached + tree.len(), config.context);
    if found > limit {
        return Err(Error::PromptTooLong { found, limit });
    }
    Ok(())
}

/// Tokens per pass while a prompt is processed: large enough to be efficient, small enough that
/// progress shows and a stop is heard.
const CHUNK: usize = 128;

/// Brings the cache to all of `context` but its last token, whatever it held before: keeps the
/// common prefix, forgets the rest, feeds what is missing. The one rule behind rejected drafts,
/// prefix reuse across turns, edits and regenerations.
///
/// Calls `on_progress(done, total)` between passes; `Break` ends it early. Returns how many tokens
/// were reused, and whether it was carried through.
///
/// # Errors
/// Those of [`Model::forward`].
pub fn catch_up(
    model: &mut dyn Model,
    context: &[TokenId],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(usize, ControlFlow<()>)> {
    let total = context.len().saturating_sub(1);
    let reused = rewind(model, context);
    let mut done = reused;
    while done < total {
        let end = total.min(done + CHUNK);
        model.forward(&TokenTree::chain(context[done..end].iter().copied()), 0..0)?;
        model.wait()?;
        done = end;
        if on_progress(done, total).is_break() {
            return Ok((reused, ControlFlow::Break(())));
        }
    }
    Ok((reused, ControlFlow::Continue(())))
}

/// Forgets what is cached beyond the common prefix with `context` less its last token, which is
/// always fed anew for its logits; returns how many tokens stay.
pub fn rewind(model: &mut dyn Model, context: &[TokenId]) -> usize {
    let wanted = &context[..context.len().saturating_sub(1)];
    let common = model.cached().iter().zip(wanted).take_while(|(cached, token)| cached == token).count();
    model.truncate(common);
    common
}
