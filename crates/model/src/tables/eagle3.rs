//! Tensors of EAGLE-3 heads, and of the fusion of hidden states that they share with block heads.

use super::super::config::{DraftHead, ModelConfig};
use super::spec::{Expected, TensorSpec, number};

/// Matrix that fuses the states a draft head reads, `[hidden, states]`.
pub const FUSE: &str = "fc.weight";
/// Norm of all states that a draft head fuses, or in a block head of their fusion.
pub const FUSED_NORM: &str = "enc.output_norm.weight";
/// Norm of the state that enters the layer, `[hidden]`.
pub const STATE_NORM: &str = "blk.0.attn_norm_2.weight";

pub(super) const FUSION: [TensorSpec; 1] =
    [TensorSpec::new(FUSE, &["fc.weight"], |p| vec![p.hidden(), p.head().map_or(0, DraftHead::states)])];

pub(super) const TENSORS: [TensorSpec; 1] =
    [TensorSpec::new("attn_norm_2.weight", &["hidden_norm.weight"], |p| vec![p.hidden()])];

/// Name of the norm of all states that a draft head fuses, or of one of them.
pub fn fused_norm(state: Option<usize>) -> String {
    match state {
        None => FUSED_NORM.to_owned(),
        Some(state) => format!("enc.output_norm.{state}.weight"),
    }
}

/// Returns the canonical name for a Hugging Face name of an EAGLE-3 head that is in no table: of
/// such a norm, or of the layer in files that call it `midlayer`. `in_layer` maps names of the
/// layer.
pub(super) fn other(hugging_face: &str, in_layer: impl FnOnce(&str) -> Option<String>) -> Option<String> {
    if let Some(rest) = hugging_face.strip_prefix("midlayer.") {
        return in_layer(rest);
    }
    if hugging_face == "input_norm.weight" {
        return Some(fused_norm(None));
    }
    let state = hugging_face.strip_prefix("fc_norm.")?.strip_suffix(".weight")?;
    Some(fused_norm(Some(number(state)?)))
}

/// The norms before states are fused.
pub(super) fn norms(config: &ModelConfig) -> impl Iterator<Item = Expected> + use<> {
    let (norms, width) = config.draft_head.as_ref().map_or((0, 0), DraftHead::norms);
    (0..norms).map(move |state| Expected::required(fused_norm((norms > 1).then_some(state)), vec![width]))
}
