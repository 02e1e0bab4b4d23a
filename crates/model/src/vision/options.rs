//! Options in which the vision transformers of the families differ, one row for each family.

use super::config::Projector;

/// Options of a vision transformer. A transformer without any has RMS norms, matrices without
/// biases, and no positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VitOptions {
    /// Layer norms, which have biases, in the place of RMS norms.
    pub layer_norms: bool,
    /// Matrices have biases.
    pub biases: bool,
    /// Queries, keys and values come from one matrix.
    pub fused: bool,
    /// Queries, keys and, without weights, values are normalised head by head; scores are not
    /// scaled.
    pub head_norms: bool,
    /// The feed-forward network has a gate.
    pub gate: bool,
    /// Outputs of attention and of the feed-forward network are normalised.
    pub post_norms: bool,
    /// Patches are normalised before the first layer.
    pub first_norm: bool,
    /// States are normalised after the last layer.
    pub last_norm: bool,
    pub positions: LearnedPositions,
    pub rotation: Option<Rotation>,
}

/// Activation function of the feed-forward network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisionActivation {
    /// GELU's approximation by tanh.
    GeluTanh,
    Gelu,
    Silu,
}

/// Learned positions that are added to patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnedPositions {
    None,
    /// A square grid of positions, interpolated to the size of the picture.
    Grid,
    /// A table of columns and a table of rows, whose entries are added.
    Tables,
}

/// Two-dimensional RoPE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation {
    /// Base of the frequencies.
    pub base: f32,
    pub layout: RotationLayout,
}

/// Components of a head that rotate together, and by which axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationLayout {
    /// Pairs half a head apart: the first half of them by row, the second by column, at the same
    /// frequencies.
    RowsThenColumns,
    /// Pairs a quarter of a head apart: the first half of a head by column, the second by row.
    ColumnsBesideRows,
    /// Pairs half a head apart: rows have the frequencies with even numbers, columns those with odd
    /// ones.
    Alternating,
}

const PLAIN: VitOptions = VitOptions {
    layer_norms: false,
    biases: false,
    fused: false,
    head_norms: false,
    gate: false,
    post_norms: false,
    first_norm: false,
    last_norm: false,
    positions: LearnedPositions::None,
    rotation: None,
};

/// SigLIP.
const IDEFICS3: VitOptions = VitOptions {
    layer_norms: true,
    biases: true,
    last_norm: true,
    positions: LearnedPositions::Grid,
    ..PLAIN
};

const QWEN3VL: VitOptions = VitOptions {
    layer_norms: true,
    biases: true,
    fused: true,
    positions: LearnedPositions::Grid,
    rotation: Some(Rotation { base: 10_000.0, layout: RotationLayout::RowsThenColumns }),
    ..PLAIN
};

const GEMMA4: VitOptions = VitOptions {
    head_norms: true,
    gate: true,
    post_norms: true,
    positions: LearnedPositions::Tables,
    rotation: Some(Rotation { base: 100.0, layout: RotationLayout::ColumnsBesideRows }),
    ..PLAIN
};

const PIXTRAL: VitOptions = VitOptions {
    gate: true,
    first_norm: true,
    rotation: Some(Rotation { base: 10_000.0, layout: RotationLayout::Alternating }),
    ..PLAIN
};

impl Projector {
    /// Options of the family's vision transformer.
    pub fn options(self) -> VitOptions {
        match self {
            Self::Idefics3 { .. } => IDEFICS3,
            Self::Qwen3Vl { .. } => QWEN3VL,
            Self::Gemma4 { .. } => GEMMA4,
            Self::Pixtral { .. } => PIXTRAL,
        }
    }
}
