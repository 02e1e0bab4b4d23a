//! Attention of a pass, divided among the members by heads, rows and runs of positions.

use std::ops::Range;
use std::sync::atomic::Ordering;

use foretoken_model::KvDtype;

use super::PassContext;
use crate::cpu::attention::{AttentionRun, Join};
use crate::cpu::attention_units::{AttentionShape, AttentionUnits, Unit};
use crate::cpu::cache::KvCache;
use crate::cpu::team::Member;
use crate::cpu::visible::Visible;

/// Attention of one layer.
pub struct LayerAttention<'a> {
    pub shape: AttentionShape,
    pub cache: &'a KvCache,
    /// Sink of each query head, or empty.
    pub sinks: &'a [f32],
    /// Positions that a row sees, itself included.
    pub window: usize,
    /// Rows see no rows after them.
    pub causal: bool,
}

/// A row's query heads that attend together.
#[derive(Clone, Copy)]
pub struct RowHeads {
    pub row: usize,
    pub group: usize,
}

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Attends with all heads of all rows. `load(heads, is_last, to)` writes queries to `to`, each
    /// time that a unit needs them; `is_last` is set for the unit that reads the row's own
    /// position. `finish(heads, join)` is called once; `join(out)` writes the result to `out`.
    pub(super) fn attend_by_runs(
        &self,
        member: &Member<'_>,
        layer: &LayerAttention<'_>,
        load: impl Fn(RowHeads, bool, *mut f32),
        mut finish: impl FnMut(RowHeads, &dyn Fn(*mut f32)),
    ) {
        let units = layer.shape.units(self.nodes, self.runs_of(layer), self.workspace.members);
        member.share(units.count(), 1, |range| {
            for unit in range.map(|index| units.unit(index, member.index())) {
                self.attend_in(member, layer, &units, &unit, &load);
                if units.units_of_result() > 1 {
                    let done = &self.workspace.runs_done[unit.place];
                    if done.fetch_add(1, Ordering::AcqRel) + 1 < units.units_of_result() {
                        continue;
                    }
                    done.store(0, Ordering::Relaxed);
                }
                for row in unit.rows.clone() {
                    let join = |out| self.join(layer, &units, &unit, row, out);
                    finish(RowHeads { row, group: unit.group }, &join);
                }
            }
        });
        member.barrier();
    }

    /// Computes the parts of a unit.
    fn attend_in(
        &self,
        member: &Member<'_>,
        layer: &LayerAttention<'_>,
        units: &AttentionUnits,
        unit: &Unit,
        load: impl Fn(RowHeads, bool, *mut f32),
    ) {
        let (group, heads) = (unit.group, heads_in(layer, unit.group));
        let queries_of_row = heads * layer.shape.query_size;
        let queries = self.workspace.scores.at(member.index() * self.workspace.scores_of_member);
        let scratch = queries.wrapping_add(units.heads_of_unit() * layer.shape.query_size);
        let last = units.has_last_run(unit);
        for (index, row) in unit.rows.clone().enumerate() {
            load(RowHeads { row, group }, last, queries.wrapping_add(index * queries_of_row));
        }
        if layer.cache.dtype() == KvDtype::Int8 {
            let (heads, size) = (unit.rows.len() * heads, layer.shape.query_size);
            // SAFETY: the member's memory has the queries of all rows.
            unsafe { (self.kernels.round_queries)(queries, heads, size) };
        }
        let first = self.visible_to(layer, unit.rows.start);
        for run in unit.runs.clone() {
            let same = heads == layer.shape.group
                && unit
                    .rows
                    .clone()
                    .skip(1)
                    .all(|row| first.shares_run_with(&self.visible_to(layer, row), run));
            let rows_at_once = if same { unit.rows.len() } else { 1 };
            for row in unit.rows.clone().step_by(rows_at_once) {
                let visible = self.visible_to(layer, row);
                let positions = visible.positions_in(run);
                if positions.is_empty() {
                    continue;
                }
                let part = units.part(unit, run, row) * AttentionRun::part_size(layer.shape.value_size);
                let job = AttentionRun {
                    cache: layer.cache,
                    kv_head: if layer.cache.has_joint_rows() { 0 } else { group },
                    head_size: layer.shape.query_size,
                    value_size: layer.shape.value_size,
                    heads: rows_at_once * heads,
                    scale: self.config.query_scale,
                    queries: queries.wrapping_add((row - unit.rows.start) * queries_of_row),
                    positions,
                    slots: visible.slots_in(run),
                    visible,
                    parts: self.workspace.parts.at(part),
                    scratch,
                };
                // SAFETY: parts and scratch memory belong to this unit and member; all positions
                // have been cached.
                unsafe { (self.kernels.attend)(&job) };
            }
        }
    }

    /// Joins the runs that a row sees, and writes `[heads, value_size]` to `out`.
    fn join(
        &self,
        layer: &LayerAttention<'_>,
        units: &AttentionUnits,
        unit: &Unit,
        row: usize,
        out: *mut f32,
    ) {
        let size = AttentionRun::part_size(layer.shape.value_size);
        let runs = self.visible_to(layer, row).runs();
        let part = units.part(unit, runs.start, row) * size;
        for head in 0..heads_in(layer, unit.group) {
            let job = Join {
                parts: self.workspace.parts.at(part + head * size),
                stride: units.part_stride(layer.shape.value_size),
                runs: runs.len(),
                value_size: layer.shape.value_size,
                sink: layer.sinks.get(unit.group * layer.shape.group + head).copied(),
                out: out.wrapping_add(head * layer.shape.value_size),
            };
            // SAFETY: the caller has room for all heads, and the parts have been computed.
            unsafe { (self.kernels.join)(&job) };
        }
    }

    /// Positions that a row sees in a layer.
    fn visible_to(&self, layer: &LayerAttention<'_>, row: usize) -> Visible<'_> {
        let path = &self.workspace.visible[row];
        let hidden = path.len().saturating_sub(layer.window);
        // A row has a position of its own even if it has no key there.
        let end = self.cached + path.len().max(1);
        let own = match layer.causal {
            true => &path[hidden..],
            // In a block, the window reaches as far ahead as back.
            false => &self.workspace.block_rows[hidden..row.saturating_add(layer.window).min(self.nodes)],
        };
        Visible { cached: self.cached, first: end.saturating_sub(layer.window).min(self.cached), hidden, own }
    }

    /// Runs that some row sees in a layer.
    fn runs_of(&self, layer: &LayerAttention<'_>) -> Range<usize> {
        let first = self.visible_to(layer, 0).runs();
        (1..self.nodes)
            .map(|row| self.visible_to(layer, row).runs())
            .fold(first, |all, runs| all.start.min(runs.start)..all.end.max(runs.end))
    }
}

/// Query heads of a group: the last one may have fewer.
fn heads_in(layer: &LayerAttention<'_>, group: usize) -> usize {
    layer.shape.group.min(layer.shape.heads - group * layer.shape.group)
}
