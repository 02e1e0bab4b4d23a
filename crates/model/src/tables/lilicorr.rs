//! Tensors of LiLiCorr's transformer over the candidates of a block. No GGUF file has them, so
//! their names are those of its authors.

use super::super::config::{LiliCorr, ModelConfig};
use super::spec::Expected;

/// Number of features of a candidate beside its embedding and its position's state.
pub const FEATURES: usize = 5;

/// Returns the canonical name for a Hugging Face name of one of these tensors.
pub(super) fn canonical(hugging_face: &str) -> Option<String> {
    hugging_face.starts_with("lilicorr.").then(|| hugging_face.to_owned())
}

/// The tensors of a model that has LiLiCorr.
pub(super) fn expected(config: &ModelConfig) -> impl Iterator<Item = Expected> + use<> {
    let sizes = config.block().and_then(|block| Some((block.lilicorr()?, block.rows)));
    let tensors = sizes.map_or_else(Vec::new, |(sizes, rows)| tensors(sizes, rows, config.hidden));
    tensors.into_iter().map(|(name, shape)| Expected::required(format!("lilicorr.{name}"), shape))
}

fn tensors(sizes: LiliCorr, rows: usize, width: usize) -> Vec<(String, Vec<usize>)> {
    let LiliCorr { hidden, heads, factors, candidates, .. } = sizes;
    let mut tensors = Vec::new();
    let mut add = |name: &str, shape: &[usize]| tensors.push((name.to_owned(), shape.to_vec()));
    add("feature_mlp.0.weight", &[FEATURES]);
    add("feature_mlp.0.bias", &[FEATURES]);
    add("slot_embedding", &[1, 1, rows - 1, 1, hidden]);
    add("rank_embedding", &[1, 1, 1, candidates, hidden]);
    add("relative_slot_bias", &[heads, 2 * rows - 1]);
    add("same_slot_bias", &[heads]);
    add("output_norm.weight", &[hidden]);
    add("anchor_norm.weight", &[hidden]);
    let linear = [
        ("token_proj", hidden, width),
        ("pass_hidden_proj", hidden, width),
        ("feature_mlp.1", hidden, FEATURES),
        ("feature_mlp.3", hidden, hidden),
        ("context_proj", hidden, width),
        ("factor_input_proj", hidden, 3 * hidden),
        ("out_head", factors, hidden),
        ("in_head", factors, hidden),
        ("anchor_out_head", factors, hidden),
    ];
    // A transformer as wide as the head reads embeddings as they are.
    for (name, out, inputs) in
        linear.into_iter().filter(|(name, ..)| hidden != width || *name != "token_proj")
    {
        add(&format!("{name}.weight"), &[out, inputs]);
        add(&format!("{name}.bias"), &[out]);
    }
    for layer in 0..sizes.layers {
        add_layer(&format!("layers.{layer}"), sizes, &mut add);
    }
    tensors
}

fn add_layer(layer: &str, sizes: LiliCorr, add: &mut impl FnMut(&str, &[usize])) {
    let LiliCorr { hidden, intermediate, .. } = sizes;
    for (part, shape) in [
        ("attn_norm.weight", vec![hidden]),
        ("attn.in_proj_weight", vec![3 * hidden, hidden]),
        ("attn.in_proj_bias", vec![3 * hidden]),
        ("attn.out_proj.weight", vec![hidden, hidden]),
        ("attn.out_proj.bias", vec![hidden]),
        ("mlp_norm.weight", vec![hidden]),
        ("mlp.0.weight", vec![intermediate, hidden]),
        ("mlp.0.bias", vec![intermediate]),
        ("mlp.2.weight", vec![hidden, intermediate]),
        ("mlp.2.bias", vec![hidden]),
    ] {
        add(&format!("{layer}.{part}"), &shape);
    }
}
