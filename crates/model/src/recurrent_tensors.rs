//! Names and shapes of the tensors of recurrent layers.

use super::config::{ModelConfig, Recurrence};
use super::family::RecurrentKind;
use super::tensors::Tensors;
use crate::error::Result;

/// A tensor of a recurrent layer; names follow `blk.{i}.` and `model.layers.{i}.`.
struct Part {
    name: &'static str,
    hugging_face: &'static str,
    shape: fn(&ModelConfig, &Recurrence) -> Vec<usize>,
}

/// Decay of each value head. Hugging Face files store x, GGUF files -e^x.
pub(super) const DECAY: &str = "ssm_a";

const SHORT_CONV: [Part; 3] = [
    Part {
        name: "shortconv.in_proj.weight",
        hugging_face: "conv.in_proj.weight",
        shape: |config, of| vec![3 * of.channels, config.hidden],
    },
    Part { name: "shortconv.conv.weight", hugging_face: "conv.conv.weight", shape: kernel },
    Part {
        name: "shortconv.out_proj.weight",
        hugging_face: "conv.out_proj.weight",
        shape: |config, of| vec![config.hidden, of.channels],
    },
];

const DELTA: [Part; 9] = [
    Part {
        name: "attn_qkv.weight",
        hugging_face: "linear_attn.in_proj_qkv.weight",
        shape: |config, of| vec![of.channels, config.hidden],
    },
    Part {
        name: "attn_gate.weight",
        hugging_face: "linear_attn.in_proj_z.weight",
        shape: |config, of| vec![of.heads.value_width(), config.hidden],
    },
    Part { name: "ssm_beta.weight", hugging_face: "linear_attn.in_proj_b.weight", shape: of_heads },
    Part { name: "ssm_alpha.weight", hugging_face: "linear_attn.in_proj_a.weight", shape: of_heads },
    Part { name: "ssm_conv1d.weight", hugging_face: "linear_attn.conv1d.weight", shape: kernel },
    Part { name: "ssm_dt.bias", hugging_face: "linear_attn.dt_bias", shape: of_each },
    Part { name: DECAY, hugging_face: "linear_attn.A_log", shape: of_each },
    Part {
        name: "ssm_norm.weight",
        hugging_face: "linear_attn.norm.weight",
        shape: |_, of| vec![of.heads.value_size],
    },
    Part {
        name: "ssm_out.weight",
        hugging_face: "linear_attn.out_proj.weight",
        shape: |config, of| vec![config.hidden, of.heads.value_width()],
    },
];

/// Bias of the convolution, `[channels]`; optional.
pub(super) const CONVOLUTION_BIAS: &str = "ssm_conv1d.bias";

/// Matrix in files that contains the first three of [`MAMBA`], one above the other.
const INPUTS: &str = "ssm_in.weight";
const INPUTS_OF_HUGGING_FACE: &str = "mamba.in_proj.weight";

const MAMBA: [Part; 10] = [
    Part {
        name: "ssm_gate.weight",
        hugging_face: "",
        shape: |config, of| vec![of.heads.value_width(), config.hidden],
    },
    Part {
        name: "ssm_inputs.weight",
        hugging_face: "",
        shape: |config, of| vec![of.channels, config.hidden],
    },
    Part { name: "ssm_steps.weight", hugging_face: "", shape: of_heads },
    Part { name: "ssm_conv1d.weight", hugging_face: "mamba.conv1d.weight", shape: kernel },
    Part { name: CONVOLUTION_BIAS, hugging_face: "mamba.conv1d.bias", shape: |_, of| vec![of.channels] },
    Part { name: "ssm_dt.bias", hugging_face: "mamba.dt_bias", shape: of_each },
    Part { name: DECAY, hugging_face: "mamba.A_log", shape: of_each },
    Part { name: "ssm_d", hugging_face: "mamba.D", shape: of_each },
    Part {
        name: "ssm_norm.weight",
        hugging_face: "mamba.norm.weight",
        shape: |_, of| vec![of.heads.value_width()],
    },
    Part {
        name: "ssm_out.weight",
        hugging_face: "mamba.out_proj.weight",
        shape: |config, of| vec![config.hidden, of.heads.value_width()],
    },
];

fn of_each(_: &ModelConfig, of: &Recurrence) -> Vec<usize> {
    vec![of.heads.values]
}

fn kernel(_: &ModelConfig, of: &Recurrence) -> Vec<usize> {
    vec![of.channels, of.taps]
}

fn of_heads(config: &ModelConfig, of: &Recurrence) -> Vec<usize> {
    vec![of.heads.values, config.hidden]
}

fn parts(kind: RecurrentKind) -> &'static [Part] {
    match kind {
        RecurrentKind::ShortConv => &SHORT_CONV,
        RecurrentKind::Delta => &DELTA,
        RecurrentKind::Mamba => &MAMBA,
    }
}

/// Returns the canonical name for a Hugging Face name in a recurrent layer.
pub(super) fn canonical(hugging_face: &str, kind: RecurrentKind) -> Option<&'static str> {
    if kind == RecurrentKind::Mamba && hugging_face == INPUTS_OF_HUGGING_FACE {
        return Some(INPUTS);
    }
    parts(kind)
        .iter()
        .find(|part| part.hugging_face == hugging_face && !part.hugging_face.is_empty())
        .map(|part| part.name)
}

/// Names and shapes of the tensors of a recurrent layer; none for other mixers.
pub(super) fn expected(
    config: &ModelConfig,
    layer: usize,
) -> impl Iterator<Item = (&'static str, Vec<usize>)> {
    config.layers[layer].mixer.recurrence().into_iter().flat_map(move |of| {
        let is_there = |part: &&Part| part.name != CONVOLUTION_BIAS || of.biased;
        parts(of.kind).iter().filter(is_there).map(|part| (part.name, (part.shape)(config, of)))
    })
}

/// Splits the input matrix of Mamba layers into its parts, and flattens vectors that GGUF files
/// store as rows of one number or of groups.
///
/// # Errors
/// `Error::BadModel` for an input matrix with an unexpected number of rows.
pub(super) fn split(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    for (layer, spec) in config.layers.iter().enumerate() {
        let is_mamba = |of: &&Recurrence| of.kind == RecurrentKind::Mamba;
        let Some(of) = spec.mixer.recurrence().filter(is_mamba) else { continue };
        let full = |name: &str| format!("blk.{layer}.{name}");
        let parts = MAMBA.iter().take(3).map(|part| (full(part.name), (part.shape)(config, of)[0]));
        tensors.split_rows(&full(INPUTS), &parts.collect::<Vec<_>>(), config.hidden)?;
        for name in [DECAY, "ssm_d", "ssm_norm.weight"] {
            if let Some(stored) = tensors.stored.get_mut(&full(name)) {
                stored.shape = vec![stored.shape.iter().product()];
            }
        }
    }
    Ok(())
}

/// Returns the shape of a convolution kernel that a Hugging Face file stores as `[channels, 1,
/// taps]`.
pub(super) fn unfolded(name: &str, shape: &[usize]) -> Option<Vec<usize>> {
    let [channels, 1, taps] = *shape else { return None };
    let is_kernel = ["conv.weight", "conv1d.weight"].iter().any(|end| name.ends_with(end));
    is_kernel.then(|| vec![channels, taps])
}
