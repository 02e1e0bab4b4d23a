//! What families may differ in, beyond what is there or not.

/// What a family says of its experts; how many there are and how large is in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertOptions {
    /// A config.json says by itself whether the shares of the chosen experts add up to 1, as `norm_topk_prob`. In all
    /// others they do.
    pub(in crate::model) stated_shares: bool,
    /// The router and all matrices of experts have biases.
    pub(in crate::model) biases: bool,
    /// Hugging Face files hold an expert's matrices of gate and up as one whose rows belong to them in turns, and what
    /// they do not hold in blocks the other way round, inputs before outputs.
    pub(in crate::model) in_turns: bool,
    /// They are beside each layer's feed-forward network, in the family's models that have any.
    pub(in crate::model) beside: bool,
    /// One more that every token goes through.
    pub(in crate::model) shared: Option<SharedExpert>,
    /// Some of the family's models have none.
    pub(in crate::model) optional: bool,
    /// What their shares are made of.
    pub(in crate::model) gating: Gating,
    /// Files say how many first layers have a feed-forward network in their place.
    pub(in crate::model) after_dense: bool,
}

/// What shares of experts are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum Gating {
    /// The softmax of scores.
    Softmax,
    /// Their sigmoids.
    Sigmoid,
    /// One or the other, as a file says; it says, too, whether they add up to 1.
    Stated,
}

/// What is made of what the expert gives that every token goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedExpert {
    /// Its share is the sigmoid of a score of its own.
    Gated,
    /// All of it.
    Whole,
}

impl ExpertOptions {
    pub(super) const PLAIN: Self = Self {
        stated_shares: false,
        biases: false,
        in_turns: false,
        beside: false,
        shared: None,
        optional: false,
        gating: Gating::Softmax,
        after_dense: false,
    };
}

/// The function a gate goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x / (1 + e^-x)
    Silu,
    /// GELU by its approximation with tanh.
    Gelu,
    /// With x at most 7 and what it is multiplied with between -7 and 7 and then one more: x / (1 + e^(-1.702 x)).
    Clamped,
}

/// What lets a token of a layer know of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixer {
    /// Keys and values of all tokens, or of the last ones.
    Attention,
    /// A gated convolution over a few tokens (LFM2).
    ShortConv,
    /// A matrix a head that is corrected by every token, after a convolution: Gated DeltaNet (Yang et al. 2025).
    Delta,
    /// A matrix a head that decays and to which every token adds, after a convolution: Mamba-2 (Dao and Gu 2024).
    Mamba,
}

/// How queries and keys are normalised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadNorms {
    None,
    /// Each head by itself.
    Each,
    /// Each head by itself and by numbers that a config gives; GGUF files have weights that repeat them.
    Fixed,
    /// All heads of a token together.
    Together,
}

/// Norms of which safetensors files hold less by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum NormsAboveOne {
    None,
    /// All vectors, which are norms.
    All,
    /// Those of layers.
    OfLayers,
    /// All norms but those within recurrent layers.
    AroundLayers,
}

/// Which two components of a head rotate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryLayout {
    /// `(2i, 2i + 1)`: GGUF files of Llamas, whose converter permutes the query and key weights.
    Interleaved,
    /// `(i, i + size / 2)`: everything else.
    Halves,
}

/// Layers that see only so many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum Windowed {
    /// All of them.
    All,
    /// All of them in models of this class, none in the family's others; GGUF files, which name no class, give
    /// a window only where there is one.
    InClass(&'static str),
    /// Those from `max_window_layers` on, if `use_sliding_window` says so; in GGUF files none.
    Last,
    /// Those that the file lists.
    Listed,
    /// All but every so manieth; this is how many where the file does not say.
    AllButEvery(usize),
}

/// Layers whose queries and keys are not rotated: they know of positions what those before them do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum Unturned {
    None,
    /// Every so manieth, where the file does not list them.
    Every(usize),
    /// Those without a window, where the file does not list them.
    Windowless,
    /// All, if the file says so: in models of this class if it does not say otherwise.
    Stated(&'static str),
}
