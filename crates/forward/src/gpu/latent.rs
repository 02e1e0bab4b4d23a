//! Multi-head latent attention (MLA) of a layer on the device. Queries are projected into the latent
//! space by a matrix of each head, attend to the cached latents, and the mixed latents are projected
//! to values by another matrix of each head.

use foretoken_model::error::Result;
use foretoken_model::{Latent as Sizes, ModelConfig, RotaryLayout};
use wgpu::Buffer;

use super::attention::{AttentionBuffers, Visibility};
use super::cache::Cache;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::matrix::Matrix;
use super::norm::Norm;
use super::product::{Out, Product, SlotProduct, fitting};
use super::runs::Attention;
use super::state::{ROWS, Rows, State};
use super::step::{Quantise, Step};
use crate::cpu::latent as cpu;
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;

/// Weights of a layer. Vectors are offsets into the vectors of the network.
#[derive(Debug)]
pub struct Latent {
    /// Index of the kind of attention.
    pub kind: usize,
    sizes: Sizes,
    /// Low-rank projection of queries and its norm.
    low_rank: Option<(Matrix, u32)>, // [queries, hidden], [queries]
    queries: Matrix, // [heads * (plain + turned), queries or hidden]
    /// Projection to the latent and to the key's rotated part.
    latents: Matrix, // [size + turned, hidden]
    norm: u32,       // [size]
    /// Key projections of all heads, applied to queries.
    keys: Matrix, // [heads, size, plain]
    /// Value projections of all heads, applied to mixed latents.
    values: Matrix, // [heads, value, size]
}

/// Buffers of a pass, shared by all layers.
#[derive(Debug)]
pub struct LatentState {
    sizes: Sizes,
    /// Low-rank queries, and their norms.
    low_rank: Option<(Buffer, Rows)>, // [rows, queries in whole vectors]; queries
    queries: Buffer, // [rows, heads * (plain + turned) in whole vectors]
    latents: Buffer, // [rows, size + turned in whole vectors]
    /// Unrotated parts of queries, one for each row and head.
    plain: Rows, // plain
    absorbed: Buffer, // [rows, heads, size + turned in whole vectors]
    /// One for each row and head.
    mixed: Rows, // size
    pub values: Rows, // heads * value
    /// Rows at heads, as `slots.wgsl` reads them: the slots of a head are adjacent.
    slots: Buffer, // [heads, rows, 3]
}

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

impl Latent {
    /// Uploads a layer's weights.
    ///
    /// # Errors
    /// As [`Matrix::upload`].
    pub fn upload(device: &GpuDevice, of: &cpu::Latent, vectors: &mut Vec<f32>) -> Result<Self> {
        let mut push = |vector: &[f32]| {
            let at = vectors.len() as u32;
            vectors.extend(vector);
            at
        };
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
}

impl LatentState {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, config: &ModelConfig, sizes: Sizes) -> Result<Self> {
        let heads = config.heads;
        let numbers = |length: usize| device.buffer(4 * ROWS * length.next_multiple_of(LANES));
        let low_rank = |length| Result::Ok((numbers(length)?, Rows::new(device, ROWS, length)?));
        let width = width(sizes);
        Ok(Self {
            sizes,
            low_rank: sizes.queries.map(low_rank).transpose()?,
            queries: numbers(heads * sizes.query())?,
            latents: numbers(width)?,
            plain: Rows::new(device, heads * ROWS, sizes.plain)?,
            absorbed: device.buffer(4 * ROWS * heads * width)?,
            mixed: Rows::new(device, heads * ROWS, sizes.size)?,
            values: Rows::new(device, ROWS, heads * sizes.value)?,
            slots: device.buffer(12 * heads * ROWS)?,
        })
    }

    /// Uploads the slots of a pass over `rows`.
    pub fn write(&self, device: &GpuDevice, heads: usize, rows: usize) {
        let tile = fitting(device.tiles(), rows);
        let slot = |head: usize| {
            move |row: usize| {
                let begins = row.is_multiple_of(tile);
                [row * heads + head, head, if begins { tile.min(rows - row) } else { 0 }]
            }
        };
        let words = (0..heads).flat_map(|head| (0..rows).flat_map(slot(head)));
        device.write(&self.slots, words.map(|word| word as u32));
    }
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
        self.attend(pass, &own.attention(visibility));
        self.values.run(pass, rows * heads, tile);
        self.round_values.run(pass, rows);
    }

    /// Attends for all rows, as many at a time as there is room for parts.
    fn attend(&self, pass: &mut Dispatches, attention: &Attention) {
        let row = (attention.head_size + 2) * attention.heads * attention.runs().len();
        let at_once = (self.room / row).max(1);
        for first in (0..attention.rows).step_by(at_once) {
            let rows = at_once.min(attention.rows - first);
            let heads = attention.heads;
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

impl LatentState {
    /// Attention over the cached latents.
    fn attention(&self, visibility: &Visibility<'_>) -> Attention {
        let Visibility { config, rows, cached, longest, chain, .. } = *visibility;
        Attention {
            heads: config.heads,
            kv_heads: 1,
            head_size: self.sizes.size,
            stride: width(self.sizes),
            gates: None,
            sinks: NONE,
            width: config.heads * self.sizes.size,
            scale: config.query_scale,
            rows,
            cached,
            longest,
            chain,
            window: None,
            bidirectional: false,
        }
    }
}

impl Latent {
    fn heads(&self) -> usize {
        self.keys.panels * LANES / self.sizes.size
    }
}

/// Numbers of a cached position, and of a query over latents.
fn width(sizes: Sizes) -> usize {
    (sizes.size + sizes.turned).next_multiple_of(LANES)
}
