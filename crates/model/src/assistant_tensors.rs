//! Names and shapes of an assistant's tensors outside its layers.

use super::config::{Clusters, ModelConfig};
use super::tensors::{ORDER, Tensors};
use crate::error::Result;

/// Projects the target's embedding and the carried state to the assistant's state, `[hidden, 2 *
/// carried]`.
pub const PRE_PROJECTION: &str = "nextn.pre_projection.weight";
/// Projects the assistant's state to the carried state, `[carried, hidden]`.
pub const POST_PROJECTION: &str = "nextn.post_projection.weight";
/// Centroids of the clusters of tokens, `[clusters, hidden]`.
pub const CENTROIDS: &str = "masked_embd_centroids.weight";

/// Hugging Face names and canonical names.
const OUTER: [(&str, &str); 3] = [
    ("pre_projection.weight", PRE_PROJECTION),
    ("post_projection.weight", POST_PROJECTION),
    ("masked_embedding.centroids.weight", CENTROIDS),
];
const HUGGING_FACE_ORDER: &str = "masked_embedding.token_ordering";

/// Returns the canonical name for a Hugging Face name.
pub(super) fn outer(hugging_face: &str) -> Option<&'static str> {
    OUTER.iter().find(|(name, _)| *name == hugging_face).map(|(_, canonical)| *canonical)
}

/// Returns whether `name` is the list of tokens by cluster, in either format.
pub(super) fn is_order(name: &str) -> bool {
    let name = name.strip_suffix(".weight").unwrap_or(name);
    name == ORDER || name == HUGGING_FACE_ORDER
}

/// Returns the clusters of a GGUF file, in which only the shape of the centroids tells their
/// number.
pub(super) fn clusters(tensors: &Tensors) -> Option<Clusters> {
    let count = *tensors.stored.get(CENTROIDS)?.shape.first().filter(|&&count| count > 0)?;
    Some(Clusters { count, nearest: Clusters::USUAL.min(count) })
}

/// Names and shapes of an assistant's tensors outside its layers; none for other models.
pub(super) fn expected(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let Some(assistant) = config.assistant() else { return Vec::new() };
    let (hidden, carried) = (config.hidden, config.carried());
    let centroids = assistant.clusters.map(|clusters| (CENTROIDS, [clusters.count, hidden]));
    [(PRE_PROJECTION, [hidden, 2 * carried]), (POST_PROJECTION, [carried, hidden])]
        .into_iter()
        .chain(centroids)
        .map(|(name, shape)| (name.to_owned(), shape.to_vec()))
        .collect()
}

/// Checks that the list of tokens exists if the model has clusters, and that its length is right.
///
/// # Errors
/// `Error::BadModel` if it is missing or has the wrong length.
pub(super) fn check(tensors: &Tensors, config: &ModelConfig) -> Result<()> {
    if config.assistant().is_none_or(|assistant| assistant.clusters.is_none()) {
        return Ok(());
    }
    let found = tensors.order.as_ref().ok_or_else(|| tensors.missing(ORDER))?.len();
    let tokens = config.tokens();
    if found == tokens { Ok(()) } else { Err(tensors.misshapen(ORDER, &[tokens], &[found])) }
}
