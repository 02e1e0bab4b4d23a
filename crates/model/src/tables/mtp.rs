//! Tensors of a multi-token prediction (MTP) block beside those of its layer.

use super::spec::TensorSpec;

/// Projects the concatenated embedding and state to the layer's input, `[hidden, 2 * hidden]`.
pub const EH_PROJ: &str = "blk.0.nextn.eh_proj.weight";
/// Norm of the embedding before the projection, `[hidden]`.
pub const ENORM: &str = "blk.0.nextn.enorm.weight";
/// Norm of the state before the projection, `[hidden]`.
pub const HNORM: &str = "blk.0.nextn.hnorm.weight";
/// Tensors of the block that replace the target's.
pub(crate) const OWN_OUTPUT_NORM: &str = "blk.0.nextn.shared_head_norm.weight";
pub(crate) const OWN_EMBEDDING: &str = "blk.0.nextn.embed_tokens.weight";
pub(crate) const OWN_OUTPUT: &str = "blk.0.nextn.shared_head_head.weight";

/// Tensors of the block. Hugging Face files number the block as a layer, or name it `mtp`.
pub(super) const TENSORS: [TensorSpec; 6] = [
    TensorSpec::new("nextn.eh_proj.weight", &["eh_proj.weight"], |p| vec![p.hidden(), 2 * p.hidden()]),
    TensorSpec::new("nextn.enorm.weight", &["enorm.weight"], |p| vec![p.hidden()]),
    TensorSpec::new("nextn.hnorm.weight", &["hnorm.weight"], |p| vec![p.hidden()]),
    // The remaining ones become the head's own tensors outside layers.
    TensorSpec::new("nextn.shared_head_norm.weight", &["shared_head.norm.weight"], |p| vec![p.hidden()])
        .when(|_| false),
    TensorSpec::new("nextn.shared_head_head.weight", &["shared_head.head.weight"], |p| {
        vec![p.config.vocabulary, p.hidden()]
    })
    .when(|_| false),
    TensorSpec::new("nextn.embed_tokens.weight", &["embed_tokens.weight"], |p| {
        vec![p.config.vocabulary, p.hidden()]
    })
    .when(|_| false),
];

/// Hugging Face names outside the layer of a block that is named `mtp`, and canonical names.
const AROUND: [(&str, &str); 4] = [
    ("fc.weight", EH_PROJ),
    ("pre_fc_norm_embedding.weight", ENORM),
    ("pre_fc_norm_hidden.weight", HNORM),
    ("norm.weight", OWN_OUTPUT_NORM),
];

/// Returns the part of a Hugging Face name after `mtp.`, or `None` for tensors outside such blocks.
pub(super) fn name_in_block(hugging_face: &str) -> Option<&str> {
    ["model.language_model.", "language_model.", "model."]
        .iter()
        .find_map(|part| hugging_face.strip_prefix(part))
        .unwrap_or(hugging_face)
        .strip_prefix("mtp.")
}

/// Returns the canonical name for a name after `mtp.` and outside the block's layer.
pub(super) fn around(name: &str) -> Option<String> {
    AROUND.iter().find(|(around, _)| *around == name).map(|(_, canonical)| (*canonical).to_owned())
}
