//! What files call the tensors of an assistant, beside those of its layers.

use super::config::{Clusters, ModelConfig};
use super::tensors::{ORDER, Tensors};
use crate::error::Result;

/// The name of the matrix that makes one state of the target's embedding and the state that is carried, `[hidden,
/// 2 * carried]`, and of the one that makes the state that is carried on, `[carried, hidden]`.
pub const PRE_PROJECTION: &str = "nextn.pre_projection.weight";
pub const POST_PROJECTION: &str = "nextn.post_projection.weight";
/// The name of what tells how near a state is to each cluster of tokens, `[clusters, hidden]`.
pub const CENTROIDS: &str = "masked_embd_centroids.weight";

/// The same by Hugging Face's names.
const OUTER: [(&str, &str); 3] = [
    ("pre_projection.weight", PRE_PROJECTION),
    ("post_projection.weight", POST_PROJECTION),
    ("masked_embedding.centroids.weight", CENTROIDS),
];
const HUGGING_FACE_ORDER: &str = "masked_embedding.token_ordering";

/// The canonical name of a tensor by its Hugging Face name.
pub(super) fn outer(hugging_face: &str) -> Option<&'static str> {
    OUTER.iter().find(|(name, _)| *name == hugging_face).map(|(_, canonical)| *canonical)
}

/// Whether a name is that of the list of tokens, in either format.
pub(super) fn is_order(name: &str) -> bool {
    let name = name.strip_suffix(".weight").unwrap_or(name);
    name == ORDER || name == HUGGING_FACE_ORDER
}

/// The clusters of a GGUF file, which names them by its tensors alone.
pub(super) fn clusters(tensors: &Tensors) -> Option<Clusters> {
    let count = *tensors.stored.get(CENTROIDS)?.shape.first().filter(|&&count| count > 0)?;
    Some(Clusters { count, nearest: Clusters::USUAL.min(count) })
}

/// Those that an assistant has beside those of its layers.
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

/// Checks that the list of tokens is there where it is needed, and is as long as it has to be.
///
/// # Errors
/// `Error::BadModel` where it is not.
pub(super) fn check(tensors: &Tensors, config: &ModelConfig) -> Result<()> {
    if config.assistant().is_none_or(|assistant| assistant.clusters.is_none()) {
        return Ok(());
    }
    let found = tensors.order.as_ref().ok_or_else(|| tensors.missing(ORDER))?.len();
    let tokens = config.tokens();
    if found == tokens { Ok(()) } else { Err(tensors.misshapen(ORDER, &[tokens], &[found])) }
}
