//! Rotary position embeddings: cosines and sines of all positions so far, on the device.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::rotary_emb::{rope, rope_i};

use super::feed::Positions;
use crate::model::{Rotary, RotaryLayout};

/// Positions known at first; doubled when there are more.
const FIRST: usize = 256;

#[derive(Debug)]
pub struct RotaryTable {
    rotary: Rotary,
    cosines: Tensor, // [positions, rotated / 2]
    sines: Tensor,   // [positions, rotated / 2]
}

/// Those of the nodes of a pass.
#[derive(Debug)]
pub struct Angles {
    cosines: Tensor, // [nodes, rotated / 2]
    sines: Tensor,   // [nodes, rotated / 2]
    layout: RotaryLayout,
}

impl RotaryTable {
    pub fn new(rotary: Rotary, device: &Device) -> Result<Self> {
        let (cosines, sines) = table(&rotary, FIRST, device)?;
        Ok(Self { rotary, cosines, sines })
    }

    pub fn at(&mut self, positions: &Positions) -> Result<Angles> {
        let (&Positions::Consecutive(std::ops::Range { end, .. }) | &Positions::Scattered(_, end)) =
            positions;
        if end > self.cosines.dim(0)? {
            (self.cosines, self.sines) = table(&self.rotary, end.next_power_of_two(), self.cosines.device())?;
        }
        let of = |table: &Tensor| match positions {
            Positions::Consecutive(range) => table.narrow(0, range.start, range.len()),
            Positions::Scattered(positions, _) => table.index_select(positions, 0),
        };
        Ok(Angles { cosines: of(&self.cosines)?, sines: of(&self.sines)?, layout: self.rotary.layout })
    }
}

fn table(rotary: &Rotary, positions: usize, device: &Device) -> Result<(Tensor, Tensor)> {
    let (mut cosines, mut sines) = (Vec::new(), Vec::new());
    rotary.tabulate(&(0..positions).collect::<Vec<_>>(), &mut cosines, &mut sines);
    let shape = (positions, rotary.size() / 2);
    Ok((Tensor::from_vec(cosines, shape, device)?, Tensor::from_vec(sines, shape, device)?))
}

impl Angles {
    /// `[heads, nodes, head_size]`, the first components rotated by each node's position.
    pub fn rotate(&self, x: &Tensor) -> Result<Tensor> {
        let (head_size, rotated) = (x.dim(D::Minus1)?, 2 * self.cosines.dim(1)?);
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
}
