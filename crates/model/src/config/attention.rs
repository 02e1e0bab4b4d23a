//! Kinds of attention: windows, positions, key-value heads and optional parts of layers.

use super::key_heads::KeyHeads;
use super::rotary::Rotary;

/// Window, rotary positions, key-value heads and optional parts of an attention layer.
#[derive(Debug, Clone, PartialEq)]
pub struct AttentionKind {
    /// Size of the sliding window in tokens, the current one included; `None` for full attention.
    pub window: Option<usize>,
    pub rotary: Rotary,
    pub keys: KeyHeads,
    pub parts: AttentionParts,
}

/// Optional parts of grouped-query attention. All layers of a model have the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionParts {
    /// True if queries, keys and values have biases.
    pub biases: bool,
    /// True if the output projection has a bias.
    pub output_bias: bool,
    /// True if values are normalised, by a norm without weights.
    pub value_norm: bool,
    /// True if each head has an attention sink: a learned logit in the softmax without a value.
    pub sinks: bool,
    /// Normalisation of queries and keys before rotation.
    pub head_norms: HeadNorms,
    /// True if the output is multiplied by the sigmoid of a projection of the input.
    pub gate: bool,
}

impl AttentionParts {
    pub(crate) const NONE: Self = Self {
        biases: false,
        output_bias: false,
        value_norm: false,
        sinks: false,
        head_norms: HeadNorms::None,
        gate: false,
    };
}

/// Normalisation of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadNorms {
    None,
    /// Normalises each head.
    Each,
    /// Normalises each head, then multiplies by constants of the config; GGUF files repeat these as
    /// weights.
    Fixed,
    /// Normalises all heads of a token as one vector.
    Together,
}

/// Flags of an attention layer that tell its kind apart from the others of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KindFlags {
    pub windowed: bool,
    pub rotated: bool,
}

/// Builds the kinds of attention that occur among `layers`, and the kind of each layer as an index
/// into them. Full attention comes first.
pub(super) fn attention_kinds(
    layers: &[KindFlags],
    global: &AttentionKind,
    local: &AttentionKind,
) -> (Vec<AttentionKind>, Vec<usize>) {
    const ORDER: [(bool, bool); 4] = [(false, true), (false, false), (true, true), (true, false)];
    let order = ORDER.map(|(windowed, rotated)| KindFlags { windowed, rotated });
    let mut kinds = Vec::new();
    let mut indices = [0; ORDER.len()];
    for (flags, index) in order.iter().zip(&mut indices).filter(|(flags, _)| layers.contains(flags)) {
        let kind = flags.kind(global, local);
        *index = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
    }
    let index = |layer| order.iter().position(|flags| flags == layer).map_or(0, |at| indices[at]);
    (kinds, layers.iter().map(index).collect())
}

impl KindFlags {
    /// Returns the kind with these flags, from those of full and of windowed layers.
    fn kind(self, global: &AttentionKind, local: &AttentionKind) -> AttentionKind {
        let kind = if self.windowed { local } else { global };
        let rotary = if self.rotated { kind.rotary.clone() } else { kind.rotary.without_rotation() };
        AttentionKind { rotary, ..*kind }
    }
}
