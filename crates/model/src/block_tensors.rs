//! Optional tensors of block heads: DFlash 2's convolutions and selector, DSpark's Markov bias and
//! confidence predictor.

use super::config::{Confidence, Convolution, DraftHead, HeadKind, ModelConfig, Selector};
use super::tensors::Tensors;
use crate::error::{Error, Result};

/// Embedding of the previous token for the Markov bias, `[tokens, rank]`.
pub const MARKOV_BEFORE: &str = "markov_w1.weight";
/// Output matrix of the Markov bias, `[vocabulary, rank]`.
pub const MARKOV_AFTER: &str = "markov_w2.weight";
/// Weight of the confidence predictor, `[1, inputs]`.
pub const CONFIDENCE: &str = "conf_proj.weight";
/// Bias of the confidence predictor, `[1]`.
pub const CONFIDENCE_BIAS: &str = "conf_proj.bias";
/// Selector codebook for the previous token, `[tokens, rank]`.
pub const SELECTOR_BEFORE: &str = "selector_predecessor.weight";
/// Selector codebook for the candidate, `[vocabulary, rank]`.
pub const SELECTOR_AFTER: &str = "selector_successor.weight";
/// Selector projection of the hidden state, `[rank, hidden]`.
pub const SELECTOR_POSITION: &str = "selector_hidden.weight";

/// Canonical names outside layers, and Hugging Face names without `.weight`.
const BLOCK_OUTER: [(&str, &str); 7] = [
    (MARKOV_BEFORE, "markov_head.markov_w1"),
    (MARKOV_AFTER, "markov_head.markov_w2"),
    (CONFIDENCE, "confidence_head.proj"),
    (CONFIDENCE_BIAS, "confidence_head.proj.bias"),
    (SELECTOR_BEFORE, "candidate_selector.predecessor_codebook"),
    (SELECTOR_AFTER, "candidate_selector.successor_codebook"),
    (SELECTOR_POSITION, "candidate_selector.hidden_projection"),
];

/// Canonical names and Hugging Face names within a layer.
const BLOCK_LAYER: [(&str, &str); 4] = [
    ("attn_conv_base", "attention_conv.base_kernel"),
    ("attn_conv_proj.weight", "attention_conv.kernel_projection.weight"),
    ("ffn_conv_base", "mlp_conv.base_kernel"),
    ("ffn_conv_proj.weight", "mlp_conv.kernel_projection.weight"),
];

/// Returns the canonical name for a Hugging Face name outside layers.
pub(super) fn outer(hugging_face: &str) -> Option<&'static str> {
    let name = hugging_face.strip_suffix(".weight").unwrap_or(hugging_face);
    BLOCK_OUTER.iter().find(|(_, other)| *other == name).map(|(canonical, _)| *canonical)
}

/// Returns the canonical name for a Hugging Face name within a layer.
pub(super) fn of_layer(hugging_face: &str) -> Option<&'static str> {
    BLOCK_LAYER.iter().find(|(_, other)| *other == hugging_face).map(|(canonical, _)| *canonical)
}

/// Names and shapes of a block head's optional tensors; none for other models.
pub(super) fn expected(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let Some(block) = config.block() else { return Vec::new() };
    let (tokens, hidden, vocabulary) = (config.tokens(), config.hidden, config.vocabulary);
    let mut tensors = Vec::new();
    let mut add = |name: &str, shape: &[usize]| tensors.push((name.to_owned(), shape.to_vec()));
    if let Some(rank) = block.markov {
        add(MARKOV_BEFORE, &[tokens, rank]);
        add(MARKOV_AFTER, &[vocabulary, rank]);
    }
    if let Some(confidence) = block.confidence {
        add(CONFIDENCE, &[1, confidence.inputs]);
        if confidence.bias {
            add(CONFIDENCE_BIAS, &[1]);
        }
    }
    if let Some(Selector { rank, .. }) = block.selector {
        add(SELECTOR_BEFORE, &[tokens, rank]);
        add(SELECTOR_AFTER, &[vocabulary, rank]);
        add(SELECTOR_POSITION, &[rank, hidden]);
    }
    if let Some(Convolution { taps, group }) = block.convolution {
        for (layer, part) in (0..config.depth()).flat_map(|layer| ["attn", "ffn"].map(|part| (layer, part))) {
            add(&format!("blk.{layer}.{part}_conv_base"), &[2, taps, hidden]);
            add(&format!("blk.{layer}.{part}_conv_proj.weight"), &[2 * taps * (hidden / group), hidden]);
        }
    }
    tensors
}

/// Completes the configuration of a block head from the shapes of its tensors.
///
/// # Errors
/// `Error::BadModel` for tensors that contradict each other or the configuration.
pub(super) fn complete(config: &mut ModelConfig, tensors: &Tensors) -> Result<()> {
    let hidden = config.hidden;
    let Some(DraftHead { kind: HeadKind::Block(block), .. }) = &mut config.draft_head else { return Ok(()) };
    let width = |name: &str| tensors.stored.get(name).and_then(|stored| stored.shape.get(1)).copied();
    block.markov = width(MARKOV_BEFORE).or(block.markov);
    let bias = tensors.stored.contains_key(CONFIDENCE_BIAS);
    block.confidence = width(CONFIDENCE).map(|inputs| Confidence { inputs, bias });
    let bad = |expected: String, found: String| Error::BadModel {
        path: tensors.path.clone(),
        expected,
        found,
        hint: "Choose another file of this draft head.",
    };
    let state = hidden + block.markov.unwrap_or(0);
    if let Some(Confidence { inputs, .. }) =
        block.confidence.filter(|head| ![hidden, state].contains(&head.inputs))
    {
        return Err(bad(format!("{hidden} or {state} columns in {CONFIDENCE}"), inputs.to_string()));
    }
    if let Some(Convolution { group, .. }) =
        block.convolution.filter(|around| !hidden.is_multiple_of(around.group))
    {
        return Err(bad(format!("a conv_group_size that divides {hidden}"), group.to_string()));
    }
    if block.selector.is_some() && (tensors.token_table.is_some() || block.markov.is_some()) {
        let expected = "a selector of all tokens, and no Markov head beside it".to_owned();
        return Err(bad(expected, "some tokens, or both".to_owned()));
    }
    Ok(())
}
