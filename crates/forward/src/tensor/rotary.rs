//! Rotary position embeddings: tables of cosines and sines on the device.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::rotary_emb::{rope, rope_i};
use foretoken_model::{RopeTable, Rotary, RotaryLayout};

use super::feed::Positions;
use crate::grids::Position;

/// Initial number of positions; doubled as needed.
const FIRST: usize = 256;

#[derive(Debug)]
pub struct RotaryTable {
    rotary: Rotary,
    /// LongRoPE's factors for long texts apply.
    long: bool,
    /// Positions in the tables.
    positions: usize,
    cosines: Tensor, // [positions, rotated / 2]
    sines: Tensor,   // [positions, rotated / 2]
    /// Temperature factor on queries, if it is not 1.
    temperature: Option<Tensor>, // [positions, 1]
}

/// Angles of the nodes of a pass.
#[derive(Debug)]
pub struct Angles {
    cosines: Tensor,             // [nodes, rotated / 2]
    sines: Tensor,               // [nodes, rotated / 2]
    temperature: Option<Tensor>, // [nodes, 1]
    layout: RotaryLayout,
}

impl RotaryTable {
    pub fn new(rotary: Rotary, device: &Device) -> Result<Self> {
        Self::of(rotary, false, FIRST, device)
    }

    fn of(rotary: Rotary, long: bool, positions: usize, device: &Device) -> Result<Self> {
        let all: Vec<usize> = (0..positions).collect();
        let mut table = RopeTable::default();
        rotary.tabulate(&all, long, &mut table);
        let shape = (positions, rotary.size() / 2);
        let temperatures = rotary.attn_temperature.map(|factors| {
            let numbers: Vec<f32> = all.iter().map(|&position| factors.at(position)).collect();
            Tensor::from_vec(numbers, (positions, 1), device)
        });
        Ok(Self {
            cosines: Tensor::from_vec(table.cosines, shape, device)?,
            sines: Tensor::from_vec(table.sines, shape, device)?,
            temperature: temperatures.transpose()?,
            rotary,
            long,
            positions,
        })
    }

    /// Selects LongRoPE's factors for long or short texts.
    pub fn set_long(&mut self, long: bool) {
        if self.rotary.long_frequencies.is_some() && self.long != long {
            (self.long, self.positions) = (long, 0);
        }
    }

    pub fn at(&mut self, positions: &Positions) -> Result<Angles> {
        let end = match positions {
            Positions::Consecutive(range) => range.end,
            Positions::Scattered(_, end) => *end,
            Positions::Grid(positions) => return self.on_grid(positions),
        };
        if end > self.positions {
            let positions = end.next_power_of_two().max(FIRST);
            *self = Self::of(self.rotary.clone(), self.long, positions, self.cosines.device())?;
        }
        let of = |table: &Tensor| match positions {
            Positions::Consecutive(range) => table.narrow(0, range.start, range.len()),
            Positions::Scattered(positions, _) => table.index_select(positions, 0),
            Positions::Grid(_) => unreachable!("a grid has no table"),
        };
        let temperature = self.temperature.as_ref().map(of).transpose()?;
        let layout = self.rotary.layout;
        Ok(Angles { cosines: of(&self.cosines)?, sines: of(&self.sines)?, temperature, layout })
    }
}

impl RotaryTable {
    /// Angles of positions by time, row and column, whose families have no temperature.
    fn on_grid(&self, positions: &[Position]) -> Result<Angles> {
        let mut table = RopeTable::default();
        self.rotary.tabulate_grid(positions, self.long, &mut table);
        let (shape, device) = ((positions.len(), self.rotary.size() / 2), self.cosines.device());
        Ok(Angles {
            cosines: Tensor::from_vec(table.cosines, shape, device)?,
            sines: Tensor::from_vec(table.sines, shape, device)?,
            temperature: None,
            layout: self.rotary.layout,
        })
    }
}

impl Angles {
    /// Rotates the first components of `[heads, nodes, head_size]` by each node's position.
    pub fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        let (head_size, rotated) = (x.dim(D::Minus1)?, 2 * self.cosines.dim(1)?);
        if rotated == 0 {
            return Ok(x.clone());
        }
        if rotated < head_size {
            let rest = x.narrow(D::Minus1, rotated, head_size - rotated)?;
            let first = self.rotate(&x.narrow(D::Minus1, 0, rotated)?.contiguous()?)?;
            return Tensor::cat(&[first, rest], D::Minus1);
        }
        let x = x.unsqueeze(0)?;
        match self.layout {
            RotaryLayout::Interleaved => rope_i(&x, &self.cosines, &self.sines),
            RotaryLayout::Halves => rope(&x, &self.cosines, &self.sines),
        }?
        .squeeze(0)
    }

    /// Multiplies queries `[heads, nodes, head_size]` by their temperature factor.
    pub fn scale_queries(&self, queries: Tensor) -> Result<Tensor> {
        self.temperature
            .as_ref()
            .map_or(Ok(queries.clone()), |temperature| queries.broadcast_mul(temperature))
    }
}
