//! Norms of states on the device.

use super::kernels::NONE;
use crate::cpu::simd::LANES;

/// Operations on the states that the next norm carries out first. Weights are offsets into the
/// vectors of the network.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    /// Output bias of the part that was added last, or [`NONE`].
    pub bias: u32,
    /// Weight of the norm after which the branch is added, or [`NONE`].
    pub norm: u32,
    /// Factor of the state after both.
    pub factor: f32,
}

/// A norm of rows of states.
#[derive(Debug, Clone, Copy)]
pub struct Norm {
    /// State of the first output row.
    pub first: usize,
    /// Numbers per state.
    pub length: usize,
    /// Offset of the weight, or [`NONE`] for the states themselves.
    pub weight: u32,
    pub epsilon: f64,
    pub pending: Pending,
    /// Epsilon of the branch's norm.
    pub pending_epsilon: f64,
}

impl Pending {
    pub const NOTHING: Self = Self { bias: NONE, norm: NONE, factor: 1.0 };
}

impl Norm {
    /// A norm of all states with the weight at offset 0, with nothing pending.
    pub fn plain(length: usize, epsilon: f64) -> Self {
        Self { first: 0, length, weight: 0, epsilon, pending: Pending::NOTHING, pending_epsilon: 0.0 }
    }

    /// Immediates of `norm.wgsl`.
    pub fn params(&self) -> [u32; 11] {
        let width = self.length.next_multiple_of(LANES) as u32;
        let [epsilon, pending_epsilon] =
            [self.epsilon, self.pending_epsilon].map(|epsilon| (epsilon as f32).to_bits());
        let Pending { bias, norm, factor } = self.pending;
        let (first, length) = (self.first as u32, self.length as u32);
        let factor = factor.to_bits();
        [first, length, width, width, self.weight, norm, epsilon, 0, pending_epsilon, factor, bias]
    }
}
