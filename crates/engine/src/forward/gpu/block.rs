//! What a draft head does in its passes on the device that guesses blocks: it makes rows of the target's states for the
//! text, of which a layer has keys and values and nothing else, convolves a block's rows, and knows of the places it
//! scores what tells how the token before changes their scores.

use std::ops::Range;

use wgpu::Buffer;

use super::device::GpuDevice;
use super::dispatches::Dispatches;
use super::kernels::{Kernel, NONE};
use super::matrix::Matrix;
use super::network::{Convolution, Network};
use super::pass::Phases;
use super::product::Product;
use super::recording::Recording;
use super::state::{ROWS, Rows, SCORED, State};
use super::step::{Quantise, Step};
use crate::error::Result;
use crate::forward::Features;
use crate::forward::cpu::block_head::BlockHead;
use crate::forward::cpu::simd::LANES;
use crate::model::{Convolution as Sizes, ModelConfig, Weights};

/// Of a draft head that guesses blocks.
pub struct Block {
    /// What is looked up on the host.
    pub head: BlockHead,
    states: Rows,
    quantise: Quantise,
    fuse: Product,
    fused_norm: Step,
    /// Around attention and around the feed-forward network of each layer.
    around: Vec<[Around; 2]>,
    place: Option<Product>,
    rank: usize,
    /// What a selector knows of the rows asked for.
    pub places: Buffer, // [rows, rank in whole vectors]
    before: Option<Before>,
}

/// The token before a place, and what it adds to the scores there.
struct Before {
    row: Rows,
    quantise: Quantise,
    after: Product,
    bias: Buffer, // [vocabulary in whole vectors]
    returning: Buffer,
}

impl Block {
    /// `None` for what is no such head.
    ///
    /// # Errors
    /// As `Network::load`.
    pub fn load(
        device: &GpuDevice,
        weights: &Weights,
        (config, network, state): (&ModelConfig, &Network, &State),
    ) -> Result<Option<Self>> {
        let Some((draft_head, block)) = config.draft_head.as_ref().zip(config.block()) else {
            return Ok(None);
        };
        let head = BlockHead::load(weights, block)?;
        let states = Rows::new(device, ROWS, draft_head.states())?;
        let norm = device.buffer(4 * head.fused_norm.len())?;
        device.write(&norm, head.fused_norm.iter().map(|number| number.to_bits()));
        let normed = &state.normed;
        let fused_norm = [&state.hidden, &state.branch, &norm, &normed.plain, &normed.quants, &normed.scales];
        let around = network.layers.iter().filter_map(|layer| layer.convolutions.as_ref());
        let around = around.map(|[mixer, feed_forward]| {
            Ok([Around::new(device, mixer, state)?, Around::new(device, feed_forward, state)?])
        });
        let rank = block.selector.map_or(0, |sizes| sizes.rank.next_multiple_of(LANES));
        let places = device.buffer(4 * SCORED * rank)?;
        let place = head.selector.as_ref().map(|selector| {
            Product::new(
                device,
                &[Matrix::upload(device, &selector.position)?],
                &state.scored,
                (&places, false),
            )
        });
        let before = head.markov.as_ref().map(|markov| -> Result<_> {
            let row = Rows::new(device, 1, markov.after.inputs())?;
            let bytes = 4 * markov.after.rows().next_multiple_of(LANES);
            let bias = device.buffer(bytes)?;
            let after =
                Product::new(device, &[Matrix::upload(device, &markov.after)?], &row, (&bias, false))?;
            Ok(Before {
                quantise: Quantise::new(device, &row)?,
                row,
                after,
                bias,
                returning: device.readable(bytes)?,
            })
        });
        Ok(Some(Self {
            quantise: Quantise::new(device, &states)?,
            fuse: Product::new(
                device,
                &[Matrix::upload(device, &head.fuse)?],
                &states,
                (&state.hidden, false),
            )?,
            fused_norm: Step::new(device, Kernel::Norm, &fused_norm)?,
            around: around.collect::<Result<_>>()?,
            place: place.transpose()?,
            places,
            rank,
            before: before.transpose()?,
            states,
            head,
        }))
    }

    /// Numbers a row of what a selector knows, in whole vectors.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Hands over states of the target, which are the rows `rows` of these.
    pub fn write(&self, device: &GpuDevice, features: Features<'_>, rows: Range<usize>) {
        let mut states = vec![0.0; rows.len() * self.states.width];
        for (row, state) in rows.zip(states.chunks_exact_mut(self.states.width)) {
            state[..features.width()].copy_from_slice(features.row(row));
        }
        device.write(&self.states.plain, states.into_iter().map(f32::to_bits));
    }

    /// Makes normed rows of the first `rows` states that were written.
    pub fn fuse(&self, pass: &mut Dispatches, rows: usize, config: &ModelConfig) {
        self.quantise.run(pass, rows);
        self.fuse.run(pass, rows);
        let (hidden, width) = (config.hidden as u32, config.hidden.next_multiple_of(LANES) as u32);
        let asked = [0, hidden, width, width, 0, NONE, (config.norm_epsilon as f32).to_bits(), 0];
        self.fused_norm.run(pass, &asked, (rows, 1));
    }

    /// The normed rows, convolved, for attention of a layer (0) or its feed-forward network (1).
    pub fn convolve_inputs(&self, pass: &mut Dispatches, (layer, part): (usize, usize), rows: usize) {
        if let Some(around) = self.around.get(layer) {
            around[part].convolve_inputs(pass, rows);
        }
    }

    /// Adds the rows of the branch, convolved, to the states.
    pub fn convolve_branch(&self, pass: &mut Dispatches, (layer, part): (usize, usize), rows: usize) {
        if let Some(around) = self.around.get(layer) {
            around[part].convolve_branch(pass, rows);
        }
    }

    /// What a selector knows of the first `rows` asked for.
    pub fn score(&self, pass: &mut Dispatches, rows: usize) {
        if let Some(place) = &self.place {
            place.run(pass, rows);
        }
    }

    /// What a token adds to the scores of the place after it, of which this is what the head knows of the token.
    ///
    /// # Errors
    /// `Error::Compute` when the device fails.
    pub fn bias(&self, device: &GpuDevice, of_before: &[f32]) -> Result<Vec<f32>> {
        let Some(before) = &self.before else { return Ok(Vec::new()) };
        device.write(&before.row.plain, of_before.iter().map(|number| number.to_bits()));
        let mut recording = Recording::new(device);
        before.quantise.run(recording.pass(), 1);
        before.after.run(recording.pass(), 1);
        recording.copy(&before.bias, (&before.returning, 0), before.bias.size());
        recording.end();
        device.fetch(&before.returning, before.bias.size() as usize / 4)
    }
}

impl Phases<'_> {
    /// Writes down a pass over rows of the target's states for a text: of what is made of them every layer's keys and
    /// values are cached.
    pub fn remember_states(&self, recording: &mut Recording<'_>, block: &Block) {
        block.fuse(recording.pass(), self.rows, self.config);
        for (index, layer) in self.network.layers.iter().enumerate() {
            recording.next(layer.reads(self.rows));
            let pass = recording.pass();
            // Keys and values are the last panels.
            self.steps.layers[index].heads.run_below(pass, self.rows, self.state.places.keys / LANES);
            self.attention[index].remember(pass, &self.seeing(), layer);
        }
    }
}

/// The programs of a convolution before and after a part of a layer.
struct Around {
    sizes: Sizes,
    hidden: usize,
    /// Numbers of a row that are computed of it, in whole vectors.
    dynamics: usize,
    dynamic: Product,
    inputs: Step,
    quantise: Quantise,
    branch: Step,
}

impl Around {
    /// Of a head whose `state` has what convolutions need.
    fn new(device: &GpuDevice, convolution: &Convolution, state: &State) -> Result<Self> {
        let Some((rows, dynamic)) = &state.unconvolved else { unreachable!("a head without convolutions") };
        let Convolution { sizes, base, projection } = convolution;
        let step = |from, to| Step::new(device, Kernel::Convolve, &[from, dynamic, base, to]);
        Ok(Self {
            sizes: *sizes,
            hidden: projection.inputs,
            dynamics: projection.panels * LANES,
            dynamic: Product::new(device, std::slice::from_ref(projection), rows, (dynamic, false))?,
            inputs: step(&rows.plain, &state.normed.plain)?,
            quantise: Quantise::new(device, &state.normed)?,
            branch: step(&state.branch, &state.hidden)?,
        })
    }

    fn convolve_inputs(&self, pass: &mut Dispatches, rows: usize) {
        self.dynamic.run(pass, rows);
        self.inputs.run(pass, &self.asked(0), (self.hidden.div_ceil(64), rows));
        self.quantise.run(pass, rows);
    }

    fn convolve_branch(&self, pass: &mut Dispatches, rows: usize) {
        self.branch.run(pass, &self.asked(1), (self.hidden.div_ceil(64), rows));
    }

    /// What `convolve.wgsl` is asked of a side: only the second is added.
    fn asked(&self, side: u32) -> [u32; 9] {
        let (hidden, width) = (self.hidden as u32, self.hidden.next_multiple_of(LANES) as u32);
        let Sizes { taps, group } = self.sizes;
        [hidden, width, width, taps as u32, group as u32, side, self.dynamics as u32, side, 0]
    }
}
