//! Scores of the token clusters nearest to a state, on the device: a small part of an assistant's
//! output matrix. Clusters are chosen and multiplied as experts are.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::matrix::Matrix;
use super::network::Network;
use super::product::SlotProduct;
use super::ranking::{Ranking, Weighting};
use super::state::{Ranked, SCORED, State};
use super::step::Step;
use crate::cpu::assistant::Clusters;
use crate::cpu::simd::LANES;

/// Kernels that score the clusters nearest to a state.
pub struct ClusterSteps {
    nearest: usize,
    /// Tokens of a cluster, and the width of its scores.
    size: usize,
    width: usize,
    /// Tokens of all clusters.
    tokens: usize,
    ranking: Ranking,
    product: SlotProduct,
    scatter: Step,
}

impl ClusterSteps {
    /// Binds the kernels to the scored rows. The output matrix has the rows of each cluster in
    /// panels of their own.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        clusters: &Clusters,
        network: &Network,
        state: &State,
        config: &ModelConfig,
    ) -> Result<Self> {
        let (count, nearest) = (clusters.centroids.rows(), clusters.nearest);
        let (width, slots) = (clusters.panels() * LANES, SCORED * nearest);
        let numbers = |count: usize| device.buffer(4 * count);
        let ranked = Ranked::new(device, SCORED, count, nearest)?;
        let (given, tokens) = (numbers(slots * width)?, numbers(clusters.order.len())?);
        device.write(&tokens, clusters.order.iter().copied());
        let centroids = Matrix::upload(device, &clusters.centroids)?;
        let (output, scored) = (&network.output, &state.scored);
        let scatter = [&ranked.choices, &ranked.slot_of, &given, &tokens, &state.logits];
        // Of a softmax over the nearest clusters, only the order counts.
        let (vectors, softmax) = (&network.vectors, Weighting::SOFTMAX);
        Ok(Self {
            nearest,
            size: clusters.size,
            width,
            tokens: config.vocabulary,
            ranking: Ranking::new(device, &centroids, scored, vectors, &ranked, softmax)?,
            product: SlotProduct::new(device, output, count, scored, true, &given, &ranked.slots)?,
            scatter: Step::new(device, Kernel::Scatter, &scatter)?,
        })
    }

    /// Computes the logits of the first `rows` scored rows.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let Self { nearest, size, width, tokens, .. } = *self;
        // A cluster has at most one slot per row.
        let tile = self.product.tile(rows);
        let slots = self.ranking.run(pass, rows, tile);
        self.product.run(pass, slots, tile);
        let stride = tokens.next_multiple_of(LANES);
        let params = [nearest, size, width, tokens, stride].map(|n| n as u32);
        self.scatter.run(pass, &params, [rows, 1]);
    }
}
