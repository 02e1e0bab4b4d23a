//! Tensors of block heads beside those of their layers: DFlash 2's convolutions and selector,
//! DSpark's Markov bias and confidence predictor, Domino's correction.

use super::super::config::{
    BlockHead, Confidence, Convolution, Correction, Domino, DraftHead, HeadKind, ModelConfig,
};
use super::super::tensors::Tensors;
use super::eagle3::FUSED_NORM;
use super::spec::{Place, TensorSpec};
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
/// Input matrix of Domino's GRU, `[3 * gru, hidden]`: gates r, z, n. No GGUF file has Domino's
/// tensors, so their names are those of its authors.
pub const GRU_INPUT: &str = "prefix_gru.weight_ih_l0";
/// State matrix of Domino's GRU, `[3 * gru, gru]`, with gates as [`GRU_INPUT`].
pub const GRU_STATE: &str = "prefix_gru.weight_hh_l0";
/// First matrix of Domino's bias, `[rank, hidden + gru]`.
pub const DOMINO_BEFORE: &str = "embed_proj.0.weight";
/// Output matrix of Domino's bias, `[vocabulary, rank]`.
pub const DOMINO_AFTER: &str = "embed_proj.2.weight";

/// Files have some of the optional tensors; those that `config.json` or the header mentions, and
/// those of which a file has a part, are required.
pub(super) const OUTER: [TensorSpec; 12] = [
    TensorSpec::new(FUSED_NORM, &["hidden_norm.weight"], |p| vec![p.hidden()]),
    TensorSpec::new(MARKOV_BEFORE, &["markov_head.markov_w1", "markov_head.markov_w1.weight"], |p| {
        vec![p.config.tokens(), markov(p).unwrap_or(0)]
    })
    .optional(|p| markov(p).is_none()),
    TensorSpec::new(MARKOV_AFTER, &["markov_head.markov_w2", "markov_head.markov_w2.weight"], |p| {
        vec![p.config.vocabulary, markov(p).unwrap_or(0)]
    })
    .optional(|p| markov(p).is_none()),
    TensorSpec::new(CONFIDENCE, &["confidence_head.proj", "confidence_head.proj.weight"], |p| {
        vec![1, confidence(p).map_or(0, |head| head.inputs)]
    })
    .optional(|p| confidence(p).is_none()),
    TensorSpec::new(CONFIDENCE_BIAS, &["confidence_head.proj.bias"], |_| vec![1])
        .when(|p| confidence(p).is_some_and(|head| head.bias)),
    TensorSpec::new(
        SELECTOR_BEFORE,
        &["candidate_selector.predecessor_codebook", "candidate_selector.predecessor_codebook.weight"],
        |p| vec![p.config.tokens(), rank(p).unwrap_or(0)],
    )
    .optional(|p| rank(p).is_none()),
    TensorSpec::new(
        SELECTOR_AFTER,
        &["candidate_selector.successor_codebook", "candidate_selector.successor_codebook.weight"],
        |p| vec![p.config.vocabulary, rank(p).unwrap_or(0)],
    )
    .optional(|p| rank(p).is_none()),
    TensorSpec::new(
        SELECTOR_POSITION,
        &["candidate_selector.hidden_projection", "candidate_selector.hidden_projection.weight"],
        |p| vec![rank(p).unwrap_or(0), p.hidden()],
    )
    .optional(|p| rank(p).is_none()),
    TensorSpec::new(GRU_INPUT, &[GRU_INPUT], |p| vec![3 * domino(p).gru, p.hidden()]).when(is_domino),
    TensorSpec::new(GRU_STATE, &[GRU_STATE], |p| vec![3 * domino(p).gru, domino(p).gru]).when(is_domino),
    TensorSpec::new(DOMINO_BEFORE, &[DOMINO_BEFORE], |p| vec![domino(p).rank, p.hidden() + domino(p).gru])
        .when(is_domino),
    TensorSpec::new(DOMINO_AFTER, &[DOMINO_AFTER], |p| vec![p.config.vocabulary, domino(p).rank])
        .when(is_domino),
];

/// Convolutions around the mixer and the feed-forward network.
pub(super) const LAYER: [TensorSpec; 4] = [
    TensorSpec::new("attn_conv_base", &["attention_conv.base_kernel"], base).when(is_convolved),
    TensorSpec::new("attn_conv_proj.weight", &["attention_conv.kernel_projection.weight"], projection)
        .when(is_convolved),
    TensorSpec::new("ffn_conv_base", &["mlp_conv.base_kernel"], base).when(is_convolved),
    TensorSpec::new("ffn_conv_proj.weight", &["mlp_conv.kernel_projection.weight"], projection)
        .when(is_convolved),
];

fn markov(place: Place<'_>) -> Option<usize> {
    place.config.block()?.markov()
}

fn is_domino(place: Place<'_>) -> bool {
    place.config.block().is_some_and(|block| block.domino().is_some())
}

/// Sizes of Domino's correction; zeros in other heads.
fn domino(place: Place<'_>) -> Domino {
    place.config.block().and_then(BlockHead::domino).unwrap_or_default()
}

fn confidence(place: Place<'_>) -> Option<Confidence> {
    place.config.block()?.confidence
}

/// Rank of the selector.
fn rank(place: Place<'_>) -> Option<usize> {
    Some(place.config.block()?.selector()?.rank)
}

fn is_convolved(place: Place<'_>) -> bool {
    convolution(place).is_some()
}

fn convolution(place: Place<'_>) -> Option<Convolution> {
    place.config.block()?.convolution
}

fn base(place: Place<'_>) -> Vec<usize> {
    vec![2, convolution(place).map_or(0, |of| of.taps), place.hidden()]
}

fn projection(place: Place<'_>) -> Vec<usize> {
    let columns = |of: Convolution| 2 * of.taps * (place.hidden() / of.group);
    vec![convolution(place).map_or(0, columns), place.hidden()]
}

/// Completes the configuration of a block head from the shapes of its tensors.
///
/// # Errors
/// `Error::BadModel` for tensors that contradict each other or the configuration.
pub(crate) fn complete(config: &mut ModelConfig, tensors: &Tensors) -> Result<()> {
    let hidden = config.hidden;
    let Some(DraftHead { kind: HeadKind::Block(block), .. }) = &mut config.draft_head else { return Ok(()) };
    let width = |name: &str| tensors.stored.get(name).and_then(|stored| stored.shape.get(1)).copied();
    let both = block.selector().is_some() && width(MARKOV_BEFORE).is_some();
    if let (None | Some(Correction::Markov { .. }), Some(rank)) = (block.correction, width(MARKOV_BEFORE)) {
        block.correction = Some(Correction::Markov { rank });
    }
    let bias = tensors.stored.contains_key(CONFIDENCE_BIAS);
    block.confidence = width(CONFIDENCE).map(|inputs| Confidence { inputs, bias });
    let bad = |expected: String, found: String| Error::BadModel {
        path: tensors.path.clone(),
        expected,
        found,
        hint: "Choose another file of this draft head.",
    };
    let state = hidden + block.markov().unwrap_or(0);
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
    if let Some(candidates) =
        block.lilicorr().map(|sizes| sizes.candidates).filter(|&candidates| candidates > config.vocabulary)
    {
        let expected = format!("a lilicorr_candidate_topk of at most {} tokens", config.vocabulary);
        return Err(bad(expected, candidates.to_string()));
    }
    let selects = block.selector().is_some() || block.lilicorr().is_some();
    if both || selects && tensors.token_table.is_some() {
        let expected = "a selector of all tokens, and no Markov head beside it".to_owned();
        return Err(bad(expected, "some tokens, or both".to_owned()));
    }
    Ok(())
}
