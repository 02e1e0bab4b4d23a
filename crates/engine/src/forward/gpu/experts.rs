//! Experts in a pass on the device: a router ranks them for every row, each of the chosen reads its weights once for all
//! its rows, and what they give is added up row by row. A row's sums are in the order of its own ranking, so that they do
//! not depend on where other rows go.

use wgpu::{BindGroup, Buffer, ComputePass, ComputePipeline};

use super::device::GpuDevice;
use super::kernels::Kernel;
use super::network::{Dense, Matrix};
use super::state::{Rows, State};
use super::step::{Product, Step, bind, dispatch};
use crate::error::Result;
use crate::forward::cpu::simd::LANES;
use crate::model::{Experts, ModelConfig};

/// The programs of a layer's experts.
pub struct ExpertSteps {
    sizes: Experts,
    hidden: usize,
    /// What they give waits for a norm, and is not added to the state.
    aside: bool,
    router: Product,
    rank: Step,
    arrange: Step,
    gate: SlotProduct,
    up: SlotProduct,
    down: SlotProduct,
    combine: Step,
}

impl ExpertSteps {
    /// Of a model whose `state` has what they need.
    ///
    /// # Errors
    /// As [`Step::new`].
    pub fn new(
        device: &GpuDevice,
        (router, experts): (&Matrix, &Dense),
        state: &State,
        config: &ModelConfig,
    ) -> Result<Self> {
        let Some(routed) = &state.routed else { unreachable!("experts in a model that has none") };
        let (slots, choices, slot_of) = (&routed.slots, &routed.choices, &routed.slot_of);
        let product = |matrix, rows, out| SlotProduct::new(device, matrix, (rows, slots), out);
        let aside = config.family.post_norms;
        let to = if aside { &state.branch } else { &state.hidden };
        Ok(Self {
            sizes: routed.sizes.clone(),
            hidden: config.hidden,
            aside,
            router: Product::new(device, router, &state.normed, &routed.scores, false)?,
            rank: Step::new(device, Kernel::Rank, &[&routed.scores, choices])?,
            arrange: Step::new(device, Kernel::Arrange, &[choices, slots, slot_of])?,
            gate: product(&experts.gate, &state.normed, &state.gate)?,
            up: product(&experts.up, &state.normed, &state.up)?,
            down: product(&experts.down, &state.gated, &routed.given)?,
            combine: Step::new(device, Kernel::Combine, &[choices, slot_of, &routed.given, to])?,
        })
    }

    /// Numbers that come out of an expert's gate.
    pub fn intermediate(&self) -> usize {
        self.sizes.intermediate
    }

    /// Puts the first `rows` of the normed states on their way; gate and up of the slots are there then. Returns how
    /// many slots there are.
    pub fn route(&self, pass: &mut ComputePass<'_>, rows: usize) -> usize {
        let Experts { count, used, normalised, .. } = self.sizes;
        let slots = rows * used;
        self.router.run(pass, rows);
        let stride = count.next_multiple_of(LANES);
        self.rank.run(pass, &[count, stride, used, usize::from(normalised)].map(|n| n as u32), (rows, 1));
        // An expert has at most a slot for each row.
        let tile = self.gate.tile(rows);
        self.arrange.run(pass, &[slots, used, tile].map(|n| n as u32), (1, 1));
        self.gate.run(pass, (slots, tile), true);
        self.up.run(pass, (slots, tile), true);
        slots
    }

    /// Adds up what experts make of what came through their gates, for the first `rows`.
    pub fn combine(&self, pass: &mut ComputePass<'_>, rows: usize) {
        let (used, stride) = (self.sizes.used, self.hidden.next_multiple_of(LANES));
        self.down.run(pass, (rows * used, self.down.tile(rows)), false);
        let asked = [used, self.hidden, stride, usize::from(!self.aside), 0].map(|n| n as u32);
        self.combine.run(pass, &asked, (self.hidden.div_ceil(64), rows));
    }
}

/// A matrix of each expert with its slots.
struct SlotProduct {
    /// By the slots of their tiles, fewest first.
    pipelines: Vec<(usize, ComputePipeline)>,
    /// Of each part of the matrices its first panel and how many it has.
    parts: Vec<(BindGroup, usize, usize)>,
    /// Panels of one matrix.
    panels: usize,
    /// Of a row: blocks in eight bits, or inputs.
    length: usize,
    /// Of the rows it is multiplied with.
    width: usize,
    /// Of a slot that comes out.
    stride: usize,
}

impl SlotProduct {
    fn new(
        device: &GpuDevice,
        matrix: &Matrix,
        (rows, slots): (&Rows, &Buffer),
        out: &Buffer,
    ) -> Result<Self> {
        let format = matrix.format;
        let make =
            |&tile: &usize| Ok((tile, device.pipelines().get(device, Kernel::SlotProduct(format, tile))?));
        let pipelines = device.tiles().iter().map(make).collect::<Result<Vec<_>>>()?;
        let parts = matrix.parts.iter().map(|part| {
            let [x, scales] = rows.given(format);
            let buffers = [&part.weights, out, x, scales, slots];
            Ok((bind(device, &pipelines[0].1, &buffers)?, part.first, part.panels))
        });
        Ok(Self {
            parts: parts.collect::<Result<_>>()?,
            pipelines,
            panels: matrix.panels(),
            length: if format.quantised() { matrix.inputs / 32 } else { matrix.inputs },
            width: rows.width,
            stride: matrix.rows.next_multiple_of(LANES),
        })
    }

    /// Slots of the tiles that so many are multiplied in, or are cut into.
    fn tile(&self, slots: usize) -> usize {
        let fits = self.pipelines.iter().find(|(size, _)| *size >= slots).or(self.pipelines.last());
        fits.map_or(1, |(size, _)| *size)
    }

    /// Of so many slots in tiles of that size; what goes in is a row for each row, or for each slot.
    fn run(&self, pass: &mut ComputePass<'_>, (slots, tile): (usize, usize), by_row: bool) {
        let Some((_, pipeline)) = self.pipelines.iter().find(|(size, _)| *size == tile) else { return };
        for (group, first, held) in &self.parts {
            let (length, stride) = (self.length, self.stride);
            let asked =
                [length, 0, slots, stride, *first, 0, self.width, self.panels, *held, usize::from(by_row)];
            dispatch(pass, (pipeline, group), &asked.map(|n| n as u32), (self.panels, slots));
        }
    }
}
