//! Scores of the token clusters nearest to a state, on the device: a small part of an assistant's
//! output matrix. Clusters are chosen and multiplied as experts are.

use foretoken_model::ModelConfig;
use foretoken_model::error::Result;
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::matrix::Matrix;
use super::network::Network;
use super::product::{Out, Product, SlotProduct};
use super::state::{SCORED, State};
use super::step::Step;
use crate::cpu::assistant::Clusters;
use crate::cpu::simd::LANES;

/// Kernels that score the clusters nearest to a state.
pub struct ClusterSteps {
    count: usize,
    nearest: usize,
    /// Tokens of a cluster, and the width of its scores.
    size: usize,
    width: usize,
    /// Tokens of all clusters.
    tokens: usize,
    centroids: Product,
    top_k: Step,
    arrange: Step,
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
        let scores = numbers(SCORED * count.next_multiple_of(LANES))?;
        let [choices, slots_of_rows, slot_of]: [Buffer; 3] =
            [numbers(2 * slots)?, numbers(3 * slots)?, numbers(slots)?];
        let (given, tokens) = (numbers(slots * width)?, numbers(clusters.order.len())?);
        device.write(&tokens, clusters.order.iter().copied());
        let centroids = [Matrix::upload(device, &clusters.centroids)?];
        let (output, scored) = (&network.output, &state.scored);
        let scatter = [&choices, &slot_of, &given, &tokens, &state.logits];
        Ok(Self {
            count,
            nearest,
            size: clusters.size,
            width,
            tokens: config.vocabulary,
            centroids: Product::new(device, &centroids, scored, Out::Store(&scores))?,
            top_k: Step::new(device, Kernel::TopK, &[&scores, &network.vectors, &choices])?,
            arrange: Step::new(device, Kernel::Arrange, &[&choices, &slots_of_rows, &slot_of])?,
            product: SlotProduct::new(device, output, count, scored, true, &given, &slots_of_rows)?,
            scatter: Step::new(device, Kernel::Scatter, &scatter)?,
        })
    }

    /// Computes the logits of the first `rows` scored rows.
    pub fn run(&self, pass: &mut Dispatches, rows: usize) {
        let Self { count, nearest, size, width, tokens, .. } = *self;
        let slots = rows * nearest;
        self.centroids.run(pass, rows);
        // A softmax over the nearest, of which only the order counts.
        let sizes = [count, count.next_multiple_of(LANES), nearest, 1, 0].map(|n| n as u32);
        let params = [&sizes[..], &[NONE, NONE, NONE, 1f32.to_bits(), 0]].concat();
        self.top_k.run(pass, &params, [rows, 1]);
        // A cluster has at most one slot per row.
        let tile = self.product.tile(rows);
        self.arrange.run(pass, &[slots, nearest, tile].map(|n| n as u32), [1, 1]);
        self.product.run(pass, slots, tile);
        let stride = tokens.next_multiple_of(LANES);
        let params = [nearest, size, width, tokens, stride].map(|n| n as u32);
        self.scatter.run(pass, &params, [rows, 1]);
    }
}
