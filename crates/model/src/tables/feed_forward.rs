//! Tensors of dense feed-forward networks and of shared experts.

use super::spec::{Alias, Place, Storage, TensorSpec};

/// Gate of the shared expert; some files store it as a vector.
pub(super) const SHARED_GATE: &str = "ffn_gate_inp_shexp.weight";

const GATE: &str = "ffn_gate.weight";
const UP: &str = "ffn_up.weight";
const SHARED_GATE_MATRIX: &str = "ffn_gate_shexp.weight";
const SHARED_UP: &str = "ffn_up_shexp.weight";

pub(super) const TENSORS: [TensorSpec; 7] = [
    TensorSpec::new(GATE, &["mlp.gate_proj.weight", "feed_forward.w1.weight"], inward).when(is_dense),
    TensorSpec::new(UP, &["mlp.up_proj.weight", "feed_forward.w3.weight"], inward).when(is_dense),
    TensorSpec::new(
        "ffn_down.weight",
        &["mlp.down_proj.weight", "feed_forward.w2.weight", "shared_mlp.output_linear.weight"],
        outward,
    )
    .when(is_dense),
    TensorSpec::new(
        SHARED_GATE_MATRIX,
        &["mlp.shared_expert.gate_proj.weight", "mlp.shared_experts.gate_proj.weight"],
        inward,
    )
    .when(is_shared),
    TensorSpec::new(
        SHARED_UP,
        &["mlp.shared_expert.up_proj.weight", "mlp.shared_experts.up_proj.weight"],
        inward,
    )
    .when(is_shared),
    TensorSpec::new(
        "ffn_down_shexp.weight",
        &[
            "mlp.shared_expert.down_proj.weight",
            "mlp.shared_experts.down_proj.weight",
            "shared_mlp.output_linear.weight",
        ],
        outward,
    )
    .when(is_shared),
    TensorSpec::new(SHARED_GATE, &["mlp.shared_expert_gate.weight"], |p| vec![1, p.hidden()])
        .when(|p| p.feed_forward().shared().is_some_and(|shared| shared.gated)),
];

pub(super) const ALIASES: [Alias; 2] = [
    Alias {
        name: UP,
        hugging_face: &["mlp.gate_up_proj.weight", "shared_mlp.input_linear.weight"],
        exists: |p| p.config.family.fused && is_dense(p),
        storage: Storage::Rows(|p| vec![(GATE, p.width()), (UP, p.width())]),
    },
    // The stack has a name that no file uses, since Granite's GGUF files split it.
    Alias {
        name: "ffn_gate_up_shexp.weight",
        hugging_face: &["shared_mlp.input_linear.weight"],
        exists: |p| p.config.family.fused && is_shared(p),
        storage: Storage::Rows(|p| vec![(SHARED_GATE_MATRIX, p.width()), (SHARED_UP, p.width())]),
    },
];

fn is_dense(place: Place<'_>) -> bool {
    place.feed_forward().has_dense()
}

fn is_shared(place: Place<'_>) -> bool {
    place.feed_forward().shared().is_some()
}

/// Shape of the gate and up matrices.
fn inward(place: Place<'_>) -> Vec<usize> {
    vec![place.width(), place.hidden()]
}

/// Shape of the down matrix.
fn outward(place: Place<'_>) -> Vec<usize> {
    vec![place.hidden(), place.width()]
}
