//! Parts of a head that drafts blocks, on the device: fusion of the target's states into keys and
//! values, convolutions around attention and feed-forward network, and position factors and
//! products for rescoring.

use std::ops::Range;

use foretoken_model::error::Result;
use foretoken_model::{Convolution as Sizes, ModelConfig, Weights};
use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::Kernel;
use super::matrix::Matrix;
use super::memory::CachedSteps;
use super::network::{Convolution, Network};
use super::norm::Norm;
use super::pass::Phases;
use super::product::{Out, Product};
use super::recording::Recording;
use super::state::{ROWS, Rows, SCORED, State};
use super::step::{Quantise, Step};
use crate::Features;
use crate::cpu::block_head::{BlockHead, Correction};
use crate::cpu::panels::Panels;
use crate::cpu::simd::LANES;

/// Kernels of a head that drafts blocks.
pub struct Block {
    /// Parts that the CPU looks up.
    pub head: BlockHead,
    states: Rows,
    quantise: Quantise,
    fuse: Product,
    fused_norm: Step,
    /// Convolutions around attention and around the feed-forward network, per layer.
    around: Vec<[Around; 2]>,
    position: Option<Product>,
    rank: usize,
    /// Position factors of the scored rows, for rescoring.
    pub position_factors: Buffer, // [rows, rank in whole vectors]
    /// Products of the correction's matrices with one row, in the order of
    /// [`Correction::products`](crate::cpu::block_head::Correction::products).
    of_row: Vec<RowProduct>,
}

/// Product of a matrix with one row that the CPU provides and reads.
struct RowProduct {
    row: Rows,
    quantise: Quantise,
    product: Product,
    out: Buffer, // [rows of the matrix in whole vectors]
    readable: Buffer,
}

impl Block {
    /// Loads the head's parts; `None` for other models.
    ///
    /// # Errors
    /// As `Network::load`.
    pub fn load(
        device: &GpuDevice,
        weights: &Weights,
        config: &ModelConfig,
        network: &Network,
        state: &State,
    ) -> Result<Option<Self>> {
        let Some((draft_head, block)) = config.draft_head.as_ref().zip(config.block()) else {
            return Ok(None);
        };
        let head = BlockHead::load(weights, config, block)?;
        let states = Rows::new(device, ROWS, draft_head.states())?;
        let norm = device.buffer(4 * head.fused_norm.len())?;
        device.write(&norm, head.fused_norm.iter().map(|number| number.to_bits()));
        let normed = &state.normed;
        let fused_norm = [&state.hidden, &state.branch, &norm, &normed.plain, &normed.quants, &normed.scales];
        let around = network.layers.iter().filter_map(|layer| layer.convolutions.as_ref());
        let around = around.map(|[mixer, feed_forward]| {
            Ok([Around::new(device, mixer, state)?, Around::new(device, feed_forward, state)?])
        });
        let rank = block.selector().map_or(0, |sizes| sizes.rank.next_multiple_of(LANES));
        let position_factors = device.buffer(4 * SCORED * rank)?;
        let position = head.selector().map(|selector| {
            Product::new(
                device,
                &[Matrix::upload(device, &selector.position)?],
                &state.scored,
                Out::Store(&position_factors),
            )
        });
        let products = head.correction.as_ref().map_or_else(Vec::new, Correction::products);
        let of_row = products.into_iter().map(|weights| RowProduct::new(device, weights));
        Ok(Some(Self {
            quantise: Quantise::new(device, &states)?,
            fuse: Product::new(
                device,
                &[Matrix::upload(device, &head.fuse)?],
                &states,
                Out::Store(&state.hidden),
            )?,
            fused_norm: Step::new(device, Kernel::Norm, &fused_norm)?,
            around: around.collect::<Result<_>>()?,
            position: position.transpose()?,
            position_factors,
            rank,
            of_row: of_row.collect::<Result<_>>()?,
            states,
            head,
        }))
    }

    /// Numbers per row of the position factors, in whole vectors.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Uploads rows `rows` of the target's states.
    pub fn write(&self, device: &GpuDevice, features: Features<'_>, rows: Range<usize>) {
        let mut states = vec![0.0; rows.len() * self.states.width];
        for (row, state) in rows.zip(states.chunks_exact_mut(self.states.width)) {
            state[..features.width()].copy_from_slice(features.row(row));
        }
        device.write(&self.states.plain, states.into_iter().map(f32::to_bits));
    }

    /// Fuses the first `rows` uploaded states and norms the results.
    pub fn fuse(&self, pass: &mut Dispatches, rows: usize, config: &ModelConfig) {
        self.quantise.run(pass, rows);
        self.fuse.run(pass, rows);
        let norm = Norm::plain(config.hidden, config.norm_epsilon);
        self.fused_norm.run(pass, &norm.params(), [rows, 1]);
    }

    /// Convolves the normed rows for attention (part 0) or the feed-forward network (part 1) of a
    /// layer.
    pub fn convolve_inputs(&self, pass: &mut Dispatches, layer: usize, part: usize, rows: usize) {
        if let Some(around) = self.around.get(layer) {
            around[part].convolve_inputs(pass, rows);
        }
    }

    /// Convolves the rows of the branch and adds them to the residual stream.
    pub fn convolve_branch(&self, pass: &mut Dispatches, layer: usize, part: usize, rows: usize) {
        if let Some(around) = self.around.get(layer) {
            around[part].convolve_branch(pass, rows);
        }
    }

    /// Position factors of the first `rows` scored rows.
    pub fn score(&self, pass: &mut Dispatches, rows: usize) {
        if let Some(position) = &self.position {
            position.run(pass, rows);
        }
    }

    /// Product of one of the correction's matrices with a row.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn multiply(&self, device: &GpuDevice, weights: &Panels, row: &[f32]) -> Result<Vec<f32>> {
        let products = self.head.correction.as_ref().map_or_else(Vec::new, Correction::products);
        let mut found = products.into_iter().zip(&self.of_row);
        match found.find(|(own, _)| std::ptr::eq(*own, weights)) {
            Some((_, product)) => product.run(device, row),
            None => unreachable!("a matrix of another correction"),
        }
    }
}

impl RowProduct {
    fn new(device: &GpuDevice, weights: &Panels) -> Result<Self> {
        let row = Rows::new(device, 1, weights.inputs())?;
        let bytes = 4 * weights.rows().next_multiple_of(LANES);
        let out = device.buffer(bytes)?;
        Ok(Self {
            quantise: Quantise::new(device, &row)?,
            product: Product::new(device, &[Matrix::upload(device, weights)?], &row, Out::Store(&out))?,
            row,
            out,
            readable: device.readable(bytes)?,
        })
    }

    fn run(&self, device: &GpuDevice, row: &[f32]) -> Result<Vec<f32>> {
        device.write(&self.row.plain, row.iter().map(|number| number.to_bits()));
        let mut recording = Recording::new(device);
        self.quantise.run(recording.pass(), 1);
        self.product.run(recording.pass(), 1);
        recording.copy(&self.out, &self.readable, 0, self.out.size());
        recording.end();
        device.fetch(&self.readable, self.out.size() as usize / 4)
    }
}

impl Phases<'_> {
    /// Encodes a pass over rows of the target's states, which caches the keys and values of every
    /// layer.
    pub fn cache_states(&self, recording: &mut Recording<'_>, block: &Block) {
        block.fuse(recording.pass(), self.rows, self.config);
        for (index, layer) in self.network.layers.iter().enumerate() {
            recording.next(layer.reads(self.rows));
            let pass = recording.pass();
            // Keys and values are the last panels of the heads' matrix.
            self.steps.layers[index].heads.run_below(pass, self.rows, self.state.offsets[index].keys / LANES);
            if let Some(CachedSteps::Attention(attention)) = &self.attention[index] {
                attention.cache_kv(pass, &self.visibility(index), layer);
            }
        }
    }
}

/// Kernels of a convolution before and after a part of a layer.
struct Around {
    sizes: Sizes,
    hidden: usize,
    /// Dynamic weights per row, in whole vectors.
    dynamics: usize,
    dynamic: Product,
    inputs: Step,
    quantise: Quantise,
    branch: Step,
}

impl Around {
    /// Binds the convolution to the buffers of `state`.
    fn new(device: &GpuDevice, convolution: &Convolution, state: &State) -> Result<Self> {
        let Some((rows, dynamic)) = &state.unconvolved else { unreachable!("a head without convolutions") };
        let Convolution { sizes, base, projection } = convolution;
        let step = |from, to| Step::new(device, Kernel::Convolve, &[from, dynamic, base, to]);
        Ok(Self {
            sizes: *sizes,
            hidden: projection.inputs,
            dynamics: projection.panels * LANES,
            dynamic: Product::new(device, std::slice::from_ref(projection), rows, Out::Store(dynamic))?,
            inputs: step(&rows.plain, &state.normed.plain)?,
            quantise: Quantise::new(device, &state.normed)?,
            branch: step(&state.branch, &state.hidden)?,
        })
    }

    fn convolve_inputs(&self, pass: &mut Dispatches, rows: usize) {
        self.dynamic.run(pass, rows);
        self.inputs.run(pass, &self.params(0), [self.hidden.div_ceil(64), rows]);
        self.quantise.run(pass, rows);
    }

    fn convolve_branch(&self, pass: &mut Dispatches, rows: usize) {
        self.branch.run(pass, &self.params(1), [self.hidden.div_ceil(64), rows]);
    }

    /// Immediates of `convolve.wgsl` for a side. The second adds its result to the residual stream.
    fn params(&self, side: u32) -> [u32; 9] {
        let (hidden, width) = (self.hidden as u32, self.hidden.next_multiple_of(LANES) as u32);
        let Sizes { taps, group } = self.sizes;
        [hidden, width, width, taps as u32, group as u32, side, self.dynamics as u32, side, 0]
    }
}
