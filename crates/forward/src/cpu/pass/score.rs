//! End of a pass: logits of the requested rows, and the sums from which their peaks are found.

use foretoken_model::Scoring;

use super::products::Task;
use super::{Completion, PassContext, Pending};
use crate::cpu::head::Head;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::slices::STRETCH;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Computes the requested logits, and the largest one and the sum of exponentials of every
    /// slice.
    pub(super) fn score(&self, member: &Member<'_>, pending: Pending<'_>) {
        let (workspace, vocabulary) = (self.workspace, self.vocabulary);
        let stride = vocabulary.next_multiple_of(LANES);
        let to = std::slice::from_ref(&workspace.scored);
        let completion = Completion { pending, tap: None };
        let scored =
            self.normalise(member, Some(&self.network.output_norm), completion, self.rows.clone(), to);
        let task = Task {
            weights: &self.network.output,
            panels: vocabulary.div_ceil(LANES),
            inputs: scored,
            rows: 0..self.rows.len(),
            out: workspace.logits.at(0),
            stride,
            add: false,
        };
        // The next pass starts with the same weights.
        let first = self.network.layers.first().map_or(&*self.network.output, |layer| layer.mixer.first());
        let selector = self.network.head.as_ref().and_then(|head| head.block()?.selector());
        let clusters = self.network.head.as_ref().and_then(Head::clusters);
        match (selector, clusters) {
            (None, None) => self.products(member, &[task], first),
            (None, Some(clusters)) => self.score_nearest(member, clusters, scored),
            (Some(selector), _) => {
                let rows = 0..self.rows.len();
                let position_factors =
                    self.task(&selector.position, scored, workspace.position_factors.at(0), false);
                self.products(member, &[task, Task { rows, ..position_factors }], first);
            }
        }
        let slices = vocabulary.div_ceil(STRETCH);
        member.share(self.rows.len() * slices, 1, |units| {
            for (row, slice) in units.map(|unit| (unit / slices, unit % slices)) {
                let start = slice * STRETCH;
                let length = STRETCH.min(vocabulary - start);
                let logits = workspace.logits.at(row * stride + start);
                // SAFETY: a slice belongs to this unit; after the last one there is room for whole
                // vectors.
                unsafe {
                    let whole = length.next_multiple_of(LANES);
                    if self.config.scoring != Scoring::PLAIN {
                        (self.kernels.score)(logits, whole, self.config.scoring);
                    }
                    (length..whole).for_each(|padding| *logits.add(padding) = f32::NEG_INFINITY);
                    let found = (self.kernels.largest_and_sum)(logits, whole);
                    workspace.slices.at(row * slices + slice).write(found);
                }
            }
        });
        member.barrier();
    }
}
