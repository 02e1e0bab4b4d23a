//! Tensors of an assistant outside its layers.

use super::super::config::{Assistant, Clusters, ModelConfig};
use super::super::tensors::{ORDER, Tensors};
use super::spec::{Place, TensorSpec};
use crate::error::Result;

/// Projects the target's embedding and the carried state to the assistant's state, `[hidden, 2 *
/// carried]`.
pub const PRE_PROJECTION: &str = "nextn.pre_projection.weight";
/// Projects the assistant's state to the carried state, `[carried, hidden]`.
pub const POST_PROJECTION: &str = "nextn.post_projection.weight";
/// Centroids of the clusters of tokens, `[clusters, hidden]`.
pub const CENTROIDS: &str = "masked_embd_centroids.weight";

pub(super) const TENSORS: [TensorSpec; 3] = [
    TensorSpec::new(PRE_PROJECTION, &["pre_projection.weight"], |p| vec![p.hidden(), 2 * p.config.carried()]),
    TensorSpec::new(POST_PROJECTION, &["post_projection.weight"], |p| vec![p.config.carried(), p.hidden()]),
    TensorSpec::new(CENTROIDS, &["masked_embedding.centroids.weight"], |p| {
        vec![clusters_of(p).map_or(0, |clusters| clusters.count), p.hidden()]
    })
    .when(|p| clusters_of(p).is_some()),
];
const HUGGING_FACE_ORDER: &str = "masked_embedding.token_ordering";

fn clusters_of(place: Place<'_>) -> Option<Clusters> {
    place.config.assistant().and_then(|assistant: &Assistant| assistant.clusters)
}

/// Returns whether `name` is the list of tokens by cluster, in either format.
pub(crate) fn is_order(name: &str) -> bool {
    let name = name.strip_suffix(".weight").unwrap_or(name);
    name == ORDER || name == HUGGING_FACE_ORDER
}

/// Returns the clusters of a GGUF file, in which only the shape of the centroids tells their
/// number.
pub(crate) fn clusters(tensors: &Tensors) -> Option<Clusters> {
    let count = *tensors.stored.get(CENTROIDS)?.shape.first().filter(|&&count| count > 0)?;
    Some(Clusters { count, nearest: Clusters::USUAL.min(count) })
}

/// Checks that the list of tokens exists if the model has clusters, and that its length is right.
///
/// # Errors
/// `Error::BadModel` if it is missing or has the wrong length.
pub(super) fn check_order(tensors: &Tensors, config: &ModelConfig) -> Result<()> {
    if config.assistant().is_none_or(|assistant| assistant.clusters.is_none()) {
        return Ok(());
    }
    let found = tensors.order.as_ref().ok_or_else(|| tensors.missing(ORDER))?.len();
    let tokens = config.tokens();
    if found == tokens { Ok(()) } else { Err(tensors.misshapen(ORDER, &[tokens], &[found])) }
}
