//! Scores of the token clusters nearest to a state: a small part of the output matrix.

use super::PassContext;
use super::products::WeightPanel;
use crate::cpu::assistant::Clusters;
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Computes the logits of the requested rows, whose normed states are `scored`. Tokens of the
    /// nearest clusters get the output matrix's scores; all others get the lowest of these less 1.
    pub(super) fn score_nearest(&self, member: &Member<'_>, clusters: &Clusters, scored: &Inputs) {
        let (workspace, rows) = (self.workspace, self.rows.len());
        let (centroids, nearest) = (&clusters.centroids, clusters.nearest);
        let stride = centroids.panels() * LANES;
        member.share(rows * centroids.panels(), 1, |units| {
            for (row, panel) in units.map(|unit| (unit / centroids.panels(), unit % centroids.panels())) {
                let out = workspace.cluster_scores.at(row * stride + panel * LANES);
                // SAFETY: the panel's scores of the row belong to this unit.
                unsafe { self.multiply_row(centroids, panel, scored, row, out) };
            }
        });
        member.barrier();
        member.share(rows, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit.
                let (scores, to) = unsafe {
                    let scores = workspace.cluster_scores.at(row * stride);
                    (
                        std::slice::from_raw_parts(scores, centroids.rows()),
                        std::slice::from_raw_parts_mut(workspace.nearest.at(row * nearest), nearest),
                    )
                };
                highest(scores, to);
            }
        });
        member.barrier();
        let panels = clusters.panels();
        member.share(rows * nearest * panels, 1, |units| {
            for (index, panel) in units.map(|unit| (unit / panels, unit % panels)) {
                let out = workspace.nearest_scores.at((index * panels + panel) * LANES);
                // SAFETY: the clusters are only read, and a panel's scores of the row are this
                // unit's.
                unsafe {
                    let cluster = *workspace.nearest.at(index);
                    let panel = cluster * panels + panel;
                    self.multiply_row(&self.network.output, panel, scored, index / nearest, out);
                }
            }
        });
        member.barrier();
        member.share(rows, 1, |rows| {
            // SAFETY: a row's logits belong to this unit.
            rows.for_each(|row| unsafe { self.scatter_scores(clusters, row) });
        });
        member.barrier();
    }

    /// Scatters a row's cluster scores to the logits of their tokens.
    ///
    /// # Safety
    /// The row's logits must belong to this unit, and its clusters' scores must have been written.
    unsafe fn scatter_scores(&self, clusters: &Clusters, row: usize) {
        let (nearest, width) = (clusters.nearest, clusters.panels() * LANES);
        let vocabulary = self.config.vocabulary;
        // SAFETY: guaranteed by the caller.
        let (logits, chosen, scores) = unsafe {
            let logits = self.workspace.logits.at(row * vocabulary.next_multiple_of(LANES));
            (
                std::slice::from_raw_parts_mut(logits, vocabulary),
                std::slice::from_raw_parts(self.workspace.nearest.at(row * nearest), nearest),
                std::slice::from_raw_parts(
                    self.workspace.nearest_scores.at(row * nearest * width),
                    nearest * width,
                ),
            )
        };
        let scores_by_cluster = || scores.chunks(width).map(|scores| &scores[..clusters.size]);
        let lowest = scores_by_cluster().flatten().copied().fold(f32::INFINITY, f32::min);
        logits.fill(lowest - 1.0);
        for (&cluster, scores) in chosen.iter().zip(scores_by_cluster()) {
            let tokens = &clusters.order[cluster * clusters.size..];
            tokens.iter().zip(scores).for_each(|(&token, &score)| logits[token as usize] = score);
        }
    }

    /// Multiplies a panel with one row; each row is a tile of its own.
    ///
    /// # Safety
    /// `out` must be valid for a panel's numbers and belong to this unit.
    unsafe fn multiply_row(
        &self,
        weights: &Panels,
        panel: usize,
        inputs: &Inputs,
        row: usize,
        out: *mut f32,
    ) {
        let next = weights.panel((panel + 1).min(weights.panels() - 1)).as_ptr();
        let panel = WeightPanel { weights, index: panel, next };
        // SAFETY: guaranteed by the caller.
        unsafe { self.multiply(panel, inputs, row..row + 1, out, LANES, false) };
    }
}

/// Finds the indices of the highest scores, highest first; of equal ones the first comes first.
fn highest(scores: &[f32], to: &mut [usize]) {
    let mut count = 0;
    for (index, score) in scores.iter().enumerate() {
        let rank = to[..count].partition_point(|&other| scores[other] >= *score);
        if rank < to.len() {
            count = to.len().min(count + 1);
            to[rank..count].rotate_right(1);
            to[rank] = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_scores_are_found_in_order_even_with_nan() {
        let mut found = [9; 3];
        highest(&[1.0, 4.0, 2.0, 4.0, 3.0, -1.0], &mut found);
        assert_eq!(found, [1, 3, 4]);
        highest(&[f32::NAN, 1.0, f32::NAN, 2.0], &mut found);
        assert!(found.iter().all(|&index| index < 4));
        let mut one = [0];
        highest(&[f32::NEG_INFINITY; 2], &mut one);
        assert_eq!(one, [0]);
    }
}
