//! Mixture of experts in a pass: routing, then each selected expert's weights are read once for all
//! its rows, then the weighted outputs are added row by row. A row sums its experts in the order of
//! its own ranking, so that its bits do not depend on the routes of other rows.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::products::Task;
use super::{Completion, PassContext, add};
use crate::cpu::activations::TileRow;
use crate::cpu::feed_forward::{Dense, DenseAndExperts, Experts, WithSharedExpert};
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;
use crate::routing::choose;

/// Assignment of rows to experts. A slot is one row in one expert. The slots of an expert are
/// consecutive and in the order of their rows.
#[derive(Default)]
struct Routes {
    /// Experts with at least one row, ascending, and their slots.
    groups: Vec<(usize, Range<usize>)>,
    /// Row of each slot.
    rows: Vec<usize>,
    /// Slot of each row and rank, `[rows, top_k]`.
    slots: Vec<usize>,
}

impl Routes {
    /// Builds the routes from the expert of every row and rank, `[rows, top_k]`.
    fn of(selected: &[usize], top_k: usize) -> Self {
        let mut order: Vec<usize> = (0..selected.len()).collect();
        order.sort_by_key(|&choice| selected[choice]);
        let mut routes = Self { slots: vec![0; selected.len()], ..Self::default() };
        for (slot, choice) in order.into_iter().enumerate() {
            routes.rows.push(choice / top_k);
            routes.slots[choice] = slot;
            match routes.groups.last_mut().filter(|(expert, _)| *expert == selected[choice]) {
                Some((_, slots)) => slots.end = slot + 1,
                None => routes.groups.push((selected[choice], slot..slot + 1)),
            }
        }
        routes
    }
}

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Computes the branch of a layer with a dense network beside its experts: the sum of both
    /// outputs, each normed. `normed`: inputs of the dense network.
    pub fn run_dense_and_experts(
        &self,
        member: &Member<'_>,
        both: &DenseAndExperts,
        normed: &Inputs,
        prefetch: &Panels,
    ) {
        let (workspace, hidden) = (self.workspace, self.config.hidden);
        self.feed_forward(member, &both.dense, normed, true, &both.experts.router);
        self.norm_branch(member, &both.dense_post_norm, |row, branch| {
            // SAFETY: the row belongs to this unit, and both have as many numbers.
            unsafe {
                std::ptr::copy_nonoverlapping(branch, workspace.dense_output.at(row * self.width()), hidden)
            }
        });
        let norm = |weight, to| {
            self.normalise(
                member,
                Some(weight),
                Completion::default(),
                0..self.nodes,
                std::slice::from_ref(to),
            )
        };
        let router_input = norm(&both.router_norm, &workspace.router_input);
        let routed = norm(&both.experts_norm, &workspace.normed[0]);
        self.route(member, &both.experts, router_input, routed, true, prefetch);
        self.norm_branch(member, &both.experts_post_norm, |row, branch| {
            // SAFETY: as above.
            unsafe {
                add(branch, std::slice::from_raw_parts(workspace.dense_output.at(row * self.width()), hidden))
            }
        });
    }

    /// Adds the output of the shared expert, weighted by its gate, and those of the routed experts
    /// to the states.
    pub fn run_with_shared_expert<'a>(
        &'a self,
        member: &Member<'_>,
        shared: &'a WithSharedExpert,
        normed: &Inputs,
        prefetch: &Panels,
    ) {
        let (gates, hidden) = (&self.workspace.experts.gates, self.config.hidden);
        let Some(gate) = &shared.gate else {
            self.feed_forward(member, &shared.dense, normed, false, &shared.experts.router);
            return self.route(member, &shared.experts, normed, normed, false, prefetch);
        };
        self.feed_forward(member, &shared.dense, normed, true, gate);
        self.products(member, &[self.task(gate, normed, gates.at(0), false)], &shared.experts.router);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit, and the products are over.
                unsafe {
                    let weight = (self.kernels.sigmoid)(*gates.at(row * LANES));
                    let branch = std::slice::from_raw_parts_mut(self.branch(row), hidden);
                    branch.iter_mut().for_each(|number| *number *= weight);
                    add(self.hidden(row), branch);
                }
            }
        });
        member.barrier();
        self.route(member, &shared.experts, normed, normed, false, prefetch);
    }

    /// Norms every row's branch in place and calls `then` with it.
    fn norm_branch(&self, member: &Member<'_>, norm: &[f32], then: impl Fn(usize, *mut f32)) {
        let (hidden, epsilon) = (self.config.hidden, self.config.post_norm_epsilon as f32);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let branch = self.branch(row);
                // SAFETY: the row belongs to this unit.
                unsafe { (self.kernels.rms_norm)(branch, norm.as_ptr(), branch, hidden, epsilon) };
                then(row, branch);
            }
        });
        member.barrier();
    }

    /// Runs every row through its experts and adds their output as [`Self::add_product`] does.
    /// `router_input`: inputs of the router; `normed`: inputs of the experts.
    pub fn route<'a>(
        &'a self,
        member: &Member<'_>,
        experts: &'a Experts,
        router_input: &Inputs,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        let Some(config) = self.config.experts() else { return };
        let buffers = &self.workspace.experts;
        let router = self.task(&experts.router, router_input, buffers.scores.at(0), false);
        self.products(member, &[router], experts.experts.first().map_or(prefetch, |expert| &expert.gate));
        self.select(member, config, experts);
        let mut routes = Routes::default();
        member.on_every_member(|| routes = self.routes(config.top_k));
        if member.index() == 0 {
            self.workspace.experts_read.fetch_add(routes.groups.len(), Relaxed);
        }
        self.gather(member, &routes, normed);
        let of = |(expert, slots): &(usize, Range<usize>)| (&experts.experts[*expert], slots.clone());
        let networks: Vec<(&Dense, Range<usize>)> = routes.groups.iter().map(of).collect();
        let first = networks.first().map_or(prefetch, |(dense, _)| &dense.down);
        self.gate(member, &networks, &buffers.inputs, &buffers.gated, first);
        let down = |&(dense, ref rows): &(&'a Dense, Range<usize>)| Task {
            rows: rows.clone(),
            ..self.task(&dense.down, &buffers.gated, buffers.outputs.at(0), false)
        };
        let tasks: Vec<Task<'_>> = networks.iter().map(down).collect();
        self.products(member, &tasks, prefetch);
        self.add_expert_outputs(member, experts, &routes, to_branch);
    }

    /// Selects the experts of every row by the router's scores.
    fn select(&self, member: &Member<'_>, config: &foretoken_model::Experts, experts: &Experts) {
        let buffers = &self.workspace.experts;
        let stride = config.count.next_multiple_of(LANES);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                // SAFETY: the row belongs to this unit, and the router's product is over.
                unsafe {
                    let scores = buffers.scores.at(row * stride);
                    if let Some(bias) = &experts.router_bias {
                        add(scores, &bias[..config.count]);
                    }
                    let scores = std::slice::from_raw_parts(scores, config.count);
                    let selected = choose(scores, config, experts.selection_bias.as_deref());
                    for (rank, (expert, weight)) in selected.into_iter().enumerate() {
                        let scale = experts.scales.as_ref().map_or(1.0, |scales| scales[expert]);
                        buffers.choices.at(row * config.top_k + rank).write((expert, weight * scale));
                    }
                }
            }
        });
        member.barrier();
    }

    /// Reads the experts that all rows selected.
    fn routes(&self, top_k: usize) -> Routes {
        // SAFETY: choices are not written after the barrier that ended the ranking.
        let choices =
            (0..self.nodes * top_k).map(|at| unsafe { self.workspace.experts.choices.at(at).read() });
        Routes::of(&choices.map(|(expert, _)| expert).collect::<Vec<_>>(), top_k)
    }

    /// Copies each row into its slots.
    fn gather(&self, member: &Member<'_>, routes: &Routes, normed: &Inputs) {
        let (inputs, hidden, tile) = (&self.workspace.experts.inputs, self.config.hidden, self.kernels.tile);
        member.share(routes.groups.len(), 1, |groups| {
            for (_, slots) in &routes.groups[groups] {
                for slot in slots.clone() {
                    let first = slot - (slot - slots.start) % tile;
                    let tile_row = TileRow { first, rows: tile.min(slots.end - first), row: slot };
                    // SAFETY: the slots of a group belong to this unit.
                    unsafe {
                        let (from, to) = (normed.row(routes.rows[slot]), inputs.row(slot));
                        std::ptr::copy_nonoverlapping(from, to, hidden);
                        self.quantise_at(inputs, tile_row, 0..hidden, to);
                    }
                }
            }
        });
        member.barrier();
    }

    /// Sums the outputs of a row's experts by their weights, highest first, and adds the sum to the
    /// state, or writes it to the branch if `to_branch`.
    fn add_expert_outputs(&self, member: &Member<'_>, experts: &Experts, routes: &Routes, to_branch: bool) {
        let (hidden, buffers, top_k) = (self.config.hidden, &self.workspace.experts, experts.top_k);
        member.share(self.nodes, 1, |rows| {
            let mut sum = vec![0f32; hidden];
            for row in rows {
                sum.fill(0.0);
                for choice in row * top_k..(row + 1) * top_k {
                    // SAFETY: the row belongs to this unit, and the experts' products are over.
                    let (weight, output) = unsafe {
                        let (expert, weight) = buffers.choices.at(choice).read();
                        let output = buffers.outputs.at(routes.slots[choice] * self.width());
                        if let Some(biases) = &experts.experts[expert].biases {
                            add(output, &biases.down[..hidden]);
                        }
                        (weight, std::slice::from_raw_parts(output, hidden))
                    };
                    sum.iter_mut().zip(output).for_each(|(sum, number)| *sum += weight * number);
                }
                // SAFETY: as above.
                unsafe {
                    if to_branch {
                        std::ptr::copy_nonoverlapping(sum.as_ptr(), self.branch(row), hidden);
                    } else {
                        add(self.hidden(row), &sum);
                    }
                }
            }
        });
        member.barrier();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_group_rows_by_expert_and_find_them_again() {
        let routes = Routes::of(&[2, 0, 2, 1, 0, 2], 2);
        assert_eq!(routes.groups, [(0, 0..2), (1, 2..3), (2, 3..6)]);
        assert_eq!(routes.rows, [0, 2, 1, 0, 1, 2]);
        assert_eq!(routes.slots, [3, 0, 4, 2, 1, 5]);
    }
}
