//! Tensors of recurrent layers.

use super::super::config::{ModelConfig, Recurrence};
use super::super::family::RecurrentKind;
use super::super::tensors::Tensors;
use super::spec::{Alias, Place, Storage, TensorSpec};

/// Decay of each value head. Hugging Face files store x, GGUF files -e^x.
pub(crate) const DECAY: &str = "ssm_a";
/// Bias of the convolution, `[channels]`; optional.
pub(crate) const CONVOLUTION_BIAS: &str = "ssm_conv1d.bias";
/// Factor of each value head's input that is added to its output, `[heads]`.
const SKIP: &str = "ssm_d";
const NORM: &str = "ssm_norm.weight";
/// The first three matrices of [`MAMBA`].
const MAMBA_GATE: &str = "ssm_gate.weight";
const MAMBA_INPUTS: &str = "ssm_inputs.weight";
const MAMBA_STEPS: &str = "ssm_steps.weight";

pub(super) const SHORT_CONV: [TensorSpec; 3] = [
    TensorSpec::new("shortconv.in_proj.weight", &["conv.in_proj.weight"], |p| {
        vec![3 * channels(p), p.hidden()]
    })
    .when(is_recurrent),
    TensorSpec::new("shortconv.conv.weight", &["conv.conv.weight"], kernel).when(is_recurrent),
    TensorSpec::new("shortconv.out_proj.weight", &["conv.out_proj.weight"], |p| {
        vec![p.hidden(), channels(p)]
    })
    .when(is_recurrent),
];

pub(super) const DELTA: [TensorSpec; 9] = [
    TensorSpec::new("attn_qkv.weight", &["linear_attn.in_proj_qkv.weight"], |p| {
        vec![channels(p), p.hidden()]
    })
    .when(is_recurrent),
    TensorSpec::new("attn_gate.weight", &["linear_attn.in_proj_z.weight"], |p| {
        vec![value_width(p), p.hidden()]
    })
    .when(is_recurrent),
    TensorSpec::new("ssm_beta.weight", &["linear_attn.in_proj_b.weight"], rows_of_heads).when(is_recurrent),
    TensorSpec::new("ssm_alpha.weight", &["linear_attn.in_proj_a.weight"], rows_of_heads).when(is_recurrent),
    TensorSpec::new("ssm_conv1d.weight", &["linear_attn.conv1d.weight"], kernel).when(is_recurrent),
    TensorSpec::new("ssm_dt.bias", &["linear_attn.dt_bias"], of_heads).when(is_recurrent),
    TensorSpec::new(DECAY, &["linear_attn.A_log"], of_heads).when(is_recurrent),
    TensorSpec::new(NORM, &["linear_attn.norm.weight"], |p| vec![heads(p, |of| of.heads.value_size)])
        .when(is_recurrent),
    TensorSpec::new("ssm_out.weight", &["linear_attn.out_proj.weight"], |p| vec![p.hidden(), value_width(p)])
        .when(is_recurrent),
];

pub(super) const MAMBA: [TensorSpec; 10] = [
    TensorSpec::new(MAMBA_GATE, &[], |p| vec![value_width(p), p.hidden()]).when(is_recurrent),
    TensorSpec::new(MAMBA_INPUTS, &[], |p| vec![channels(p), p.hidden()]).when(is_recurrent),
    TensorSpec::new(MAMBA_STEPS, &[], rows_of_heads).when(is_recurrent),
    TensorSpec::new("ssm_conv1d.weight", &["mamba.conv1d.weight"], kernel).when(is_recurrent),
    TensorSpec::new(CONVOLUTION_BIAS, &["mamba.conv1d.bias"], |p| vec![channels(p)])
        .when(|p| p.recurrence().is_some_and(|of| of.biased)),
    TensorSpec::new("ssm_dt.bias", &["mamba.dt_bias"], of_heads).when(is_recurrent),
    TensorSpec::new(DECAY, &["mamba.A_log"], of_heads).when(is_recurrent),
    TensorSpec::new(SKIP, &["mamba.D"], of_heads).when(is_recurrent),
    TensorSpec::new(NORM, &["mamba.norm.weight"], |p| vec![value_width(p)]).when(is_recurrent),
    TensorSpec::new("ssm_out.weight", &["mamba.out_proj.weight"], |p| vec![p.hidden(), value_width(p)])
        .when(is_recurrent),
];

pub(super) const ALIASES: [Alias; 1] = [Alias {
    name: "ssm_in.weight",
    hugging_face: &["mamba.in_proj.weight"],
    exists: is_recurrent,
    storage: Storage::Rows(|p| {
        vec![
            (MAMBA_GATE, value_width(p)),
            (MAMBA_INPUTS, channels(p)),
            (MAMBA_STEPS, heads(p, |of| of.heads.values)),
        ]
    }),
}];

pub(super) fn is_short_conv(config: &ModelConfig) -> bool {
    is_of(config, RecurrentKind::ShortConv)
}

pub(super) fn is_delta(config: &ModelConfig) -> bool {
    is_of(config, RecurrentKind::Delta)
}

pub(super) fn is_mamba(config: &ModelConfig) -> bool {
    is_of(config, RecurrentKind::Mamba)
}

fn is_of(config: &ModelConfig, kind: RecurrentKind) -> bool {
    config.recurrence().is_some_and(|of| of.kind == kind)
}

fn is_recurrent(place: Place<'_>) -> bool {
    place.recurrence().is_some()
}

fn heads(place: Place<'_>, size: fn(&Recurrence) -> usize) -> usize {
    place.recurrence().map_or(0, size)
}

fn channels(place: Place<'_>) -> usize {
    heads(place, |of| of.channels)
}

fn value_width(place: Place<'_>) -> usize {
    heads(place, |of| of.heads.value_width())
}

fn kernel(place: Place<'_>) -> Vec<usize> {
    vec![channels(place), heads(place, |of| of.taps)]
}

fn of_heads(place: Place<'_>) -> Vec<usize> {
    vec![heads(place, |of| of.heads.values)]
}

fn rows_of_heads(place: Place<'_>) -> Vec<usize> {
    vec![heads(place, |of| of.heads.values), place.hidden()]
}

/// Flattens vectors of Mamba layers that GGUF files store as rows of one number or of groups.
pub(super) fn flatten(tensors: &mut Tensors, config: &ModelConfig) {
    if !is_mamba(config) {
        return;
    }
    for (layer, _) in config.layers.iter().enumerate().filter(|(_, spec)| spec.mixer.recurrence().is_some()) {
        for name in [DECAY, SKIP, NORM] {
            if let Some(stored) = tensors.stored.get_mut(&format!("blk.{layer}.{name}")) {
                stored.shape = vec![stored.shape.iter().product()];
            }
        }
    }
}

/// Returns the shape of a convolution kernel that a Hugging Face file stores as `[channels, 1,
/// taps]`.
pub(crate) fn unfolded(name: &str, shape: &[usize]) -> Option<Vec<usize>> {
    let [channels, 1, taps] = *shape else { return None };
    let is_kernel = ["conv.weight", "conv1d.weight"].iter().any(|end| name.ends_with(end));
    is_kernel.then(|| vec![channels, taps])
}
