//! Per-layer inputs (Gemma 4's per-layer embeddings): the sum of a table row, read from the file,
//! and a projection of the token's embedding.

use std::f32::consts::FRAC_1_SQRT_2;

use super::{Completion, PassContext, Pending};
use crate::cpu::network::{PerLayerInput, PerLayerInputs};
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl<'a> PassContext<'a> {
    /// Computes the inputs of all layers for all rows:
    /// `(norm(projection * embedding) + sqrt(width) * table) / sqrt(2)`, by parts of `width`.
    /// `prefetch`: weights read next, as in the other products.
    pub fn compute_per_layer_inputs(
        &self,
        member: &Member<'_>,
        per_layer: &PerLayerInputs,
        width: usize,
        prefetch: &Panels,
    ) {
        let workspace = self.workspace;
        let normed = self.normalise(member, None, Completion::default(), 0..self.nodes, self.normed);
        let task = self.task(&per_layer.projection, normed, workspace.per_layer_inputs.at(0), false);
        self.products(member, &[task], prefetch);
        // Folds the factor 1 / sqrt(hidden) before the norm into its epsilon.
        let epsilon = (self.config.norm_epsilon * self.config.hidden as f64) as f32;
        let scale = (width as f32).sqrt();
        let (stride, columns) = (self.input_stride(per_layer), per_layer.projection.rows());
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit, and there are as many numbers in both.
                unsafe {
                    let inputs = workspace.per_layer_inputs.at(row * stride);
                    for at in (0..columns).step_by(width) {
                        let part = inputs.add(at);
                        (self.kernels.rms_norm)(part, per_layer.norm.as_ptr(), part, width, epsilon);
                    }
                    let table = &workspace.table[row * columns..][..columns];
                    (self.kernels.add_scaled)(inputs, table.as_ptr(), columns, scale, FRAC_1_SQRT_2);
                }
            }
        });
        member.barrier();
    }

    /// Applies layer `index`'s per-layer input; the result is added with the next norm.
    pub(super) fn apply_per_layer_input(
        &self,
        member: &Member<'_>,
        input: &'a PerLayerInput,
        index: usize,
        pending: Pending<'a>,
        prefetch: &Panels,
    ) -> Pending<'a> {
        let (workspace, width) = (self.workspace, input.gate.rows());
        let Some(per_layer) = &self.network.per_layer else { return pending };
        let completion = Completion { pending: Pending { scale: 1.0, ..pending }, tap: None };
        let normed = self.normalise(member, None, completion, 0..self.nodes, self.normed);
        let gated = workspace.gated.of(width);
        let (stride, input_stride) = (width.next_multiple_of(LANES), self.input_stride(per_layer));
        debug_assert_eq!(gated.width, stride);
        self.products(member, &[self.task(&input.gate, normed, gated.row(0), false)], &input.projection);
        let times = self.kernels.times(self.config.activation);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let own = gated.row(row);
                // SAFETY: the row belongs to this unit; behind both there is room for whole
                // vectors.
                unsafe {
                    times(own, workspace.per_layer_inputs.at(row * input_stride + index * width), stride);
                    self.quantise(gated, row, 0..width, own);
                }
            }
        });
        member.barrier();
        self.add_product(member, &input.projection, gated, true, prefetch);
        Pending { norm: Some(&input.norm), ..pending }
    }

    /// Numbers from one row's per-layer inputs to the next row's.
    fn input_stride(&self, per_layer: &PerLayerInputs) -> usize {
        per_layer.projection.rows().next_multiple_of(LANES)
    }
}
