//! Mixtures of experts.

use crate::family::{ExpertOptions, Gating};

/// Mixture of experts of a layer: each token passes through `top_k` of `count` feed-forward
/// networks.
#[derive(Debug, Clone, PartialEq)]
pub struct Experts {
    pub count: usize,
    /// Experts per token (top k).
    pub top_k: usize,
    /// Width of one expert.
    pub width: usize,
    /// True if the weights of a token's experts are normalised to a sum of 1. Otherwise they keep
    /// their values from the softmax or sigmoid over all experts.
    pub normalised: bool,
    /// True if the router and the experts' matrices have biases.
    pub biases: bool,
    /// Factor of the expert weights.
    pub scale: f32,
    /// Options of sigmoid gating; `None` for softmax gating.
    pub sigmoid: Option<SigmoidGating>,
}

/// Options of experts that are gated by the sigmoids of the router's scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SigmoidGating {
    /// Experts are selected by score plus a per-expert bias; the bias does not change their
    /// weights.
    pub selection_bias: bool,
    /// Added to the sum by which the weights are normalised.
    pub sum_epsilon: f32,
}

impl Experts {
    /// Returns whether a per-expert bias takes part in the selection.
    pub fn has_selection_bias(&self) -> bool {
        self.sigmoid.is_some_and(|gating| gating.selection_bias)
    }
}

impl SigmoidGating {
    /// Default of `sum_epsilon`, for which files have no key.
    pub(super) fn default_epsilon(options: ExpertOptions) -> f32 {
        if options.gating == Gating::Stated { 1e-20 } else { 1e-6 }
    }
}
