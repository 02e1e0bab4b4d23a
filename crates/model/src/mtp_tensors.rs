//! Names and shapes of the tensors of an MTP block (multi-token prediction) outside its layer.

use super::config::{HeadKind, ModelConfig};

/// Projects the concatenated embedding and state to the layer's input, `[hidden, 2 * hidden]`.
pub const EH_PROJ: &str = "blk.0.nextn.eh_proj.weight";
/// Norm of the embedding before the projection, `[hidden]`.
pub const ENORM: &str = "blk.0.nextn.enorm.weight";
/// Norm of the state before the projection, `[hidden]`.
pub const HNORM: &str = "blk.0.nextn.hnorm.weight";
/// Tensors of the block that replace the target's.
pub(super) const OWN_OUTPUT_NORM: &str = "blk.0.nextn.shared_head_norm.weight";
pub(super) const OWN_EMBEDDING: &str = "blk.0.nextn.embed_tokens.weight";
pub(super) const OWN_OUTPUT: &str = "blk.0.nextn.shared_head_head.weight";

/// Hugging Face names outside the block's layer, and canonical names.
const AROUND: [(&str, &str); 4] = [
    ("fc.weight", EH_PROJ),
    ("pre_fc_norm_embedding.weight", ENORM),
    ("pre_fc_norm_hidden.weight", HNORM),
    ("norm.weight", OWN_OUTPUT_NORM),
];

/// Returns the canonical name for a Hugging Face name in an MTP block, counted from the first
/// block, or the name itself if it is unknown. `of_layer` maps the names of a layer. Returns `None`
/// for tensors outside MTP blocks.
pub(super) fn canonical(hugging_face: &str, of_layer: impl Fn(&str) -> Option<String>) -> Option<String> {
    let name = ["model.language_model.", "language_model.", "model."]
        .iter()
        .find_map(|part| hugging_face.strip_prefix(part))
        .unwrap_or(hugging_face)
        .strip_prefix("mtp.")?;
    let around = AROUND.iter().find(|(around, _)| *around == name);
    let around = around.map(|(_, canonical)| (*canonical).to_owned());
    let of_layer = || of_layer(&format!("model.{name}")).filter(|_| name.starts_with("layers."));
    Some(around.or_else(of_layer).unwrap_or_else(|| hugging_face.to_owned()))
}

/// Names in a block that Hugging Face files number as a layer, after the layer's prefix, and
/// canonical names.
const NUMBERED: [(&str, &str); 6] = [
    ("eh_proj.weight", "nextn.eh_proj.weight"),
    ("enorm.weight", "nextn.enorm.weight"),
    ("hnorm.weight", "nextn.hnorm.weight"),
    ("shared_head.norm.weight", "nextn.shared_head_norm.weight"),
    ("shared_head.head.weight", "nextn.shared_head_head.weight"),
    ("embed_tokens.weight", "nextn.embed_tokens.weight"),
];

/// Returns the canonical name for a name in such a block, after the layer's prefix.
pub(super) fn of_numbered(rest: &str) -> Option<&'static str> {
    NUMBERED.iter().find(|(name, _)| *name == rest).map(|(_, canonical)| *canonical)
}

/// Names and shapes of an MTP block's tensors outside its layer; none for other models.
pub(super) fn expected(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (is_block, hidden) =
        (matches!(&config.draft_head, Some(head) if head.kind == HeadKind::Mtp), config.hidden);
    let named = |name: &str, shape: &[usize]| (name.to_owned(), shape.to_vec());
    match is_block {
        true => vec![named(EH_PROJ, &[hidden, 2 * hidden]), named(ENORM, &[hidden]), named(HNORM, &[hidden])],
        false => Vec::new(),
    }
}
