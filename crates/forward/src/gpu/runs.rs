//! Softmax attention on the device. `attend.wgsl` takes runs of [`RUN`] text positions side by
//! side, and `join.wgsl` adds up the runs in order.

use foretoken_model::error::Result;
use wgpu::Buffer;

use super::cache::Cache;
use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{ATTEND, Kernel, NONE};
use super::state::{ROWS, Rows};
use super::step::Step;
use crate::cpu::visible::RUN;

/// Numbers that a workgroup of `join.wgsl` writes.
const SLICE: usize = 128;

/// Kernels of attention, bound to a KV cache.
pub struct RunSteps {
    /// One for each of [`ATTEND`].
    attend: [Step; 2],
    join: Step,
    /// Numbers that the buffer of parts has room for.
    room: usize,
}

/// Rows of a pass, their heads and their visible positions.
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    pub heads: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    /// Stride of the rows of heads.
    pub stride: usize,
    /// Offset of the output gates in such a row, if there are gates.
    pub gates: Option<usize>,
    /// Offset of the attention sinks in the vectors, or [`NONE`].
    pub sinks: u32,
    /// Width of a row of the output.
    pub width: usize,
    /// In 8 bits, each head is a row of its own.
    pub heads_apart: bool,
    /// Factor of the dot products.
    pub scale: f32,
    pub rows: usize,
    /// Positions before those in the rows' paths.
    pub cached: usize,
    /// Nodes of the longest path.
    pub longest: usize,
    /// Every position is cached at the place of its text position.
    pub chain: bool,
    /// Size of the sliding window, the row itself included.
    pub window: Option<usize>,
    /// Rows attend to later rows of the pass.
    pub bidirectional: bool,
}

impl RunSteps {
    /// Allocates parts for caches of `positions` positions: of all rows if they fit, else of some.
    ///
    /// # Errors
    /// `Error::Compute` when the device has no room.
    pub fn parts(device: &GpuDevice, heads: usize, head_size: usize, positions: usize) -> Result<Buffer> {
        const MOST: usize = 32 << 20;
        let row = 4 * part(head_size) * heads * positions.div_ceil(RUN);
        let most = MOST.min(device.largest_buffer() as usize);
        device.buffer((most / row).clamp(1, ROWS) * row)
    }

    /// Binds the kernels to rows of heads, the cache, the paths, parts and vectors.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        heads: &Buffer,
        cache: &Cache,
        nodes: &Buffer,
        parts: &Buffer,
        vectors: &Buffer,
        out: &Rows,
    ) -> Result<Self> {
        let attend = |queries| {
            let buffers = [heads, &cache.keys, &cache.values, nodes, parts];
            Step::new(device, Kernel::Attend(queries), &buffers)
        };
        let join = [heads, nodes, parts, &out.plain, &out.quants, &out.scales, vectors];
        Ok(Self {
            attend: [attend(ATTEND[0])?, attend(ATTEND[1])?],
            join: Step::new(device, Kernel::Join, &join)?,
            room: parts.size() as usize / 4,
        })
    }

    /// Attends for all rows, as many at a time as there is room for parts.
    pub fn run(&self, pass: &mut Dispatches, attention: &Attention) {
        let runs = attention.runs();
        for (first, rows) in attention.batches(self.room) {
            let (which, tiles) = attention.tiles(rows);
            let groups = [attention.kv_heads * tiles, runs.len()];
            self.attend[which].run(pass, &attention.attend_params(first, rows), groups);
            let groups = [attention.heads * attention.slices(), rows];
            self.join.run(pass, &attention.join_params(first), groups);
        }
    }
}

impl Attention {
    /// Bytes of keys and values that the kernels read.
    pub fn bytes(&self) -> u64 {
        let (_, tiles) = self.tiles(self.rows);
        (4 * self.kv_heads * self.head_size * RUN * self.runs().len() * tiles) as u64
    }

    /// Workgroups of `join.wgsl` for a row and head.
    pub fn slices(&self) -> usize {
        self.head_size.div_ceil(SLICE)
    }

    /// Batches of rows for whose parts there is room for `room` numbers: first row and count.
    pub fn batches(&self, room: usize) -> impl Iterator<Item = (usize, usize)> {
        let row = part(self.head_size) * self.heads * self.runs().len();
        // An assistant's rows may see nothing.
        let at_once = room.checked_div(row).unwrap_or(ROWS).max(1);
        let rows = self.rows;
        (0..rows).step_by(at_once).map(move |first| (first, at_once.min(rows - first)))
    }

    /// Runs with positions that any row sees.
    pub fn runs(&self) -> std::ops::Range<usize> {
        // A row sees at least itself.
        let first = self.window.map_or(0, |window| (self.cached + 1).saturating_sub(window));
        first / RUN..(self.cached + self.longest).div_ceil(RUN)
    }

    /// Index in [`ATTEND`] of the kernel for `rows` rows, and its workgroups per key head and run.
    fn tiles(&self, rows: usize) -> (usize, usize) {
        let queries = rows * (self.heads / self.kv_heads);
        // A thread has a pair of the numbers of four queries.
        let which = usize::from(queries > ATTEND[0] && self.head_size <= 256);
        (which, queries.div_ceil(ATTEND[which]))
    }

    /// Words that `visible.wgsl` needs, and the first run and number of runs.
    fn visible(&self) -> [u32; 5] {
        let window = self.window.map_or(u32::MAX, |window| u32::try_from(window).unwrap_or(u32::MAX));
        let ahead = if self.bidirectional { self.rows } else { 0 };
        let runs = self.runs();
        [self.cached as u32, window, ahead as u32, runs.start as u32, runs.len() as u32]
    }

    /// Immediates of `attend.wgsl` for `rows` rows from `first` on.
    fn attend_params(&self, first: usize, rows: usize) -> [u32; 13] {
        let [heads, kv_heads, head_size, stride, first, rows] =
            [self.heads, self.kv_heads, self.head_size, self.stride, first, rows].map(|n| n as u32);
        let [cached, window, ahead, first_run, runs] = self.visible();
        let (chain, scale) = (u32::from(self.chain), self.scale.to_bits());
        [
            heads, kv_heads, head_size, stride, first, rows, cached, window, ahead, first_run, runs, chain,
            scale,
        ]
    }

    /// Immediates of `attend_latents.wgsl` for rows from `first` on, whose stride is that of the
    /// queries of a head.
    pub fn latent_params(&self, first: usize) -> [u32; 11] {
        let [heads, size, width, first] = [self.heads, self.head_size, self.stride, first].map(|n| n as u32);
        let [cached, window, ahead, first_run, runs] = self.visible();
        let (chain, scale) = (u32::from(self.chain), self.scale.to_bits());
        [heads, size, width, first, cached, window, ahead, first_run, runs, chain, scale]
    }

    /// Immediates of `join.wgsl` for rows from `first` on.
    pub fn join_params(&self, first: usize) -> [u32; 13] {
        let [heads, head_size, stride, width, first] =
            [self.heads, self.head_size, self.stride, self.width, first].map(|n| n as u32);
        let [cached, window, ahead, first_run, runs] = self.visible();
        let gates = self.gates.map_or(NONE, |gates| gates as u32);
        let (sinks, apart) = (self.sinks, u32::from(self.heads_apart));
        [heads, head_size, stride, width, first, cached, window, ahead, first_run, runs, gates, sinks, apart]
    }
}

/// Numbers of a run's part of a row and head: values, largest score and sum of the weights.
fn part(head_size: usize) -> usize {
    head_size + 2
}
