//! Weights of multi-head latent attention (MLA) in a network on the device.

use foretoken_model::Latent as Sizes;
use foretoken_model::error::Result;

use super::device::GpuDevice;
use super::matrix::Matrix;
use crate::cpu::latent as cpu;
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;

/// Weights of a layer. Vectors are offsets into the vectors of the network.
#[derive(Debug)]
pub struct Latent {
    /// Index of the kind of attention.
    pub kind: usize,
    pub sizes: Sizes,
    /// Low-rank projection of queries and its norm.
    pub low_rank: Option<(Matrix, u32)>, // [queries, hidden], [queries]
    pub queries: Matrix, // [heads * (plain + turned), queries or hidden]
    /// Projection to the latent and to the key's rotated part.
    pub latents: Matrix, // [size + turned, hidden]
    pub norm: u32,       // [size]
    /// Key projections of all heads, applied to queries.
    pub keys: Matrix, // [heads, size, plain]
    /// Value projections of all heads, applied to mixed latents.
    pub values: Matrix, // [heads, value, size]
}

impl Latent {
    /// Uploads a layer's weights; `push` appends a vector to the network's.
    ///
    /// # Errors
    /// As [`Matrix::upload`].
    pub fn upload(
        device: &GpuDevice,
        of: &cpu::Latent,
        push: &mut impl FnMut(&[f32]) -> u32,
    ) -> Result<Self> {
        let stack = |matrices: &[Panels]| Matrix::stack(device, &matrices.iter().collect::<Vec<_>>());
        let low_rank = of.q_a.as_ref().map(|(matrix, norm)| (Matrix::upload(device, matrix), push(norm)));
        Ok(Self {
            kind: of.kind,
            sizes: of.sizes,
            low_rank: low_rank.map(|(matrix, norm)| Result::Ok((matrix?, norm))).transpose()?,
            queries: Matrix::upload(device, &of.q_b)?,
            latents: Matrix::upload(device, &of.kv_a)?,
            norm: push(&of.kv_a_norm),
            keys: stack(&of.k_b)?,
            values: stack(&of.v_b)?,
        })
    }

    /// Matrices whose inputs are rows.
    pub fn of_rows(&self) -> impl Iterator<Item = &Matrix> {
        self.low_rank.iter().map(|(matrix, _)| matrix).chain([&self.queries, &self.latents])
    }

    /// Matrices of all heads, whose inputs are rows at heads.
    pub fn of_heads(&self) -> [&Matrix; 2] {
        [&self.keys, &self.values]
    }

    pub fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        self.of_rows().chain(self.of_heads())
    }

    pub fn heads(&self) -> usize {
        self.keys.panels * LANES / self.sizes.size
    }
}
