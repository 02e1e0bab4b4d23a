//! What a pass works in on the device: made once, for so many rows.

use wgpu::Buffer;

use super::device::GpuDevice;
use super::network::Network;
use crate::error::Result;
use crate::forward::cpu::activations::BLOCK;
use crate::forward::cpu::panels::Format;
use crate::forward::cpu::simd::LANES;
use crate::model::{Convolution, Experts, ModelConfig};

/// Rows that go through the layers at once, as those of a prompt do; more go in turns.
pub const ROWS: usize = 128;

/// Rows of a pass whose logits there is room for.
pub const SCORED: usize = 32;

/// Rows to multiply with, as numbers and in eight bits.
#[derive(Debug)]
pub struct Rows {
    pub width: usize,
    /// Of a row: how many blocks, where they are whole.
    pub blocks: Option<usize>,
    pub plain: Buffer,  // [rows, width]
    pub quants: Buffer, // [rows, blocks, BLOCK] bytes
    pub scales: Buffer, // [rows, blocks]: scale, scale * sum of the quants
}

impl Rows {
    /// Room for `rows` of `length` numbers.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, rows: usize, length: usize) -> Result<Self> {
        let (width, blocks) = (length.next_multiple_of(LANES), length.div_ceil(BLOCK));
        Ok(Self {
            width,
            blocks: length.is_multiple_of(BLOCK).then_some(blocks),
            plain: device.buffer(4 * rows * width)?,
            quants: device.buffer(rows * blocks * BLOCK)?,
            scales: device.buffer(8 * rows * blocks)?,
        })
    }
}

impl Rows {
    /// In the form that weights of a format are multiplied with; of numbers the scales say nothing.
    pub fn given(&self, format: Format) -> [&Buffer; 2] {
        [if format.quantised() { &self.quants } else { &self.plain }, &self.scales]
    }
}

/// What experts need: a slot is a row on its way through one of those it is to go through.
#[derive(Debug)]
pub struct Routed {
    pub sizes: Experts,
    pub scores: Buffer,  // [rows, experts in whole vectors]
    pub choices: Buffer, // [rows, used, 2]: an expert and its share
    pub slots: Buffer,   // [slots, 3]: see `arrange.wgsl`
    pub slot_of: Buffer, // [rows, used]
    pub given: Buffer,   // [slots, hidden in whole vectors]
}

/// The memory of a pass over up to [`ROWS`] rows.
#[derive(Debug)]
pub struct State {
    /// The state that runs through the layers.
    pub hidden: Buffer, // [rows, hidden in whole vectors]
    /// What attention or the feed-forward network gave, on its way through a norm.
    pub branch: Buffer, // as the state
    pub normed: Rows, // hidden
    /// Of a draft head: each token's embedding and state, normed.
    pub joined: Option<Rows>, // 2 * hidden
    /// Of a draft head with convolutions: the norms before them, and what is computed of these.
    pub unconvolved: Option<(Rows, Buffer)>, // hidden; [rows, both sides in whole vectors]
    pub heads: Buffer, // [rows, as `places` says]
    pub places: Places,
    /// Of each kind of attention cosines and sines of the rows' positions; of queries first, where these differ.
    pub turns: Vec<Buffer>, // [rows, size / 2, 2] once or twice
    pub mixed: Rows, // heads * head_size
    /// Of rows; of a model with experts, of slots.
    pub gated: Rows, // intermediate
    /// Where some gate lies apart from what it is multiplied with: what they give.
    pub apart: Option<[Buffer; 2]>, // [rows or slots, intermediate in whole vectors] each
    pub routed: Option<Routed>,
    /// At most [`SCORED`] rows.
    pub scored: Rows, // hidden, of the rows asked for
    pub logits: Buffer, // [rows asked for, vocabulary in whole vectors]
    /// Of the pass.
    pub tokens: Buffer, // [rows]
}

/// Where in a row of heads each kind of them begins, after queries, and the next row.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// In families that gate what attention gives.
    pub gates: Option<usize>,
    pub keys: usize,
    pub values: usize,
    pub stride: usize,
}

impl Places {
    pub fn of(config: &ModelConfig) -> Self {
        let whole = |heads: usize| (heads * config.head_size).next_multiple_of(LANES);
        let (queries, width) = (whole(config.heads), whole(config.kv_heads));
        let gates = config.family.gated_attention.then_some(queries);
        let keys = queries + gates.unwrap_or(0);
        Self { gates, keys, values: keys + width, stride: keys + 2 * width }
    }
}

impl Routed {
    fn new(device: &GpuDevice, experts: &Experts, hidden: usize) -> Result<Self> {
        let slots = ROWS * experts.top_k;
        Ok(Self {
            sizes: experts.clone(),
            scores: device.buffer(4 * ROWS * experts.count.next_multiple_of(LANES))?,
            choices: device.buffer(8 * slots)?,
            slots: device.buffer(12 * slots)?,
            slot_of: device.buffer(4 * slots)?,
            given: device.buffer(4 * slots * hidden.next_multiple_of(LANES))?,
        })
    }
}

impl State {
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn new(device: &GpuDevice, network: &Network, config: &ModelConfig) -> Result<Self> {
        let numbers = |width: usize| device.buffer(4 * ROWS * width.next_multiple_of(LANES));
        let rows = |length| Rows::new(device, ROWS, length);
        let places = Places::of(config);
        let turns = config.attention_kinds.iter().map(|kind| {
            let times = if kind.rotary.attn_temperature.is_some() { 2 } else { 1 };
            device.buffer(4 * times * ROWS * kind.rotary.size())
        });
        let experts = config.experts.as_ref();
        let (gated, intermediate) = experts
            .map_or((ROWS, config.intermediate), |experts| (ROWS * experts.top_k, experts.intermediate));
        let apart = || device.buffer(4 * gated * intermediate.next_multiple_of(LANES));
        let apart = network.has_gates_apart().then(|| Result::Ok([apart()?, apart()?])).transpose()?;
        let unconvolved = config.block().and_then(|block| block.convolution).map(|sizes| -> Result<_> {
            let Convolution { taps, group } = sizes;
            Ok((rows(config.hidden)?, numbers(2 * taps * (config.hidden / group))?))
        });
        Ok(Self {
            unconvolved: unconvolved.transpose()?,
            hidden: numbers(config.hidden)?,
            branch: numbers(config.hidden)?,
            normed: rows(config.hidden)?,
            joined: (config.mixed() > config.hidden).then(|| rows(config.mixed())).transpose()?,
            heads: numbers(places.stride)?,
            places,
            turns: turns.collect::<Result<_>>()?,
            mixed: rows(config.heads * config.head_size)?,
            gated: Rows::new(device, gated, intermediate)?,
            apart,
            routed: experts.map(|experts| Routed::new(device, experts, config.hidden)).transpose()?,
            scored: Rows::new(device, SCORED, config.hidden)?,
            logits: device.buffer(4 * SCORED * config.vocabulary.next_multiple_of(LANES))?,
            tokens: device.buffer(4 * ROWS)?,
        })
    }
}
