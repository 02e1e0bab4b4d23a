//! Multi-head latent attention (MLA) of a layer on the device. Queries are projected into the
//! latent space by a matrix of each head, attend to the cached latents, and the mixed latents are
//! projected to values by another matrix of each head.

use foretoken_model::error::Result;
use foretoken_model::{Latent as Sizes, RotaryLayout};
use wgpu::Buffer;

use super::attention::{AttentionBuffers, Visibility};
use super::cache::Cache;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::latent_state::{LatentState, width};
use super::latent_weights::Latent;
use super::norm::Norm;
use super::product::{Out, Product, SlotProduct};
use super::runs::Attention;
use super::state::{Rows, State};
use super::step::{Quantise, Step};
use crate::cpu::simd::LANES;

/// Kernels of a layer, bound to its cache.
pub struct LatentSteps {
    low_rank: Option<(Product, Step, u32)>,
    queries: Product,
    latents: Product,
    complete: Step,
    round_plain: Quantise,
    keys: SlotProduct,
    attend: Step,
    join: Step,
    values: SlotProduct,
    round_values: Quantise,
    pub gather: Step,
    norm: u32,
    /// Numbers that the buffer of parts has room for.
    room: usize,
}

impl LatentSteps {
    /// Binds the kernels to a cache.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        latent: &Latent,
        cache: &Cache,
        vectors: &Buffer,
        state: &State,
        buffers: &AttentionBuffers,
    ) -> Result<Self> {
        let Some(own) = &state.latent else { unreachable!("a state of another network") };
        let single = |matrix, rows, out| Product::new(device, std::slice::from_ref(matrix), rows, out);
        let low_rank = latent.low_rank.as_ref().zip(own.low_rank.as_ref());
        let low_rank = low_rank.map(|((matrix, norm), (numbers, rows))| -> Result<_> {
            let buffers = [numbers, &state.branch, vectors, &rows.plain, &rows.quants, &rows.scales];
            let product = single(matrix, &state.normed, Out::Store(numbers))?;
            Ok((product, Step::new(device, Kernel::Norm, &buffers)?, *norm))
        });
        let inputs = own.low_rank.as_ref().map_or(&state.normed, |(_, rows)| rows);
        let (nodes, parts) = (&buffers.nodes, &buffers.parts);
        let complete = [
            &own.queries,
            &own.latents,
            &state.angles[latent.kind],
            vectors,
            nodes,
            &own.plain.plain,
            &own.absorbed,
            &cache.values,
        ];
        // The kernel reads gates only where a family has some.
        let Rows { plain, quants, scales, .. } = &own.mixed;
        let join = [&own.queries, nodes, parts, plain, quants, scales, vectors];
        let heads = |stack, rows, out, stride| {
            SlotProduct::of_heads(device, stack, latent.heads(), rows, out, stride, &own.slots)
        };
        Ok(Self {
            low_rank: low_rank.transpose()?,
            queries: single(&latent.queries, inputs, Out::Store(&own.queries))?,
            latents: single(&latent.latents, &state.normed, Out::Store(&own.latents))?,
            complete: Step::new(device, Kernel::CompleteLatents, &complete)?,
            round_plain: Quantise::new(device, &own.plain)?,
            keys: heads(&latent.keys, &own.plain, &own.absorbed, width(own.sizes))?,
            attend: Step::new(device, Kernel::AttendLatents, &[&own.absorbed, &cache.values, nodes, parts])?,
            join: Step::new(device, Kernel::Join, &join)?,
            values: heads(&latent.values, &own.mixed, &own.values.plain, own.sizes.value)?,
            round_values: Quantise::new(device, &own.values)?,
            gather: Step::new(device, Kernel::Gather, &[nodes, &cache.keys, &cache.values])?,
            norm: latent.norm,
            room: parts.size() as usize / 4,
        })
    }

    /// Computes the values of all heads for all rows of a pass.
    pub fn run(&self, pass: &mut Dispatches, visibility: &Visibility<'_>, own: &LatentState, kind: usize) {
        let (rows, heads) = (visibility.rows, visibility.config.heads);
        if let Some((product, norm, weight)) = &self.low_rank {
            let length = own.sizes.queries.unwrap_or_default();
            product.run(pass, rows);
            let params = Norm { weight: *weight, ..Norm::plain(length, f64::from(Sizes::EPSILON)) };
            norm.run(pass, &params.params(), [rows, 1]);
        }
        self.queries.run(pass, rows);
        self.latents.run(pass, rows);
        self.complete.run(pass, &self.complete_params(visibility, own, kind), [heads + 1, rows]);
        self.round_plain.run(pass, rows * heads);
        let tile = self.keys.tile(rows);
        self.keys.run(pass, rows * heads, tile);
        self.attend(pass, &attention(visibility, own.sizes));
        self.values.run(pass, rows * heads, tile);
        self.round_values.run(pass, rows);
    }

    /// Attends for all rows, as many at a time as there is room for parts.
    fn attend(&self, pass: &mut Dispatches, attention: &Attention) {
        let heads = attention.heads;
        for (first, rows) in attention.batches(self.room) {
            let groups = [rows * heads, attention.runs().len()];
            self.attend.run(pass, &attention.latent_params(first), groups);
            self.join.run(pass, &attention.join_params(first), [heads * attention.slices(), rows]);
        }
    }

    /// Immediates of `complete_latents.wgsl`.
    fn complete_params(&self, visibility: &Visibility<'_>, own: &LatentState, kind: usize) -> [u32; 12] {
        let (sizes, config) = (own.sizes, visibility.config);
        let rotary = &config.attention_kinds[kind].rotary;
        let stride = (config.heads * sizes.query()).next_multiple_of(LANES);
        let width = width(sizes);
        let [heads, size, plain, rotated, stride, plain_width, width] =
            [config.heads, sizes.size, sizes.plain, rotary.size() / 2, stride, own.plain.width, width]
                .map(|number| number as u32);
        let interleaved = u32::from(rotary.layout == RotaryLayout::Interleaved);
        let key_angles = if rotary.attn_temperature.is_some() { visibility.rows as u32 } else { 0 };
        let (norm, epsilon) = (self.norm, Sizes::EPSILON.to_bits());
        [
            heads,
            size,
            plain,
            rotated,
            interleaved,
            stride,
            width,
            plain_width,
            width,
            norm,
            epsilon,
            key_angles,
        ]
    }
}

/// Attention over the cached latents.
fn attention(visibility: &Visibility<'_>, sizes: Sizes) -> Attention {
    let Visibility { config, rows, cached, longest, chain, .. } = *visibility;
    Attention {
        heads: config.heads,
        kv_heads: 1,
        head_size: sizes.size,
        stride: width(sizes),
        gates: None,
        sinks: NONE,
        heads_apart: true,
        width: config.heads * sizes.size,
        scale: config.query_scale,
        rows,
        cached,
        longest,
        chain,
        window: None,
        bidirectional: false,
    }
}
