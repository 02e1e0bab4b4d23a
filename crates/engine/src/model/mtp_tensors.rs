//! What files call the tensors of a block that predicts a further token (multi-token prediction, MTP), beside those of its
//! layer.

use super::config::ModelConfig;

/// The names of the matrix that joins embedding and state, `[hidden, 2 * hidden]`, and of the norms of either, `[hidden]`.
pub const JOIN: &str = "blk.0.nextn.eh_proj.weight";
pub const JOINED_EMBEDDING_NORM: &str = "blk.0.nextn.enorm.weight";
pub const JOINED_STATE_NORM: &str = "blk.0.nextn.hnorm.weight";
/// Those of what a block may have of its own in place of what the target has.
pub(super) const OWN_OUTPUT_NORM: &str = "blk.0.nextn.shared_head_norm.weight";
pub(super) const OWN_EMBEDDING: &str = "blk.0.nextn.embed_tokens.weight";
pub(super) const OWN_OUTPUT: &str = "blk.0.nextn.shared_head_head.weight";

/// Hugging Face's names of what is around the layer of a block.
const AROUND: [(&str, &str); 4] = [
    ("fc.weight", JOIN),
    ("pre_fc_norm_embedding.weight", JOINED_EMBEDDING_NORM),
    ("pre_fc_norm_hidden.weight", JOINED_STATE_NORM),
    ("norm.weight", OWN_OUTPUT_NORM),
];

/// The canonical name of a block's tensor by its Hugging Face name, counted from the first block; its own for one that is
/// not known. `of_layer` tells those of a model's layers. `None` for what is of no block.
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

/// What is around a block that Hugging Face files count among the layers, after the name of the layer.
const NUMBERED: [(&str, &str); 6] = [
    ("eh_proj.weight", "nextn.eh_proj.weight"),
    ("enorm.weight", "nextn.enorm.weight"),
    ("hnorm.weight", "nextn.hnorm.weight"),
    ("shared_head.norm.weight", "nextn.shared_head_norm.weight"),
    ("shared_head.head.weight", "nextn.shared_head_head.weight"),
    ("embed_tokens.weight", "nextn.embed_tokens.weight"),
];

/// The canonical name of a tensor around such a block, after that of the block.
pub(super) fn of_numbered(rest: &str) -> Option<&'static str> {
    NUMBERED.iter().find(|(name, _)| *name == rest).map(|(_, canonical)| *canonical)
}

/// Those that a block has beside those of a layer.
pub(super) fn expected(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (is_block, hidden) = (config.draft_head.as_ref().is_some_and(|head| head.mtp), config.hidden);
    let named = |name: &str, shape: &[usize]| (name.to_owned(), shape.to_vec());
    match is_block {
        true => vec![
            named(JOIN, &[hidden, 2 * hidden]),
            named(JOINED_EMBEDDING_NORM, &[hidden]),
            named(JOINED_STATE_NORM, &[hidden]),
        ],
        false => Vec::new(),
    }
}
