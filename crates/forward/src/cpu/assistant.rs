//! Weights of an assistant beside those of its layers.

use foretoken_model::error::Result;
use foretoken_model::tables::assistant::{CENTROIDS, POST_PROJECTION, PRE_PROJECTION};
use foretoken_model::tables::outer::{EMBEDDING, OUTPUT};
use foretoken_model::token::TokenId;
use foretoken_model::{Clusters as Sizes, ModelConfig, StoredRows, Weights};

use super::packing::{panels, reordered};
use super::panels::Panels;
use super::simd::LANES;

#[derive(Debug)]
pub struct Assistant {
    /// Embedding of the target. A draft reads a few rows, so they stay in the file.
    pub embedding: StoredRows, // [tokens, carried]
    /// Projection of the scaled embedding and the input state to the state that enters the first
    /// layer.
    pub pre_projection: Panels, // [hidden, 2 * carried]
    /// Projection of the state after the final norm to the input state of the next step.
    pub post_projection: Panels, // [carried, hidden]
    pub clusters: Option<Clusters>,
}

/// Token clusters: only the output rows of the clusters nearest to a state are multiplied.
#[derive(Debug)]
pub struct Clusters {
    pub centroids: Panels, // [clusters, hidden]
    /// Clusters that are scored.
    pub nearest: usize,
    /// Tokens in a cluster.
    pub size: usize,
    /// Token ids, cluster by cluster.
    pub order: Vec<TokenId>,
}

impl Assistant {
    /// Loads the weights.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        assistant: &foretoken_model::Assistant,
    ) -> Result<Self> {
        Ok(Self {
            embedding: weights.rows(EMBEDDING)?,
            pre_projection: panels(weights, PRE_PROJECTION)?,
            post_projection: panels(weights, POST_PROJECTION)?,
            clusters: assistant
                .clusters
                .map(|sizes| Clusters::load(weights, sizes, config.vocabulary))
                .transpose()?,
        })
    }
}

impl Clusters {
    fn load(weights: &Weights, sizes: Sizes, tokens: usize) -> Result<Self> {
        let (nearest, size) = (sizes.nearest, sizes.size(tokens));
        let order = weights.order(tokens)?;
        Ok(Self { centroids: panels(weights, CENTROIDS)?, nearest, size, order })
    }

    /// Panels in a cluster.
    pub fn panels(&self) -> usize {
        self.size.div_ceil(LANES)
    }

    /// Packs the output matrix with each cluster's rows in panels of their own.
    ///
    /// # Errors
    /// As [`super::network::Network::load`].
    pub fn output(&self, weights: &Weights) -> Result<Panels> {
        let rows = self.order.chunks(self.size).flat_map(|cluster| {
            let filled = self.panels() * LANES;
            (0..filled).map(|index| cluster.get(index).map(|&token| token as usize))
        });
        reordered(weights, OUTPUT, &rows.collect::<Vec<_>>())
    }
}
