//! Tensors of experts and their router. Each expert's matrices get canonical names of their own;
//! files store those of all experts stacked.

use super::super::config::{Experts, FeedForwardSpec, ModelConfig};
use super::super::family::Family;
use super::super::gathered::{BLOCK, Gathered, Lie, NIBBLES};
use super::super::tensors::{Meaning, Raw, Stored, Tensors};
use super::spec::{Expected, Place, TensorSpec, number};
use crate::error::Result;
use crate::format::Format;

/// Bias added to each expert's score for selection only, `[experts]`.
pub const SELECTION_BIAS: &str = "exp_probs_b.bias";

/// The router, and the norms of experts beside a dense network.
pub(super) const ROUTER: [TensorSpec; 8] = [
    TensorSpec::new(
        "ffn_gate_inp.weight",
        &[
            "mlp.gate.weight",
            "mlp.router.weight",
            "router.proj.weight",
            "feed_forward.gate.weight",
            "block_sparse_moe.router.layer.weight",
            "block_sparse_moe.router.weight",
        ],
        |p| vec![count(p), p.hidden()],
    )
    .when(|p| p.experts().is_some()),
    TensorSpec::new("ffn_gate_inp.bias", &["mlp.gate.bias", "mlp.router.bias"], |p| vec![count(p)])
        .when(|p| p.experts().is_some_and(|experts| experts.biases)),
    TensorSpec::new(
        SELECTION_BIAS,
        &["mlp.expert_bias", "feed_forward.expert_bias", "mlp.gate.e_score_correction_bias"],
        |p| vec![count(p)],
    )
    .when(|p| p.experts().is_some_and(Experts::has_selection_bias)),
    TensorSpec::new("ffn_gate_inp.scale", &["router.scale"], |p| vec![p.hidden()]).when(is_beside_dense),
    TensorSpec::new("ffn_down_exps.scale", &["router.per_expert_scale"], |p| vec![count(p)])
        .when(is_beside_dense),
    TensorSpec::new("post_ffw_norm_1.weight", &["post_feedforward_layernorm_1.weight"], |p| vec![p.hidden()])
        .when(is_beside_dense),
    TensorSpec::new("pre_ffw_norm_2.weight", &["pre_feedforward_layernorm_2.weight"], |p| vec![p.hidden()])
        .when(is_beside_dense),
    TensorSpec::new("post_ffw_norm_2.weight", &["post_feedforward_layernorm_2.weight"], |p| vec![p.hidden()])
        .when(is_beside_dense),
];

fn count(place: Place<'_>) -> usize {
    place.experts().map_or(0, |experts| experts.count)
}

fn is_beside_dense(place: Place<'_>) -> bool {
    matches!(place.feed_forward(), FeedForwardSpec::BesideDense { .. })
}

/// A matrix of an expert, with canonical name `{name}.{expert}.weight` and bias
/// `{name}.{expert}.bias`. GGUF files stack all experts in one tensor, `{name}_exps.weight`, with
/// the expert as the outermost dimension.
#[derive(Clone, Copy)]
struct Part {
    name: &'static str,
    /// Hugging Face names; LFM2 uses the second.
    hugging_face: [&'static str; 2],
    /// True for matrices from the hidden size to the expert's width, false for the other direction.
    enters: bool,
}

const GATE: Part = Part { name: "ffn_gate", hugging_face: ["gate_proj", "w1"], enters: true };
const UP: Part = Part { name: "ffn_up", hugging_face: ["up_proj", "w3"], enters: true };
const DOWN: Part = Part { name: "ffn_down", hugging_face: ["down_proj", "w2"], enters: false };
const PARTS: [Part; 3] = [GATE, UP, DOWN];

/// Stacks over all experts: Hugging Face name, canonical name, and the matrices they contain.
const STACKS: [(&str, &str, &[Part]); 2] =
    [("gate_up_proj", "ffn_gate_up_exps", &[GATE, UP]), ("down_proj", "ffn_down_exps", &[DOWN])];

/// Endings of a stack's name: Hugging Face's, and the canonical one, which says how the stack is
/// stored.
const ENDINGS: [(&str, &str); 4] =
    [("", "weight"), ("_bias", "bias"), ("_blocks", BLOCKS), ("_scales", EXPONENTS)];
const BLOCKS: &str = "blocks";
const EXPONENTS: &str = "exponents";
/// Endings for families whose Hugging Face files interleave gate and up.
const COLUMNS: &str = "columns";
const INTERLEAVED_BIAS: &str = "bias_interleaved";

/// Returns whether `name` is the canonical name of an expert's matrix.
pub(crate) fn is_of_expert(name: &str) -> bool {
    let part = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')).map(|(_, part)| part);
    let of = |expert: &Part| {
        let rest = part?.strip_prefix(expert.name)?.strip_prefix('.')?;
        Some(!["weight", "bias"].contains(&rest))
    };
    PARTS.iter().any(|expert| of(expert) == Some(true))
}

/// Returns the usual Hugging Face name, after `experts.`, of a stack that Granite's files name
/// otherwise.
pub(super) fn stack(hugging_face: &str) -> Option<&'static str> {
    match hugging_face {
        "block_sparse_moe.input_linear.weight" => Some("gate_up_proj"),
        "block_sparse_moe.output_linear.weight" => Some("down_proj"),
        _ => None,
    }
}

/// Returns the canonical name for `rest`, the part of a layer's Hugging Face name after `experts.`.
pub(super) fn canonical(rest: &str, family: &Family) -> Option<String> {
    let options = family.experts?;
    if let Some((expert, rest)) = rest.split_once('.') {
        let (expert, rest) = (number(expert)?, rest.strip_suffix(".weight")?);
        let part = PARTS.iter().find(|part| part.hugging_face.contains(&rest))?;
        return Some(format!("{}.{expert}.weight", part.name));
    }
    let (ending, name) =
        STACKS.iter().find_map(|(stack, name, _)| Some((rest.strip_prefix(stack)?, *name)))?;
    let (_, ending) = ENDINGS.iter().find(|(other, _)| *other == ending)?;
    let ending = match *ending {
        "weight" if options.interleaved => COLUMNS,
        "bias" if options.interleaved && name != DOWN_STACK => INTERLEAVED_BIAS,
        ending => ending,
    };
    Some(format!("{name}.{ending}"))
}

const DOWN_STACK: &str = STACKS[1].1;

/// Returns whether the tensor with this canonical name is a part of MXFP4: blocks or exponents.
pub(crate) fn is_raw(canonical: &str) -> bool {
    canonical.rsplit_once('.').is_some_and(|(_, ending)| [BLOCKS, EXPONENTS].contains(&ending))
}

/// Names and shapes of the tensors of all experts of a layer.
pub(super) fn expected(place: Place<'_>) -> impl Iterator<Item = Expected> + use<'_> {
    let Place { config, layer } = place;
    place.experts().into_iter().flat_map(move |experts| {
        let endings: &[&str] = if experts.biases { &["weight", "bias"] } else { &["weight"] };
        (0..experts.count).flat_map(move |expert| {
            PARTS.into_iter().flat_map(move |part| {
                endings.iter().map(move |ending| {
                    Expected::required(
                        name(layer, part, expert, ending),
                        part.shape(ending, experts, config.hidden),
                    )
                })
            })
        })
    })
}

fn name(layer: usize, part: Part, expert: usize, ending: &str) -> String {
    format!("blk.{layer}.{}.{expert}.{ending}", part.name)
}

impl Part {
    fn shape(self, ending: &str, experts: &Experts, hidden: usize) -> Vec<usize> {
        let (outputs, inputs) = if self.enters { (experts.width, hidden) } else { (hidden, experts.width) };
        if ending == "bias" { vec![outputs] } else { vec![outputs, inputs] }
    }
}

/// Locates each expert's tensors in the stacks that contain them.
///
/// # Errors
/// `Error::BadModel` for a stack of an unexpected shape.
pub(super) fn split(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    for (layer, spec) in config.layers.iter().enumerate() {
        let Some(experts) = spec.feed_forward.experts() else { continue };
        for part in PARTS {
            for ending in ["weight", "bias"] {
                let stack = format!("{}_exps.{ending}", part.name);
                split_stack(tensors, config, experts, layer, &stack, ending, &[part])?;
            }
        }
        for (_, stack, parts) in STACKS {
            for ending in ["weight", "bias", COLUMNS, INTERLEAVED_BIAS] {
                let stack = format!("{stack}.{ending}");
                split_stack(tensors, config, experts, layer, &stack, ending, parts)?;
            }
            split_blocks(tensors, config, experts, layer, stack, parts)?;
        }
    }
    match tensors.raw.keys().next() {
        Some(name) => Err(tensors.missing(&format!("that {name} belongs to"))),
        None => Ok(()),
    }
}

/// Splits a stack whose parts follow each other in each expert, or alternate in an expert's rows or
/// columns.
fn split_stack(
    tensors: &mut Tensors,
    config: &ModelConfig,
    experts: &Experts,
    layer: usize,
    stack: &str,
    ending: &str,
    parts: &[Part],
) -> Result<()> {
    let full = format!("blk.{layer}.{stack}");
    let Some(found) = tensors.stored.remove(&full) else { return Ok(()) };
    let own = if [COLUMNS, "weight"].contains(&ending) { "weight" } else { "bias" };
    let shape = parts[0].shape(own, experts, config.hidden);
    let mut whole = [&[experts.count, parts.len() * shape[0]], &shape[1..]].concat();
    if ending == COLUMNS {
        whole.swap(1, 2);
    }
    if found.shape != whole {
        return Err(tensors.misshapen(&full, &whole, &found.shape));
    }
    let bytes = found.bytes.len() / experts.count;
    for expert in 0..experts.count {
        let start = found.bytes.start + expert * bytes;
        for (index, &part) in parts.iter().enumerate() {
            let (bytes, lie) = match ending {
                COLUMNS => (start..start + bytes, Some(Lie::Columns)),
                INTERLEAVED_BIAS => (start..start + bytes, Some(Lie::Rows)),
                _ => {
                    let one = bytes / parts.len();
                    (start + index * one..start + (index + 1) * one, None)
                }
            };
            let gathered = lie.map(|lie| Gathered { first: index, run: 1, step: parts.len(), lie });
            let factor = found.factor.map(|factor| factor.of(expert));
            let stored = Stored { shape: shape.clone(), bytes, gathered, factor, ..found.clone() };
            tensors.stored.insert(name(layer, part, expert, own), stored);
        }
    }
    Ok(())
}

/// Splits a stack of MXFP4 blocks, whose rows alternate between its parts.
fn split_blocks(
    tensors: &mut Tensors,
    config: &ModelConfig,
    experts: &Experts,
    layer: usize,
    stack: &str,
    parts: &[Part],
) -> Result<()> {
    let full = |ending| format!("blk.{layer}.{stack}.{ending}");
    let Some(blocks) = tensors.raw.remove(&full(BLOCKS)) else { return Ok(()) };
    let exponents = tensors.raw.remove(&full(EXPONENTS)).ok_or_else(|| tensors.missing(&full(EXPONENTS)))?;
    let shape = parts[0].shape("weight", experts, config.hidden);
    let (rows, columns) = (parts.len() * shape[0], shape[1].div_ceil(BLOCK));
    let whole = [experts.count, rows, columns, NIBBLES];
    for (raw, ending, expected) in [(&blocks, BLOCKS, &whole[..]), (&exponents, EXPONENTS, &whole[..3])] {
        if raw.shape != expected || !shape[1].is_multiple_of(BLOCK) {
            return Err(tensors.misshapen(&full(ending), expected, &raw.shape));
        }
    }
    let of = |raw: &Raw, expert: usize| {
        let bytes = raw.bytes.len() / experts.count;
        raw.bytes.start + expert * bytes..raw.bytes.start + (expert + 1) * bytes
    };
    for expert in 0..experts.count {
        for (first, &part) in parts.iter().enumerate() {
            let lie = Lie::Blocks { file: exponents.file, exponents: of(&exponents, expert) };
            let stored = Stored {
                format: Format::Mxfp4,
                shape: shape.clone(),
                file: blocks.file,
                bytes: of(&blocks, expert),
                meaning: Meaning::Themselves,
                gathered: Some(Gathered { first, run: 1, step: parts.len(), lie }),
                factor: None,
            };
            tensors.stored.insert(name(layer, part, expert, "weight"), stored);
        }
    }
    Ok(())
}
