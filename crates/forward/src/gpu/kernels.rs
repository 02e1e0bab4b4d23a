//! GPU kernels and their buffer bindings. `source.rs` assembles their WGSL.

use crate::cpu::panels::Format;

/// Rows per tile; there is a kernel for each size.
pub const TILES: [usize; 4] = [1, 2, 4, 8];

/// Queries per workgroup of attention; there is a kernel for each size.
pub const ATTEND: [usize; 2] = [4, 8];

/// Bytes of immediates (push constants) of a dispatch.
pub const IMMEDIATE_BYTES: u32 = 64;

/// Most numbers of a latent and a rotated key that kernels support.
pub const LONGEST_LATENT: usize = 1024;

/// Largest head size that kernels support.
pub const LONGEST_HEAD: usize = 512;

/// Most experts of a layer, or clusters of tokens, that are ranked.
pub const MOST_RANKED: usize = 2048;

/// Offset that stands for a vector the family does not have.
pub const NONE: u32 = u32::MAX;

/// Fused multiply-add of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// WGSL's `fma`.
    Own,
    /// Emulation with 64-bit numbers: slow, for devices whose `fma` rounds twice.
    Emulated,
    /// Wrong results, for tests.
    #[cfg(test)]
    Wrong,
}

/// Output rows side by side in products of several rows: those of one panel, or as many as a
/// subgroup has threads, which then share the inputs of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    Sixteen,
    ThirtyTwo,
    SixtyFour,
}

impl Lanes {
    pub const ALL: [Self; 3] = [Self::Sixteen, Self::ThirtyTwo, Self::SixtyFour];

    pub fn count(self) -> usize {
        match self {
            Self::Sixteen => 16,
            Self::ThirtyTwo => 32,
            Self::SixtyFour => 64,
        }
    }
}

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Product of weights in this format with a tile of this many rows.
    Product(Format, usize),
    /// Product of experts' weights in this format with a tile of this many slots.
    SlotProduct(Format, usize),
    /// Product of gate and up in this format, and the activation, with a tile of this many rows.
    Gated(Format, usize),
    SlotGated(Format, usize),
    /// Embedding lookup in this format.
    Embed(Format),
    TopK,
    Arrange,
    Combine,
    /// Addition of a branch, weighted by a gate.
    AddGated,
    Concat,
    Convolve,
    /// Scores of token clusters at the places of their tokens.
    Scatter,
    Norm,
    NormHeads,
    /// Per-layer inputs of all layers.
    PerLayer,
    Quantise,
    Activate,
    Rope,
    CompleteLatents,
    AttendLatents,
    /// Attention of this many queries to a run of positions.
    Attend(usize),
    /// Addition of the runs.
    Join,
    Gather,
    /// Copies of cached keys and values as numbers, and the other way.
    LoadKv,
    StoreKv,
    /// Gated short convolution of recurrent layers.
    ConvolveGates,
    /// Convolution of recurrent layers with state matrices, and the rates of their steps.
    ConvolveHeads,
    /// Steps of the state matrices.
    Recur,
    /// Norm and gate of what they give.
    GateHeads,
    /// Records of rows, and tails of states.
    Remember,
    Score,
    Sketch,
    /// Addition of rows to the states of pictures.
    AddRows,
    Probe,
}

impl Kernel {
    /// All kernels.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_tile = |rows| {
            move |format| {
                [
                    Self::Product(format, rows),
                    Self::SlotProduct(format, rows),
                    Self::Gated(format, rows),
                    Self::SlotGated(format, rows),
                ]
            }
        };
        let products =
            TILES.into_iter().flat_map(move |rows| Format::ALL.into_iter().flat_map(of_tile(rows)));
        let embeddings = Format::ALL.into_iter().map(Self::Embed);
        let of_layers =
            [Self::Norm, Self::NormHeads, Self::PerLayer, Self::Quantise, Self::Activate, Self::Rope];
        let of_latents = [Self::CompleteLatents, Self::AttendLatents];
        let of_attention = ATTEND.into_iter().map(Self::Attend).chain([Self::Join]).chain(of_latents);
        let of_experts = [Self::TopK, Self::Arrange, Self::Combine, Self::AddGated];
        let of_heads = [Self::Concat, Self::Convolve, Self::Scatter];
        let of_caches = [Self::Gather, Self::LoadKv, Self::StoreKv];
        let of_recurrence =
            [Self::ConvolveGates, Self::ConvolveHeads, Self::Recur, Self::GateHeads, Self::Remember];
        let others = [Self::Score, Self::Sketch, Self::AddRows, Self::Probe];
        let of_layers = of_layers.into_iter().chain(of_attention).chain(of_experts).chain(of_recurrence);
        let unlike = of_layers.chain(of_heads).chain(of_caches).chain(others);
        products.chain(embeddings).chain(unlike)
    }

    /// Lanes of this kernel on a device whose products of several rows have `lanes`. Products of
    /// one or two rows load little that could be shared, and the rows of experts differ.
    pub fn lanes(self, lanes: Lanes) -> Lanes {
        match self {
            Self::Product(_, rows) | Self::Gated(_, rows) if rows >= 4 => lanes,
            _ => Lanes::Sixteen,
        }
    }

    /// Buffer bindings, in order: `true` for those the kernel writes.
    pub fn bindings(self) -> &'static [bool] {
        match self {
            Self::Product(..) => &[false, true, false, false],
            Self::SlotProduct(..) => &[false, true, false, false, false],
            Self::Gated(..) => &[false, true, false, false, true, true],
            Self::SlotGated(..) => &[false, true, false, false, true, true, false, false],
            Self::Embed(_) => &[false, false, true],
            Self::AddRows => &[false, true],
            Self::TopK | Self::AddGated => &[false, false, true],
            Self::Arrange => &[false, true, true],
            Self::Combine => &[false, false, false, false, true],
            Self::Convolve => &[false, false, false, true],
            Self::Concat => &[true, false, true, true, true],
            Self::Scatter => &[false, false, false, false, true],
            Self::Norm => &[true, false, false, true, true, true],
            Self::NormHeads => &[true, false],
            Self::PerLayer => &[true, false, false],
            Self::Quantise => &[true, true, true],
            Self::Activate => &[false, false, true, true, true],
            Self::CompleteLatents => &[false, false, false, false, false, true, true, true],
            Self::AttendLatents => &[false, false, false, true],
            Self::Rope => &[true, false, false, false, true, true],
            Self::Attend(_) => &[false, false, false, false, true],
            Self::Join => &[false, false, false, true, true, true, false],
            Self::Gather => &[false, true, true],
            Self::LoadKv => &[false, false, false, true],
            Self::StoreKv => &[false, false, true, true],
            Self::ConvolveGates | Self::ConvolveHeads => {
                &[false, false, false, false, false, true, true, true]
            }
            Self::Recur => &[false, false, false, true, false, false, true, true],
            Self::GateHeads => &[false, false, false, true, true, true],
            Self::Remember => &[false, false, false, false, false, true, true],
            Self::Score => &[true],
            Self::Sketch => &[false, false, true],
            Self::Probe => &[false, true],
        }
    }

    /// Name of the entry point.
    pub fn entry(self) -> &'static str {
        match self {
            Self::Product(..) | Self::SlotProduct(..) => "product",
            Self::Gated(..) | Self::SlotGated(..) => "gated",
            Self::Embed(_) => "embed",
            Self::TopK => "top_k",
            Self::Arrange => "arrange",
            Self::Combine => "combine",
            Self::AddGated => "add_gated",
            Self::Concat => "concat",
            Self::Convolve => "convolve",
            Self::Scatter => "scatter",
            Self::Norm => "norm",
            Self::NormHeads => "norm_heads",
            Self::PerLayer => "per_layer",
            Self::Quantise => "quantise",
            Self::Activate => "activate",
            Self::Rope => "rope",
            Self::CompleteLatents => "complete_latents",
            Self::AttendLatents => "attend_latents",
            Self::Attend(_) => "attend",
            Self::Join => "join",
            Self::Gather => "gather",
            Self::LoadKv => "load_kv",
            Self::StoreKv => "store_kv",
            Self::ConvolveGates => "convolve_gates",
            Self::ConvolveHeads => "convolve_heads",
            Self::Recur => "recur",
            Self::GateHeads => "gate_heads",
            Self::Remember => "remember",
            Self::Score => "score",
            Self::Sketch => "sketch",
            Self::AddRows => "add_rows",
            Self::Probe => "probe",
        }
    }
}
