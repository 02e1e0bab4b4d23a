//! Options of a family that take more than two values.

/// Options of a family's experts. Their number and sizes are in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertOptions {
    /// True if config.json has `norm_topk_prob`, which normalises the weights of the selected
    /// experts. They are always normalised in other families with softmax gating.
    pub(crate) declares_norm_topk: bool,
    /// True if the router and the experts' matrices have biases.
    pub(crate) biases: bool,
    /// True if Hugging Face files interleave the rows of an expert's gate and up matrices in one
    /// matrix, and store matrices that are not in blocks transposed, `[in, out]` (gpt-oss).
    pub(crate) interleaved: bool,
    /// True if experts run beside the feed-forward network of each layer instead of replacing it.
    pub(crate) beside_dense: bool,
    /// Weighting of the shared expert, which processes every token; `None` without one.
    pub(crate) shared: Option<SharedWeighting>,
    /// True if some models of the family are dense.
    pub(crate) optional: bool,
    /// Gating function of the router.
    pub(crate) gating: Gating,
    /// True if leading layers are dense; the file says how many.
    pub(crate) leading_dense: bool,
}

/// Gating function, which turns router scores into expert weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gating {
    /// The softmax of scores.
    Softmax,
    /// Sigmoid of each score.
    Sigmoid,
    /// Softmax or sigmoid, named in the file, which also says whether weights are normalised.
    Stated,
}

/// Weighting of the shared expert's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedWeighting {
    /// Multiplied by the sigmoid of a gate of its own.
    Gated,
    /// Added unweighted.
    Whole,
}

impl ExpertOptions {
    pub(super) const PLAIN: Self = Self {
        declares_norm_topk: false,
        biases: false,
        interleaved: false,
        beside_dense: false,
        shared: None,
        optional: false,
        gating: Gating::Softmax,
        leading_dense: false,
    };
}

/// Kind of the draft heads that a family consists of. Multi-token prediction blocks are of their
/// target's family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadFamily {
    /// Drafts token by token from fused hidden states of its target.
    Eagle3,
    /// Drafts a block of tokens in one pass.
    Block,
    /// Attends to its target's keys and values and has none of its own.
    Assistant,
}

/// Activation function of the feed-forward gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x / (1 + e^-x)
    Silu,
    /// GELU in its tanh approximation.
    Gelu,
    /// gpt-oss's clamped SwiGLU: x / (1 + e^(-1.702 x)) with x at most 7; the up projection is
    /// clamped to [-7, 7] and increased by 1.
    Clamped,
}

/// Kind of recurrent layer, which keeps a state instead of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecurrentKind {
    /// Gated convolution over a few tokens (LFM2).
    ShortConv,
    /// Gated DeltaNet (Yang et al. 2025): a matrix per head that each token corrects, after a
    /// convolution.
    Delta,
    /// Mamba-2 (Dao and Gu 2024): a matrix per head that decays and to which each token adds, after
    /// a convolution.
    Mamba,
}

/// Norms that safetensors files store as w and that multiply by 1 + w.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NormsAboveOne {
    None,
    /// All vectors, all of which are norms.
    All,
    /// Norms within layers, the final norm excepted.
    OfLayers,
    /// All norms except those inside recurrent layers.
    AroundLayers,
}

/// Pairing of the head components that rotate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryLayout {
    /// Pairs `(2i, 2i + 1)`: GGUF files of Llama's relatives, whose query and key weights are
    /// permuted.
    Interleaved,
    /// Pairs `(i, i + size / 2)`: all other files.
    Halves,
}

/// Layers with a sliding window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Windowed {
    /// All of them.
    All,
    /// All layers in models of this class, none in the family's others. GGUF files name no class
    /// and give a window only where there is one.
    InClass(&'static str),
    /// Layers from `max_window_layers` on if `use_sliding_window` is set; none in GGUF files.
    Last,
    /// Layers that the file lists.
    Listed,
    /// All layers but every n-th; this is the default n.
    AllButEvery(usize),
}

/// Layers without rotary positions (NoPE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRope {
    None,
    /// Every n-th layer, unless the file lists them; this is the default n.
    Every(usize),
    /// Layers without a sliding window, unless the file lists them.
    Windowless,
    /// All layers or none, as the file says; by default all in models of this class.
    Stated(&'static str),
}
