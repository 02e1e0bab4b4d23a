//! The programs of the GPU: which there are, and what they are bound to. Their text is for `source.rs`.

use crate::forward::cpu::panels::Format;

/// Rows of a tile, for each of which there is a program.
pub const TILES: [usize; 4] = [1, 2, 4, 8];

/// Bytes that a program is told each time it runs.
pub const IMMEDIATE_BYTES: u32 = 64;

/// The most numbers of a head.
pub const LONGEST_HEAD: usize = 512;

/// Where a vector would begin that a family does not have.
pub const NONE: u32 = u32::MAX;

/// How a device multiplies and adds with one rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// By its own `fma`.
    Own,
    /// By numbers of 64 bits: slow, for devices whose `fma` rounds twice.
    Emulated,
    /// As no device should.
    #[cfg(test)]
    Wrong,
}

/// A program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Of weights in this format with a tile of so many rows.
    Product(Format, usize),
    /// The same of experts, with a tile of so many slots.
    SlotProduct(Format, usize),
    Rank,
    Arrange,
    Combine,
    Join,
    Convolve,
    Norm,
    Quantise,
    Activate,
    Turn,
    Attend,
    Gather,
    Score,
    Sketch,
    Probe,
}

impl Kernel {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_tile = |rows| move |format| [Self::Product(format, rows), Self::SlotProduct(format, rows)];
        let weights = TILES.into_iter().flat_map(move |rows| Format::ALL.into_iter().flat_map(of_tile(rows)));
        let others = [Self::Norm, Self::Quantise, Self::Activate, Self::Turn, Self::Attend, Self::Gather];
        let of_experts = [Self::Rank, Self::Arrange, Self::Combine];
        let of_heads = [Self::Join, Self::Convolve];
        weights.chain(others).chain(of_experts).chain(of_heads).chain([
            Self::Score,
            Self::Sketch,
            Self::Probe,
        ])
    }

    /// Of each buffer whether it is written.
    pub fn bindings(self) -> &'static [bool] {
        match self {
            Self::Product(..) => &[false, true, false, false],
            Self::SlotProduct(..) => &[false, true, false, false, false],
            Self::Rank => &[false, true],
            Self::Arrange => &[false, true, true],
            Self::Combine | Self::Convolve => &[false, false, false, true],
            Self::Join => &[true, false, true, true, true],
            Self::Norm => &[true, false, false, true, true, true],
            Self::Quantise => &[true, true, true],
            Self::Activate => &[false, false, true, true, true],
            Self::Turn => &[true, false, false, false, false, false, true, true],
            Self::Attend => &[false, false, false, false, true, true],
            Self::Gather => &[false, true, true],
            Self::Score => &[true],
            Self::Sketch => &[false, false, true],
            Self::Probe => &[false, true],
        }
    }

    /// The function that it begins with.
    pub fn entry(self) -> &'static str {
        match self {
            Self::Product(..) | Self::SlotProduct(..) => "product",
            Self::Rank => "rank",
            Self::Arrange => "arrange",
            Self::Combine => "combine",
            Self::Join => "join",
            Self::Convolve => "convolve",
            Self::Norm => "norm",
            Self::Quantise => "quantise",
            Self::Activate => "activate",
            Self::Turn => "turn",
            Self::Attend => "attend",
            Self::Gather => "gather",
            Self::Score => "score",
            Self::Sketch => "sketch",
            Self::Probe => "probe",
        }
    }
}
