//! Norms and per-layer inputs of layers.

use super::spec::TensorSpec;

/// Norm of the mixer's output, `[hidden]`. In files of families without post norms it is the norm
/// of the feed-forward network's input.
pub(super) const MIXER_POST_NORM: &str = "post_attention_norm.weight";
/// Norm of the feed-forward network's input, `[hidden]`.
pub(super) const FEED_FORWARD_NORM: &str = "ffn_norm.weight";

pub(super) const TENSORS: [TensorSpec; 9] = [
    TensorSpec::new("attn_norm.weight", &["input_layernorm.weight", "operator_norm.weight"], |p| {
        vec![p.hidden()]
    })
    .when(|p| p.spec().norms.pre),
    // With post norms, Hugging Face's name for the norm after attention is literal.
    TensorSpec::new(MIXER_POST_NORM, &["post_attention_layernorm.weight"], |p| vec![p.hidden()])
        .when(|p| p.spec().norms.post),
    TensorSpec::new(FEED_FORWARD_NORM, &["post_attention_layernorm.weight", "ffn_norm.weight"], |p| {
        vec![p.hidden()]
    })
    .when(|p| p.spec().norms.pre && !p.spec().norms.post),
    TensorSpec::new(FEED_FORWARD_NORM, &["pre_feedforward_layernorm.weight"], |p| vec![p.hidden()])
        .when(|p| p.spec().norms.pre && p.spec().norms.post),
    TensorSpec::new("post_ffw_norm.weight", &["post_feedforward_layernorm.weight"], |p| vec![p.hidden()])
        .when(|p| p.spec().norms.post),
    TensorSpec::new("inp_gate.weight", &["per_layer_input_gate.weight"], |p| {
        vec![p.spec().per_layer_input.unwrap_or_default(), p.hidden()]
    })
    .when(|p| p.spec().per_layer_input.is_some()),
    TensorSpec::new("proj.weight", &["per_layer_projection.weight"], |p| {
        vec![p.hidden(), p.spec().per_layer_input.unwrap_or_default()]
    })
    .when(|p| p.spec().per_layer_input.is_some()),
    TensorSpec::new("post_norm.weight", &["post_per_layer_input_norm.weight"], |p| vec![p.hidden()])
        .when(|p| p.spec().per_layer_input.is_some()),
    TensorSpec::new("layer_output_scale.weight", &["layer_scalar"], |_| vec![1])
        .when(|p| p.spec().output_scale),
];
