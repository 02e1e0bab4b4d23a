//! Tensors of EAGLE-3 heads, and of the fusion of hidden states that they share with block heads.

use super::super::config::{DraftHead, FusedNorms, ModelConfig};
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

/// Names of the norms before states are fused, in the order of the states: one over all states, one
/// for each, or none. Each norm has as many numbers as the states that it covers.
pub fn fused_norms(head: &DraftHead) -> Vec<String> {
    match head.eagle3().map_or(FusedNorms::None, |head| head.fused_norms) {
        FusedNorms::None => Vec::new(),
        FusedNorms::Whole => vec![FUSED_NORM.to_owned()],
        FusedNorms::Each => {
            (0..head.entering_states()).map(|state| format!("fc_norm.{state}.weight")).collect()
        }
    }
}

/// Returns the canonical name for a Hugging Face name of an EAGLE-3 head that is in no table: of a
/// norm before states are fused, or of the layer in files that call it `midlayer`. `in_layer` maps
/// names of the layer.
pub(super) fn other(hugging_face: &str, in_layer: impl FnOnce(&str) -> Option<String>) -> Option<String> {
    if let Some(rest) = hugging_face.strip_prefix("midlayer.") {
        return in_layer(rest);
    }
    if hugging_face == "input_norm.weight" {
        return Some(FUSED_NORM.to_owned());
    }
    number(hugging_face.strip_prefix("fc_norm.")?.strip_suffix(".weight")?)?;
    Some(hugging_face.to_owned())
}

/// The norms before states are fused.
pub(super) fn norms(config: &ModelConfig) -> impl Iterator<Item = Expected> + use<> {
    let (names, width) = config.draft_head.as_ref().map_or_else(Default::default, |head| {
        let names = fused_norms(head);
        let width = head.states() / names.len().max(1);
        (names, width)
    });
    names.into_iter().map(move |name| Expected::required(name, vec![width]))
}
