//! Activation buffers of a pass on the device, allocated once.

use foretoken_model::error::Result;
use foretoken_model::{
    Convolution, Experts, FeedForwardSpec, HeadKind, KeyHeads, ModelConfig, Recurrence, RecurrentKind,
};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::latent_state::LatentState;
use super::matrix::TILE;
use super::network::Network;
use crate::cpu::activations::BLOCK;
use crate::cpu::panels::Format;
use crate::cpu::simd::LANES;

/// Rows that go through the layers together, as in prefill. Passes with more rows are split.
pub const ROWS: usize = 128;

/// Most rows whose logits there is room for at once.
pub const SCORED: usize = 32;

/// Input rows of products, as numbers and quantised to 8 bits.
#[derive(Debug)]
pub struct Rows {
    pub width: usize,
    /// Blocks per row, if they are whole.
    pub blocks: Option<usize>,
    pub plain: Buffer, // [rows, width]
    // Both in the order of `tiled.wgsl`: the rows of a tile are together for each block.
    pub quants: Buffer, // [rows / TILE, blocks, TILE, BLOCK] bytes
    pub scales: Buffer, // [rows / TILE, blocks, TILE]: scale, scale * sum of the quants
}

impl Rows {
    /// Allocates `rows` rows of `length` numbers.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, rows: usize, length: usize) -> Result<Self> {
        let (width, blocks) = (length.next_multiple_of(LANES), length.div_ceil(BLOCK));
        Ok(Self {
            width,
            blocks: length.is_multiple_of(BLOCK).then_some(blocks),
            plain: device.buffer(4 * rows * width)?,
            quants: device.buffer(rows.next_multiple_of(TILE) * blocks * BLOCK)?,
            scales: device.buffer(8 * rows.next_multiple_of(TILE) * blocks)?,
        })
    }

    /// Returns the same buffers for rows of `length` numbers, at most as many as these have.
    pub fn of(&self, length: usize) -> Self {
        let blocks = length.is_multiple_of(BLOCK).then_some(length / BLOCK);
        let [plain, quants, scales] = [&self.plain, &self.quants, &self.scales].map(Buffer::clone);
        Self { width: length.next_multiple_of(LANES), blocks, plain, quants, scales }
    }

    /// Buffers in the form that products with a format read. Numbers have no scales, so that buffer
    /// is unused there.
    pub fn given(&self, format: Format) -> [&Buffer; 2] {
        [if format.quantised() { &self.quants } else { &self.plain }, &self.scales]
    }
}

/// Gated activations of a feed-forward network.
#[derive(Debug)]
pub struct Gated {
    /// Numbers per row.
    pub length: usize,
    pub rows: Rows,
    /// Outputs of gate and up, if those of any layer are not interleaved.
    pub separate: Option<[Buffer; 2]>, // [rows, length in whole vectors] each
}

impl Gated {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    fn new(device: &GpuDevice, rows: usize, length: usize, is_separate: bool) -> Result<Self> {
        let separate = || device.buffer(4 * rows * length.next_multiple_of(LANES));
        let separate = is_separate.then(|| Result::Ok([separate()?, separate()?])).transpose()?;
        Ok(Self { length, rows: Rows::new(device, rows, length)?, separate })
    }

    /// Returns these buffers for rows of `length` numbers, at most as many as they have.
    pub fn of(&self, length: usize) -> Self {
        Self { length, rows: self.rows.of(length), separate: self.separate.clone() }
    }
}

/// Buffers of a shared expert.
#[derive(Debug)]
pub struct Shared {
    pub gated: Gated,
    /// Gate of each row, the first of a panel's outputs.
    pub gates: Buffer, // [rows, LANES]
}

/// Buffers of a dense network beside experts.
#[derive(Debug)]
pub struct BesideDense {
    pub gated: Gated,
    pub dense_output: Rows,     // hidden
    pub router_input: Rows,     // hidden
    pub experts_output: Buffer, // [rows, hidden in whole vectors]
}

/// Buffers of a ranking of experts, or of clusters of tokens. A slot is one row at one of them.
#[derive(Debug)]
pub struct Ranked {
    pub count: usize,
    /// Entries that are chosen for a row.
    pub top_k: usize,
    pub scores: Buffer,  // [rows, count in whole vectors]
    pub choices: Buffer, // [rows, top_k, 2]: an entry and its weight
    pub slots: Buffer,   // [slots, 3]: see `arrange.wgsl`
    pub slot_of: Buffer, // [rows, top_k]
}

/// Buffers of experts.
#[derive(Debug)]
pub struct Routed {
    pub sizes: Experts,
    pub ranked: Ranked,
    pub given: Buffer, // [slots, hidden in whole vectors]
}

/// Buffers of the rows of a pass, which all recurrent layers share.
#[derive(Debug)]
pub struct RecurrentRows {
    /// Numbers per row of `projected`.
    pub stride: usize,
    /// Outputs of a layer's first matrices: channels, gates and rates, each in whole vectors.
    pub projected: Buffer, // [rows, stride]
    pub convolved: Buffer,   // [rows, channels]
    pub rates: Buffer,       // [rows, 2 * values + keys]
    pub corrections: Buffer, // [rows, values * value_size]
    /// Output of the state matrices.
    pub given: Buffer, // [rows, values * value_size]
    /// Input of the layer's last matrix.
    pub mixed: Rows, // values * value_size, or channels
}

impl RecurrentRows {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, recurrence: &Recurrence) -> Result<Self> {
        let Recurrence { kind, channels, heads, .. } = recurrence;
        let [channels, width] = [*channels, heads.value_width()];
        let [rates, whole] = [heads.values, channels].map(|count| count.next_multiple_of(LANES));
        let (stride, mixed) = match kind {
            RecurrentKind::ShortConv => ((3 * channels).next_multiple_of(LANES), channels),
            RecurrentKind::Delta => (whole + width + 2 * rates, width),
            RecurrentKind::Mamba => (whole + width + rates, width),
        };
        let numbers = |width: usize| device.buffer(4 * ROWS * width);
        // Without state matrices, kernels convolve on the way to the last matrix.
        let convolved = if width == 0 { 0 } else { channels };
        Ok(Self {
            stride,
            projected: numbers(stride)?,
            convolved: numbers(convolved)?,
            rates: numbers(2 * heads.values + heads.keys)?,
            corrections: numbers(width)?,
            given: numbers(width)?,
            mixed: Rows::new(device, ROWS, mixed)?,
        })
    }
}

/// Buffers of the inputs of all layers.
#[derive(Debug)]
pub struct PerLayerBuffers {
    /// Width of all layers' inputs.
    pub columns: usize,
    /// Table rows of the pass's tokens.
    pub table: Buffer, // [rows, columns]
    pub inputs: Buffer, // [rows, columns in whole vectors]
    /// A layer's product with its gate.
    pub gates: Buffer, // [rows, width in whole vectors]
}

/// Buffers of a pass over up to [`ROWS`] rows.
#[derive(Debug)]
pub struct State {
    /// Residual stream.
    pub hidden: Buffer, // [rows, hidden in whole vectors]
    /// Output of attention or the feed-forward network, before a norm.
    pub branch: Buffer, // as the state
    pub normed: Rows, // hidden
    /// Normed embedding and state of each token, for a draft head.
    pub fused_input: Option<Rows>, // 2 * hidden
    /// Norms before convolutions, and the dynamic weights, for a draft head with convolutions.
    pub unconvolved: Option<(Rows, Buffer)>, // hidden; [rows, both sides in whole vectors]
    pub heads: Buffer, // [rows, as the layer's `offsets` say]
    /// Offsets in the heads of each layer.
    pub offsets: Vec<HeadOffsets>,
    /// Cosines and sines of the rows' positions, per kind of attention; those of queries first, if
    /// they differ.
    pub angles: Vec<Buffer>, // [rows, size / 2, 2] once or twice
    pub mixed: Rows, // heads * head_size, of the largest heads
    /// Activations of rows, or of slots in a model with experts; as wide as the widest layer.
    pub gated: Gated,
    pub routed: Option<Routed>,
    pub shared: Option<Shared>,
    /// `None` without a dense network beside experts.
    pub beside: Option<BesideDense>,
    /// Per-layer inputs, in families that have them.
    pub per_layer: Option<PerLayerBuffers>,
    /// `None` without recurrent layers.
    pub recurrent: Option<RecurrentRows>,
    /// `None` without latent attention.
    pub latent: Option<LatentState>,
    /// At most [`SCORED`] rows.
    pub scored: Rows, // hidden, of the requested rows
    pub logits: Buffer, // [requested rows, vocabulary in whole vectors]
    /// Token ids of the pass.
    pub tokens: Buffer, // [rows]
}

/// Offsets in a row of heads, which begins with the queries, and the row's stride.
#[derive(Debug, Clone, Copy)]
pub struct HeadOffsets {
    /// Offset of output gates, in families that have them.
    pub gates: Option<usize>,
    pub keys: usize,
    pub values: usize,
    pub stride: usize,
}

impl HeadOffsets {
    /// Offsets in the heads of layer `index`. Values that are keys are where these are.
    pub fn of(config: &ModelConfig, index: usize) -> Self {
        let heads = config.attention(index).map_or_else(KeyHeads::default, |kind| kind.keys);
        let whole = |count: usize| (count * heads.size).next_multiple_of(LANES);
        let (queries, width) = (whole(config.heads), whole(heads.count));
        let width = if config.computes_kv(index) { width } else { 0 };
        let gates = config.attention_parts().gate.then_some(queries);
        let keys = queries + gates.unwrap_or(0);
        let values = if heads.are_values { keys } else { keys + width };
        Self { gates, keys, values, stride: values + width }
    }
}

impl Ranked {
    /// Allocates for `rows` rows.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, rows: usize, count: usize, top_k: usize) -> Result<Self> {
        let slots = rows * top_k;
        Ok(Self {
            count,
            top_k,
            scores: device.buffer(4 * rows * count.next_multiple_of(LANES))?,
            choices: device.buffer(8 * slots)?,
            slots: device.buffer(12 * slots)?,
            slot_of: device.buffer(4 * slots)?,
        })
    }
}

impl Routed {
    fn new(device: &GpuDevice, experts: &Experts, hidden: usize) -> Result<Self> {
        Ok(Self {
            sizes: experts.clone(),
            ranked: Ranked::new(device, ROWS, experts.count, experts.top_k)?,
            given: device.buffer(4 * ROWS * experts.top_k * hidden.next_multiple_of(LANES))?,
        })
    }
}

impl PerLayerBuffers {
    /// Allocates the buffers; `None` in families without per-layer inputs.
    fn new(device: &GpuDevice, config: &ModelConfig) -> Result<Option<Self>> {
        let Some(width) = config.per_layer_input() else { return Ok(None) };
        let numbers = |width: usize| device.buffer(4 * ROWS * width);
        let columns = config.depth() * width;
        Ok(Some(Self {
            columns,
            table: numbers(columns)?,
            inputs: numbers(columns.next_multiple_of(LANES))?,
            gates: numbers(width.next_multiple_of(LANES))?,
        }))
    }
}

impl State {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, network: &Network, config: &ModelConfig) -> Result<Self> {
        let numbers = |width: usize| device.buffer(4 * ROWS * width.next_multiple_of(LANES));
        let rows = |length| Rows::new(device, ROWS, length);
        let offsets: Vec<_> = (0..config.depth()).map(|index| HeadOffsets::of(config, index)).collect();
        let angles = config.attention_kinds.iter().map(|kind| {
            let times = if kind.rotary.attn_temperature.is_some() { 2 } else { 1 };
            device.buffer(4 * times * ROWS * kind.rotary.size())
        });
        let experts = config.experts();
        // Slots of experts, and rows of dense layers, which may be wider.
        let width_of_experts = experts.map_or(0, |experts| experts.width);
        let dense = config.layers.iter().filter(|layer| layer.feed_forward.experts().is_none());
        let dense = dense.filter_map(|layer| layer.feed_forward.width()).max().unwrap_or(0);
        let widest = width_of_experts.max(dense).max(config.per_layer_input().unwrap_or(0));
        let slots = experts.map_or(0, |experts| ROWS * experts.top_k);
        let whole = |width: usize| width.next_multiple_of(LANES);
        let gated = ROWS.max((slots * whole(width_of_experts)).div_ceil(whole(widest).max(1)));
        let is_separate = network.has_separate_gates();
        let shared = config.layers.iter().find_map(|layer| layer.feed_forward.shared());
        let shared = shared.map(|shared| -> Result<_> {
            let gates = device.buffer(4 * ROWS * LANES)?;
            Ok(Shared { gated: Gated::new(device, ROWS, shared.width, is_separate)?, gates })
        });
        let beside = config.layers.iter().find_map(|layer| match layer.feed_forward {
            FeedForwardSpec::BesideDense { width, .. } => Some(width),
            _ => None,
        });
        let beside = beside.map(|width| -> Result<_> {
            Ok(BesideDense {
                gated: Gated::new(device, ROWS, width, is_separate)?,
                dense_output: rows(config.hidden)?,
                router_input: rows(config.hidden)?,
                experts_output: numbers(config.hidden)?,
            })
        });
        let head = config.draft_head.as_ref();
        let joins = head.is_some_and(|head| head.eagle3().is_some() || head.kind == HeadKind::Mtp);
        let unconvolved = config.block().and_then(|block| block.convolution).map(|sizes| -> Result<_> {
            let Convolution { taps, group } = sizes;
            Ok((rows(config.hidden)?, numbers(2 * taps * (config.hidden / group))?))
        });
        Ok(Self {
            unconvolved: unconvolved.transpose()?,
            hidden: numbers(config.hidden)?,
            branch: numbers(config.hidden)?,
            normed: rows(config.hidden)?,
            fused_input: joins.then(|| rows(2 * config.hidden)).transpose()?,
            heads: numbers(offsets.iter().map(|of| of.stride).max().unwrap_or(0))?,
            offsets,
            angles: angles.collect::<Result<_>>()?,
            mixed: rows(config.heads * config.head_size())?,
            gated: Gated::new(device, gated, widest, is_separate)?,
            shared: shared.transpose()?,
            beside: beside.transpose()?,
            routed: experts.map(|experts| Routed::new(device, experts, config.hidden)).transpose()?,
            per_layer: PerLayerBuffers::new(device, config)?,
            recurrent: config.recurrence().map(|sizes| RecurrentRows::new(device, sizes)).transpose()?,
            latent: config.latent().map(|sizes| LatentState::new(device, config, *sizes)).transpose()?,
            scored: Rows::new(device, SCORED, config.hidden)?,
            logits: device.buffer(4 * SCORED * config.vocabulary.next_multiple_of(LANES))?,
            tokens: device.buffer(4 * ROWS)?,
        })
    }
}
