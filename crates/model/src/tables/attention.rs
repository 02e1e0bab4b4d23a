//! Tensors of grouped-query attention.

use super::super::config::HeadNorms;
use super::spec::{Alias, Place, Storage, TensorSpec};

pub(super) const QUERIES: &str = "attn_q.weight";
pub(super) const KEYS: &str = "attn_k.weight";
pub(super) const VALUES: &str = "attn_v.weight";
/// Gate of the output. Some files store it in the query matrix.
pub(super) const GATE: &str = "attn_gate.weight";
pub(super) const KEY_NORM: &str = "attn_k_norm.weight";

pub(super) const TENSORS: [TensorSpec; 12] = [
    TensorSpec::new(QUERIES, &["self_attn.q_proj.weight"], |p| vec![queries(p), p.config.mixed()])
        .when(|p| p.attends()),
    TensorSpec::new(KEYS, &["self_attn.k_proj.weight"], |p| vec![keys(p), p.config.mixed()])
        .when(computes_kv),
    TensorSpec::new(VALUES, &["self_attn.v_proj.weight"], |p| vec![keys(p), p.config.mixed()])
        .when(|p| computes_kv(p) && !p.key_heads().are_values),
    TensorSpec::new("attn_q.bias", &["self_attn.q_proj.bias"], |p| vec![queries(p)])
        .when(|p| p.attention_parts().biases),
    TensorSpec::new("attn_k.bias", &["self_attn.k_proj.bias"], |p| vec![keys(p)])
        .when(|p| p.attention_parts().biases && computes_kv(p)),
    TensorSpec::new("attn_v.bias", &["self_attn.v_proj.bias"], |p| vec![keys(p)])
        .when(|p| p.attention_parts().biases && computes_kv(p)),
    TensorSpec::new(
        "attn_q_norm.weight",
        &["self_attn.q_norm.weight", "self_attn.q_layernorm.weight"],
        |p| vec![if normed_together(p) { queries(p) } else { p.key_heads().size }],
    )
    .when(norms_heads)
    .optional(has_fixed_norms),
    TensorSpec::new(KEY_NORM, &["self_attn.k_norm.weight", "self_attn.k_layernorm.weight"], |p| {
        vec![if normed_together(p) { keys(p) } else { p.key_heads().size }]
    })
    .when(|p| norms_heads(p) && computes_kv(p))
    .optional(has_fixed_norms),
    TensorSpec::new(GATE, &["self_attn.gate_proj.weight"], |p| vec![queries(p), p.config.mixed()])
        .when(|p| p.attention_parts().gate),
    TensorSpec::new("attn_sinks.weight", &["self_attn.sinks"], |p| vec![p.config.heads])
        .when(|p| p.attention_parts().sinks),
    TensorSpec::new("attn_output.weight", &["self_attn.o_proj.weight", "self_attn.out_proj.weight"], |p| {
        vec![p.hidden(), queries(p)]
    })
    .when(|p| p.attends()),
    TensorSpec::new("attn_output.bias", &["self_attn.o_proj.bias"], |p| vec![p.hidden()])
        .when(|p| p.attention_parts().output_bias),
];

pub(super) const ALIASES: [Alias; 1] = [Alias {
    name: "attn_qkv.weight",
    hugging_face: &["self_attn.qkv_proj.weight"],
    exists: |p| p.config.family.fused && p.attends(),
    storage: Storage::Rows(|p| vec![(QUERIES, queries(p)), (KEYS, keys(p)), (VALUES, keys(p))]),
}];

/// Total width of the query heads.
pub(super) fn queries(place: Place<'_>) -> usize {
    place.config.heads * place.key_heads().size
}

/// Total width of the key heads, and of the value heads.
fn keys(place: Place<'_>) -> usize {
    place.key_heads().count * place.key_heads().size
}

/// Returns whether the layer has grouped-query attention with keys and values of its own.
fn computes_kv(place: Place<'_>) -> bool {
    place.attends() && place.config.computes_kv(place.layer)
}

fn norms_heads(place: Place<'_>) -> bool {
    place.attention_parts().head_norms != HeadNorms::None
}

fn normed_together(place: Place<'_>) -> bool {
    place.attention_parts().head_norms == HeadNorms::Together
}

fn has_fixed_norms(place: Place<'_>) -> bool {
    place.attention_parts().head_norms == HeadNorms::Fixed
}
