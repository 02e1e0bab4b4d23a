//! Multi-head latent attention (MLA) in a pass. Queries are projected into the latent space by a
//! matrix of each head, and the attended latents are projected to values by another.

use foretoken_model::Latent as Sizes;

use super::PassContext;
use super::products::Task;
use super::runs::{LayerAttention, RowHeads};
use crate::cpu::attention_units::AttentionShape;
use crate::cpu::cache::KvCache;
use crate::cpu::latent::Latent;
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;
use crate::cpu::team::Member;
use crate::cpu::workspace::Inputs;

// Why the unsafe blocks are sound: see `pass/mod.rs`.
impl PassContext<'_> {
    /// Adds latent attention over `normed` to the states, as [`Self::mix_by_attention`] does.
    pub fn mix_by_latent_attention(
        &self,
        member: &Member<'_>,
        latent: &Latent,
        cache: &KvCache,
        normed: &Inputs,
        to_branch: bool,
        prefetch: &Panels,
    ) {
        self.project_latents(member, latent, normed);
        self.complete_latents(member, latent, cache);
        let (buffers, heads, width) = (&self.workspace.latent, self.config.heads, cache.width());
        let keys: Vec<Task<'_>> = (0..heads)
            .map(|head| Task {
                stride: heads * width,
                ..self.task(
                    &latent.k_b[head],
                    &buffers.nope_queries[head],
                    buffers.absorbed_queries.at(head * width),
                    false,
                )
            })
            .collect();
        self.products(member, &keys, &latent.v_b[0]);
        self.attend_to_latents(member, latent, cache);
        let mixed = self.workspace.mixed.of(latent.output.inputs());
        let values: Vec<Task<'_>> = (0..heads)
            .map(|head| Task {
                stride: mixed.width,
                ..self.task(
                    &latent.v_b[head],
                    &buffers.mixed_latents[head],
                    mixed.row(0).wrapping_add(head * latent.sizes.value),
                    false,
                )
            })
            .collect();
        self.products(member, &values, &latent.output);
        member.share(self.nodes, 1, |rows| {
            // SAFETY: a row belongs to this unit.
            rows.for_each(|row| unsafe {
                self.quantise(mixed, row, 0..latent.output.inputs(), mixed.row(row))
            });
        });
        member.barrier();
        self.add_product(member, &latent.output, mixed, to_branch, prefetch);
    }

    /// Computes queries, and latents before their norm.
    fn project_latents(&self, member: &Member<'_>, latent: &Latent, normed: &Inputs) {
        let buffers = &self.workspace.latent;
        let cached = self.task(&latent.kv_a, normed, buffers.kv.at(0), false);
        let Some((q_a, norm)) = &latent.q_a else {
            let query = self.task(&latent.q_b, normed, buffers.queries.at(0), false);
            return self.products(member, &[query, cached], &latent.k_b[0]);
        };
        let low_rank = self.task(q_a, normed, buffers.low_rank_queries.row(0), false);
        self.products(member, &[low_rank, cached], &latent.q_b);
        let (count, epsilon) = (latent.q_b.inputs(), Sizes::EPSILON);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let vector = buffers.low_rank_queries.row(row);
                // SAFETY: the row belongs to this unit and is as wide as the norm.
                unsafe {
                    (self.kernels.rms_norm)(vector, norm.as_ptr(), vector, count, epsilon);
                    self.quantise(&buffers.low_rank_queries, row, 0..count, vector);
                }
            }
        });
        member.barrier();
        let query = self.task(&latent.q_b, &buffers.low_rank_queries, buffers.queries.at(0), false);
        self.products(member, &[query], &latent.k_b[0]);
    }

    /// Applies rotary embedding to its part of queries and keys, copies the other part of queries
    /// to the inputs of their products, and caches latents and keys.
    fn complete_latents(&self, member: &Member<'_>, latent: &Latent, cache: &KvCache) {
        let (buffers, sizes, heads, width) =
            (&self.workspace.latent, latent.sizes, self.config.heads, cache.width());
        let epsilon = Sizes::EPSILON;
        let stride = (heads * sizes.query()).next_multiple_of(LANES);
        member.share(self.nodes, 1, |rows| {
            for row in rows {
                let (of_queries, of_keys) =
                    (self.rotation(latent.kind, row, true), self.rotation(latent.kind, row, false));
                for head in 0..heads {
                    let query = buffers.queries.at(row * stride + head * sizes.query());
                    let plain = buffers.nope_queries[head].row(row);
                    let absorbed = buffers.absorbed_queries.at((row * heads + head) * width + sizes.size);
                    // SAFETY: the row belongs to this unit; a query has as many numbers, and
                    // `absorbed` has room for whole vectors.
                    unsafe {
                        std::ptr::copy_nonoverlapping(query, plain, sizes.plain);
                        self.quantise(&buffers.nope_queries[head], row, 0..sizes.plain, plain);
                        absorbed.write_bytes(0, width - sizes.size);
                        std::ptr::copy_nonoverlapping(query.add(sizes.plain), absorbed, sizes.turned);
                        (self.kernels.rotate)(&of_queries, absorbed);
                    }
                }
                let cached = buffers.kv.at(row * width);
                let position = self.cached + self.first + row;
                // SAFETY: the row and its entry in the cache belong to this unit.
                unsafe {
                    (self.kernels.rms_norm)(cached, latent.kv_a_norm.as_ptr(), cached, sizes.size, epsilon);
                    (self.kernels.rotate)(&of_keys, cached.add(sizes.size));
                    (self.kernels.store_kv)(cache, 0, position, sizes.keys().size, cached, cached);
                }
            }
        });
        member.barrier();
    }

    /// Attends to latents, some heads of a row at a time.
    fn attend_to_latents(&self, member: &Member<'_>, latent: &Latent, cache: &KvCache) {
        let (buffers, sizes, heads, width) =
            (&self.workspace.latent, latent.sizes, self.config.heads, cache.width());
        let layer = LayerAttention {
            shape: AttentionShape::of(self.config, latent.kind),
            cache,
            sinks: &[],
            window: usize::MAX,
            causal: true,
        };
        let own = |group: usize| group * layer.shape.group..heads.min((group + 1) * layer.shape.group);
        let load = |RowHeads { row, group }: RowHeads, _: bool, to: *mut f32| {
            let own = own(group);
            let queries = buffers.absorbed_queries.at((row * heads + own.start) * width);
            // SAFETY: `to` has room for the group's queries.
            unsafe { std::ptr::copy_nonoverlapping(queries, to, own.len() * width) };
        };
        let mut mixed = vec![0f32; layer.shape.group * sizes.size];
        self.attend_by_runs(member, &layer, load, |RowHeads { row, group }, join| {
            join(mixed.as_mut_ptr());
            for (head, mixed) in own(group).zip(mixed.chunks(sizes.size)) {
                let to = buffers.mixed_latents[head].row(row);
                // SAFETY: the heads of a row belong to this unit.
                unsafe {
                    std::ptr::copy_nonoverlapping(mixed.as_ptr(), to, sizes.size);
                    self.quantise(&buffers.mixed_latents[head], row, 0..sizes.size, to);
                }
            }
        });
    }
}
