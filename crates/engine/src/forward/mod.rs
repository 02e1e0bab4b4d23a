//! Running a model: what a forward pass is asked for and what it gives back. Does not choose
//! tokens.

pub mod cpu;
mod features;
pub mod gpu;
mod load;
mod logits;
mod pass;
mod past;
mod reading;
mod routing;
mod sketch;
mod slices;
mod tensor;
mod want;

use std::ops::ControlFlow;

use crate::error::Result;
use crate::model::ModelConfig;
use crate::token::TokenId;
use crate::tree::TokenTree;

pub use cpu::CpuModel;
pub use features::{Carried, Features, Taps};
pub use gpu::GpuModel;
pub use load::load;
pub use logits::{Logits, Peak, Row};
pub use pass::{Pass, Runner};
pub use reading::Reading;
pub use sketch::Interest;
pub use tensor::TensorModel;
pub use want::Want;

/// A causal language model whose cache can be rewound.
pub trait Model: Send {
    fn config(&self) -> &ModelConfig;

    /// The tokens whose keys and values are cached, in order.
    fn cached(&self) -> &[TokenId];

    /// Runs `tree` after the cached tokens, caches its nodes in their order, and gives what is wanted of
    /// them. What stays cached is for the [`Pass`] to say; without a word of it all of a chain does.
    ///
    /// # Errors
    /// `Error::UnknownToken` for a token outside the vocabulary, `Error::PromptTooLong` when the
    /// context cannot hold the tree, `Error::Compute` when the device fails. The cache is unchanged.
    ///
    /// # Panics
    /// If states of a layer are wanted that the model does not have.
    fn run(&mut self, tree: &TokenTree, want: &Want<'_>) -> Result<Pass<'_>>;

    /// Waits until the device has computed what it was handed. A pass of which nothing is wanted may go on
    /// after [`Self::run`] returned.
    ///
    /// # Errors
    /// `Error::Compute` when the device failed.
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    /// Reads all weights that a pass reads, as fast as memory gives them and without computing, and
    /// returns how many bytes they are: the bound on how fast a pass can be. 0 where the weights are not
    /// in this computer's memory.
    fn read_weights(&self) -> usize {
        0
    }

    /// Experts that a layer read in the last pass, on average: what such a pass costs depends on them. `None` in a model
    /// without, and where nobody counts them.
    fn experts_read(&self) -> Option<f64> {
        None
    }

    /// What the last pass handed to a device that runs programs of this engine's own.
    fn handed(&self) -> Option<Handed> {
        None
    }

    /// Forgets all but the first `length` cached tokens, and more where it cannot go back to just there.
    /// Returns how many are left: `length` or fewer.
    fn truncate(&mut self, length: usize) -> usize;

    /// Gets ready for a text of `length` tokens, the one that the next pass begins with among them. A model that reads
    /// a text of that length otherwise than what it has cached forgets all of it ([`ModelConfig::rope_switch_length`]).
    fn expect(&mut self, _length: usize) {}
}

/// What a pass hands to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handed {
    /// Programs that run one after the other.
    pub dispatches: usize,
    /// Bytes of weights that a pass over one row reads.
    pub bytes: u64,
}

/// Tokens per pass while a prompt is processed: large enough to be efficient, small enough that
/// progress shows and a stop is heard.
const CHUNK: usize = 128;

/// A part of a text that was fed in one pass.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The position of the first of its tokens.
    pub at: usize,
    pub tokens: &'a [TokenId],
    /// Where the last part will end.
    pub total: usize,
    /// Of each token the hidden states that are tapped.
    pub features: Option<Features<'a>>,
}

/// Brings the cache to all of `context` but its last token, whatever it held before: keeps the
/// common prefix, forgets the rest, feeds what is missing. The one rule behind rejected drafts,
/// prefix reuse across turns, edits and regenerations.
///
/// Calls `on_progress(done, total)` between passes; `Break` ends it early. Returns how many tokens
/// were reused, and whether it was carried through.
///
/// # Errors
/// Those of [`Model::run`].
pub fn catch_up(
    model: &mut dyn Model,
    context: &[TokenId],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(usize, ControlFlow<()>)> {
    catch_up_with(model, context, &Taps::default(), &mut |part| {
        on_progress(part.at + part.tokens.len(), part.total)
    })
}

/// The same, and `on_part` gets each part with the hidden states that `taps` name.
///
/// # Errors
/// Those of [`Model::run`].
pub fn catch_up_with(
    model: &mut dyn Model,
    context: &[TokenId],
    taps: &Taps,
    on_part: &mut dyn FnMut(Part<'_>) -> ControlFlow<()>,
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
            on_part(Part { at, tokens, total, features: None })
        } else {
            on_part(Part { at, tokens, total, features: pass.features() })
        };
        if goes_on.is_break() {
            return Ok((reused, ControlFlow::Break(())));
        }
        at += tokens.len();
    }
    Ok((reused, ControlFlow::Continue(())))
}

/// Brings the cache to all of `context` but its last token where `context` has grown so long that the model reads it
/// otherwise; nothing is done where it has not. Returns whether that was carried through, as [`catch_up`] does.
///
/// # Errors
/// Those of [`Model::run`].
pub fn outgrow(
    model: &mut dyn Model,
    context: &[TokenId],
    on_progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<ControlFlow<()>> {
    model.expect(context.len());
    if model.cached().len() + 1 >= context.len() {
        return Ok(ControlFlow::Continue(()));
    }
    Ok(catch_up(model, context, on_progress)?.1)
}

/// Forgets what is cached beyond the common prefix with `context` less its last token, which is
/// always fed anew for its logits; returns how many tokens stay.
pub fn rewind(model: &mut dyn Model, context: &[TokenId]) -> usize {
    model.expect(context.len());
    let wanted = &context[..context.len().saturating_sub(1)];
    let common = model.cached().iter().zip(wanted).take_while(|(cached, token)| cached == token).count();
    model.truncate(common)
}
