//! What layers are told of tokens beside their states (Gemma 4's per-layer embeddings): a row of a table that stays in
//! its file, and what is made of the embedding.

use super::{Arriving, Pending, Phases};
use crate::forward::cpu::network::{PerLayer, Told};
use crate::forward::cpu::panels::Panels;
use crate::forward::cpu::simd::LANES;
use crate::forward::cpu::team::Member;

// What is unsafe here rests on what is said in `pass/mod.rs`.
impl<'a> Phases<'a> {
    /// What all layers will be told of the rows: the row of the table, which is there already, and the norm of what is
    /// made of the embedding, both weighed alike. `then` is what is read next, as it is below.
    pub fn tell(&self, member: &Member<'_>, per_layer: &PerLayer, width: usize, then: &Panels) {
        let workspace = self.workspace;
        let normed = self.normalise(member, None, Arriving::default(), 0..self.nodes, self.normed);
        let task = self.task(&per_layer.projection, normed, workspace.told.at(0), false);
        self.products(member, &[task], then);
        // What is multiplied by 1 / sqrt(hidden) before a norm has a larger epsilon in its place.
        let epsilon = (self.config.norm_epsilon * self.config.hidden as f64) as f32;
        let scale = (width as f32).sqrt();
        let (stride, columns) = (self.told_stride(per_layer), per_layer.projection.rows());
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row is this unit's, and there are as many numbers in both.
                unsafe {
                    let told = workspace.told.at(row * stride);
                    for at in (0..columns).step_by(width) {
                        let part = told.add(at);
                        (self.kernels.rms_norm)(part, per_layer.norm.as_ptr(), part, width, epsilon);
                    }
                    let table = &workspace.table[row * columns..][..columns];
                    let told = std::slice::from_raw_parts_mut(told, columns);
                    for (number, table) in told.iter_mut().zip(table) {
                        *number = (*number + table * scale) * std::f32::consts::FRAC_1_SQRT_2;
                    }
                }
            }
        });
        member.meet();
    }

    /// Lets layer number `index` make something of what it is told; what it gives is pending.
    pub(super) fn make_of_told(
        &self,
        member: &Member<'_>,
        told: &'a Told,
        index: usize,
        pending: Pending<'a>,
        then: &Panels,
    ) -> Pending<'a> {
        let (workspace, width) = (self.workspace, told.gate.rows());
        let Some(per_layer) = &self.network.per_layer else { return pending };
        let arriving = Arriving { pending: Pending { scale: 1.0, ..pending }, tap: None };
        let normed = self.normalise(member, None, arriving, 0..self.nodes, self.normed);
        let gated = workspace.gated.of(width);
        let (stride, told_stride) = (width.next_multiple_of(LANES), self.told_stride(per_layer));
        debug_assert_eq!(gated.width, stride);
        self.products(member, &[self.task(&told.gate, normed, gated.row(0), false)], &told.projection);
        let times = self.kernels.times(self.config.family.activation);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let own = gated.row(row);
                // SAFETY: the row is this unit's; behind both there is room for whole vectors.
                unsafe {
                    times(own, workspace.told.at(row * told_stride + index * width), stride);
                    self.round(gated, row, 0..width, own);
                }
            }
        });
        member.meet();
        self.add_product(member, &told.projection, gated, true, then);
        Pending { norm: Some(&told.norm), ..pending }
    }

    /// Numbers from what layers are told of a row to what they are told of the next.
    fn told_stride(&self, per_layer: &PerLayer) -> usize {
        per_layer.projection.rows().next_multiple_of(LANES)
    }
}
