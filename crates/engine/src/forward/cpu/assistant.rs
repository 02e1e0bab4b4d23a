//! The weights that an assistant has beside those of its layers.

use super::packing::{panels, reordered};
use super::panels::Panels;
use super::simd::LANES;
use crate::error::Result;
use crate::model::assistant_tensors::{CENTROIDS, POST_PROJECTION, PRE_PROJECTION};
use crate::model::weights::{EMBEDDING, OUTPUT};
use crate::model::{Clusters as Sizes, ModelConfig, StoredRows, Weights};
use crate::token::TokenId;

#[derive(Debug)]
pub struct Assistant {
    /// The target's, of which a draft reads a few rows: they stay in its file.
    pub embedding: StoredRows, // [tokens, carried]
    /// Of a scaled embedding and the state that is carried the state that enters the first layer.
    pub pre_projection: Panels, // [hidden, 2 * carried]
    /// Of the state after the final norm the one that is carried on.
    pub post_projection: Panels, // [carried, hidden]
    pub clusters: Option<Clusters>,
}

/// Which rows of the output matrix are multiplied with a state: those of the clusters it is nearest to.
#[derive(Debug)]
pub struct Clusters {
    pub centroids: Panels, // [clusters, hidden]
    /// Clusters that are looked at.
    pub nearest: usize,
    /// Tokens of a cluster.
    pub size: usize,
    /// All tokens, cluster by cluster.
    pub order: Vec<TokenId>,
}

impl Assistant {
    /// # Errors
    /// Those of [`super::network::Network::load`].
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        assistant: &crate::model::Assistant,
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

    /// Panels of a cluster.
    pub fn panels(&self) -> usize {
        self.size.div_ceil(LANES)
    }

    /// The output matrix with the rows of each cluster in panels of their own.
    ///
    /// # Errors
    /// Those of [`super::network::Network::load`].
    pub fn output(&self, weights: &Weights) -> Result<Panels> {
        let rows = self.order.chunks(self.size).flat_map(|cluster| {
            let filled = self.panels() * LANES;
            (0..filled).map(|place| cluster.get(place).map(|&token| token as usize))
        });
        reordered(weights, OUTPUT, &rows.collect::<Vec<_>>())
    }
}
