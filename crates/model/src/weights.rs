//! Weights under canonical names, which are GGUF's, for either file format: the table of a model's
//! tensors with their shapes, and access to them. Keeps no weights in memory.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use super::assistant_tensors;
use super::block_tensors;
use super::config::{DraftHead, Experts as ExpertSizes, FeedForwardSpec, HeadNorms, MixerSpec, ModelConfig};
use super::expert_tensors::{self, SELECTION_BIAS};
use super::family::{ExpertOptions, Family, Gating, HeadFamily, SharedWeighting};
use super::gathered::{Gathered, Lie};
use super::latent_tensors;
use super::mtp_tensors;
use super::recurrent_tensors;
use super::stored_rows::StoredRows;
pub use super::tensors::Stored;
use super::tensors::{Meaning, Tensors};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::token::TokenId;

/// Embedding, `[vocabulary, hidden]`.
pub const EMBEDDING: &str = "token_embd.weight";
/// Output matrix, `[vocabulary, hidden]`; absent if the embedding is tied to it.
pub const OUTPUT: &str = "output.weight";
/// Norm before the output matrix, `[hidden]`.
pub(super) const OUTPUT_NORM: &str = "output_norm.weight";
/// Matrix that fuses the states a draft head reads, `[hidden, states]`.
pub const FUSE: &str = "fc.weight";
/// Table of per-layer input embeddings, `[tokens, layers * width]`.
pub const PER_LAYER_EMBEDDING: &str = "per_layer_token_embd.weight";
/// Projection of the embedding to per-layer inputs, `[layers * width, hidden]`.
pub const PER_LAYER_PROJECTION: &str = "per_layer_model_proj.weight";
/// Norm of that projection, `[width]`.
pub const PER_LAYER_NORM: &str = "per_layer_proj_norm.weight";
/// A draft head's table from output rows to target tokens.
pub(super) const TOKEN_TABLE: &str = "d2t";
/// Divisors of the rotary frequencies in GGUF files, one for each pair of rotated components.
pub(super) const ROPE_FACTORS: &str = "rope_freqs.weight";
/// LongRoPE's divisors for texts longer than the original context.
pub(super) const LONG_FACTORS: &str = "rope_factors_long.weight";
/// LongRoPE's divisors for texts up to the original context.
pub(super) const SHORT_FACTORS: &str = "rope_factors_short.weight";

/// Dimension of a tensor, by meaning.
#[derive(Clone, Copy)]
enum Dimension {
    Vocabulary,
    /// Input vocabulary.
    Tokens,
    Hidden,
    /// Width of embeddings and of the state passed on to the next draft token.
    Carried,
    /// Input width of attention.
    Mixed,
    /// Total width of the target's states that a draft head reads.
    States,
    Intermediate,
    /// heads * head_size
    Queries,
    /// kv_heads * head_size
    KeyValues,
    Head,
    Heads,
    /// Number of experts.
    Experts,
    /// Width of the per-layer input.
    PerLayer,
    /// Width of the per-layer inputs of all layers.
    AllLayers,
    One,
}

/// A tensor: canonical name, Hugging Face name, shape, the families that have it, and the layers it
/// is in.
struct Part {
    name: &'static str,
    hugging_face: &'static str,
    shape: &'static [Dimension],
    exists: fn(&Family) -> bool,
    within: fn(&ModelConfig, usize) -> bool,
}

const fn part(name: &'static str, hugging_face: &'static str, shape: &'static [Dimension]) -> Part {
    Part { name, hugging_face, shape, exists: |_| true, within: |_, _| true }
}

impl Part {
    /// Returns whether this belongs to attention, which recurrent layers lack.
    fn is_of_attention(&self) -> bool {
        self.hugging_face.starts_with("self_attn.")
    }

    const fn of(self, exists: fn(&Family) -> bool) -> Self {
        Self { exists, ..self }
    }

    const fn within(self, within: fn(&ModelConfig, usize) -> bool) -> Self {
        Self { within, ..self }
    }
}

use Dimension::{
    AllLayers, Carried, Experts, Head, Heads, Hidden, Intermediate, KeyValues, Mixed, One, PerLayer, Queries,
    States, Tokens, Vocabulary,
};

const OUTER: [Part; 8] = [
    part(EMBEDDING, "model.embed_tokens.weight", &[Tokens, Carried]),
    part(FUSE, "fc.weight", &[Hidden, States])
        .of(|f| matches!(f.head, Some(HeadFamily::Eagle3 | HeadFamily::Block))),
    part(FUSED_NORM, "hidden_norm.weight", &[Hidden]).of(|f| f.head == Some(HeadFamily::Block)),
    part(PER_LAYER_EMBEDDING, "model.embed_tokens_per_layer.weight", &[Tokens, AllLayers])
        .of(|f| f.output_scale)
        .within(tells_layers),
    part(PER_LAYER_PROJECTION, "model.per_layer_model_projection.weight", &[AllLayers, Hidden])
        .of(|f| f.output_scale)
        .within(tells_layers),
    part(PER_LAYER_NORM, "model.per_layer_projection_norm.weight", &[PerLayer])
        .of(|f| f.output_scale)
        .within(tells_layers),
    part(OUTPUT_NORM, "model.norm.weight", &[Hidden]),
    part(OUTPUT, "lm_head.weight", &[Vocabulary, Hidden]),
];

/// Returns whether this is a draft head that fuses states and drafts token by token.
const fn fuses(family: &Family) -> bool {
    matches!(family.head, Some(HeadFamily::Eagle3))
}

fn tells_layers(config: &ModelConfig, _: usize) -> bool {
    config.per_layer_input().is_some()
}

/// Returns whether a layer computes keys and values.
fn computes_kv(config: &ModelConfig, layer: usize) -> bool {
    config.computes_kv(layer)
}

/// Returns whether a layer has a value matrix.
fn has_values(config: &ModelConfig, layer: usize) -> bool {
    config.computes_kv(layer) && config.attention(layer).is_some_and(|kind| !kind.keys.are_values)
}

/// Returns whether a layer has grouped-query attention.
fn attends(config: &ModelConfig, layer: usize) -> bool {
    matches!(config.layers[layer].mixer, MixerSpec::Attention { .. })
}

fn has_experts(config: &ModelConfig, layer: usize) -> bool {
    config.layers[layer].feed_forward.experts().is_some()
}

/// Returns whether a layer has a dense feed-forward network, with or without experts beside it.
fn feeds_densely(config: &ModelConfig, layer: usize) -> bool {
    config.layers[layer].feed_forward.has_dense()
}

fn chooses_by_bias(config: &ModelConfig, layer: usize) -> bool {
    config.layers[layer].feed_forward.experts().is_some_and(ExpertSizes::has_selection_bias)
}

const fn routes_beside(family: &Family) -> bool {
    matches!(family.experts, Some(experts) if experts.beside_dense)
}

const fn shares_expert(family: &Family) -> bool {
    matches!(family.experts, Some(experts) if experts.shared.is_some())
}

const fn gates_shared(family: &Family) -> bool {
    matches!(family.experts, Some(ExpertOptions { shared: Some(SharedWeighting::Gated), .. }))
}

/// Returns whether some layers have a dense feed-forward network.
const fn feeds(family: &Family) -> bool {
    match family.experts {
        Some(experts) => experts.beside_dense || experts.leading_dense || experts.optional,
        None => true,
    }
}

/// Norms that files of [`HeadNorms::Fixed`] may lack.
const QUERY_NORM: &str = "attn_q_norm.weight";
const KEY_NORM: &str = "attn_k_norm.weight";
/// Gate of the shared expert; some files store it as a vector.
const SHARED_GATE: &str = "ffn_gate_inp_shexp.weight";

const fn norms_heads(family: &Family) -> bool {
    matches!(family.attention.head_norms, HeadNorms::Each | HeadNorms::Fixed)
}

/// Tensors of a layer; names follow `blk.{i}.` and `model.layers.{i}.`.
const LAYER: [Part; 39] = [
    part("attn_norm.weight", "input_layernorm.weight", &[Hidden]).of(|f| f.norms.pre),
    part("attn_norm_2.weight", "hidden_norm.weight", &[Hidden]).of(fuses),
    part("attn_q.weight", "self_attn.q_proj.weight", &[Queries, Mixed]),
    part("attn_k.weight", "self_attn.k_proj.weight", &[KeyValues, Mixed]).within(computes_kv),
    part("attn_v.weight", "self_attn.v_proj.weight", &[KeyValues, Mixed]).within(has_values),
    part("attn_q.bias", "self_attn.q_proj.bias", &[Queries]).of(|f| f.attention.biases),
    part("attn_k.bias", "self_attn.k_proj.bias", &[KeyValues]).of(|f| f.attention.biases),
    part("attn_v.bias", "self_attn.v_proj.bias", &[KeyValues]).of(|f| f.attention.biases),
    part(QUERY_NORM, "self_attn.q_norm.weight", &[Head]).of(norms_heads),
    part(KEY_NORM, "self_attn.k_norm.weight", &[Head]).of(norms_heads).within(computes_kv),
    part(QUERY_NORM, "self_attn.q_norm.weight", &[Queries])
        .of(|f| f.attention.head_norms == HeadNorms::Together),
    part(KEY_NORM, "self_attn.k_norm.weight", &[KeyValues])
        .of(|f| f.attention.head_norms == HeadNorms::Together),
    part("attn_gate.weight", "self_attn.gate_proj.weight", &[Queries, Mixed]).of(|f| f.attention.gate),
    part("attn_sinks.weight", "self_attn.sinks", &[Heads]).of(|f| f.attention.sinks),
    part("attn_output.weight", "self_attn.o_proj.weight", &[Hidden, Queries]),
    part("attn_output.bias", "self_attn.o_proj.bias", &[Hidden]).of(|f| f.attention.output_bias),
    // With post norms, Hugging Face's name for the norm after attention is literal.
    part("post_attention_norm.weight", "post_attention_layernorm.weight", &[Hidden]).of(|f| f.norms.post),
    part("ffn_norm.weight", "post_attention_layernorm.weight", &[Hidden])
        .of(|f| f.norms.pre && !f.norms.post),
    part("ffn_norm.weight", "pre_feedforward_layernorm.weight", &[Hidden])
        .of(|f| f.norms.pre && f.norms.post),
    part("ffn_gate_inp.weight", "mlp.gate.weight", &[Experts, Hidden])
        .of(|f| f.experts.is_some())
        .within(has_experts),
    part("ffn_gate_inp.scale", "router.scale", &[Hidden]).of(routes_beside).within(has_experts),
    part("ffn_down_exps.scale", "router.per_expert_scale", &[Experts]).of(routes_beside).within(has_experts),
    part("post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight", &[Hidden])
        .of(routes_beside)
        .within(has_experts),
    part("pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight", &[Hidden])
        .of(routes_beside)
        .within(has_experts),
    part("post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight", &[Hidden])
        .of(routes_beside)
        .within(has_experts),
    part("ffn_gate_inp.bias", "mlp.gate.bias", &[Experts]).of(|f| f.experts.is_some_and(|e| e.biases)),
    part(SELECTION_BIAS, "mlp.expert_bias", &[Experts])
        .of(|f| f.experts.is_some_and(|e| e.gating != Gating::Softmax))
        .within(chooses_by_bias),
    part("ffn_gate.weight", "mlp.gate_proj.weight", &[Intermediate, Hidden]).of(feeds).within(feeds_densely),
    part("ffn_up.weight", "mlp.up_proj.weight", &[Intermediate, Hidden]).of(feeds).within(feeds_densely),
    part("ffn_down.weight", "mlp.down_proj.weight", &[Hidden, Intermediate]).of(feeds).within(feeds_densely),
    part("ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight", &[Intermediate, Hidden])
        .of(shares_expert)
        .within(has_experts),
    part("ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight", &[Intermediate, Hidden])
        .of(shares_expert)
        .within(has_experts),
    part("ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight", &[Hidden, Intermediate])
        .of(shares_expert)
        .within(has_experts),
    part(SHARED_GATE, "mlp.shared_expert_gate.weight", &[One, Hidden]).of(gates_shared),
    part("post_ffw_norm.weight", "post_feedforward_layernorm.weight", &[Hidden]).of(|f| f.norms.post),
    part("inp_gate.weight", "per_layer_input_gate.weight", &[PerLayer, Hidden])
        .of(|f| f.output_scale)
        .within(tells_layers),
    part("proj.weight", "per_layer_projection.weight", &[Hidden, PerLayer])
        .of(|f| f.output_scale)
        .within(tells_layers),
    part("post_norm.weight", "post_per_layer_input_norm.weight", &[Hidden])
        .of(|f| f.output_scale)
        .within(tells_layers),
    part("layer_output_scale.weight", "layer_scalar", &[One]).of(|f| f.output_scale),
];

/// Matrices stored as one: canonical name, Hugging Face name, and the parts whose rows follow each
/// other.
struct Fused {
    name: &'static str,
    hugging_face: &'static str,
    parts: &'static [(&'static str, Dimension)],
}

const FUSED: [Fused; 2] = [
    Fused {
        name: "attn_qkv.weight",
        hugging_face: "self_attn.qkv_proj.weight",
        parts: &[("attn_q.weight", Queries), ("attn_k.weight", KeyValues), ("attn_v.weight", KeyValues)],
    },
    Fused {
        name: "ffn_up.weight",
        hugging_face: "mlp.gate_up_proj.weight",
        parts: &[("ffn_gate.weight", Intermediate), ("ffn_up.weight", Intermediate)],
    },
];

/// Aliases of Hugging Face names in a layer: of Granite 4 for feed-forward networks and experts, of
/// gpt-oss and Gemma 4 for the router, of LFM2, and of DeepSeek for experts.
const ALIASES: [(&str, &str); 23] = [
    ("router.proj.weight", "mlp.gate.weight"),
    ("block_sparse_moe.router.layer.weight", "mlp.gate.weight"),
    ("block_sparse_moe.router.weight", "mlp.gate.weight"),
    ("block_sparse_moe.input_linear.weight", "experts.gate_up_proj"),
    ("block_sparse_moe.output_linear.weight", "experts.down_proj"),
    ("mlp.router.weight", "mlp.gate.weight"),
    ("mlp.router.bias", "mlp.gate.bias"),
    ("operator_norm.weight", "input_layernorm.weight"),
    ("ffn_norm.weight", "post_attention_layernorm.weight"),
    ("feed_forward.gate.weight", "mlp.gate.weight"),
    ("feed_forward.expert_bias", "mlp.expert_bias"),
    ("feed_forward.w1.weight", "mlp.gate_proj.weight"),
    ("feed_forward.w3.weight", "mlp.up_proj.weight"),
    ("feed_forward.w2.weight", "mlp.down_proj.weight"),
    ("self_attn.q_layernorm.weight", "self_attn.q_norm.weight"),
    ("self_attn.k_layernorm.weight", "self_attn.k_norm.weight"),
    ("self_attn.out_proj.weight", "self_attn.o_proj.weight"),
    ("shared_mlp.input_linear.weight", "mlp.gate_up_proj.weight"),
    ("shared_mlp.output_linear.weight", "mlp.down_proj.weight"),
    ("mlp.gate.e_score_correction_bias", "mlp.expert_bias"),
    ("mlp.shared_experts.gate_proj.weight", "mlp.shared_expert.gate_proj.weight"),
    ("mlp.shared_experts.up_proj.weight", "mlp.shared_expert.up_proj.weight"),
    ("mlp.shared_experts.down_proj.weight", "mlp.shared_expert.down_proj.weight"),
];

/// Returns the canonical name for a Hugging Face name; `None` for a tensor that the family lacks.
pub(super) fn canonical(hugging_face: &str, family: &Family) -> Option<String> {
    match family.head {
        Some(HeadFamily::Assistant) => {
            if let Some(name) = assistant_tensors::outer(hugging_face) {
                return Some(name.to_owned());
            }
        }
        Some(HeadFamily::Eagle3 | HeadFamily::Block) => return canonical_of_head(hugging_face, family),
        None => {}
    }
    if let Some(part) = OUTER.iter().find(|p| p.hugging_face == hugging_face && (p.exists)(family)) {
        return Some(part.name.into());
    }
    if hugging_face == "model.embedding_norm.weight" {
        return Some(OUTPUT_NORM.into());
    }
    let (layer, rest) = hugging_face.strip_prefix("model.layers.")?.split_once('.')?;
    let layer = number(layer)?;
    let alias = ALIASES.iter().find(|(alias, _)| *alias == rest);
    let rest = alias.map_or(rest, |&(_, name)| name);
    let of_feed =
        ["mlp.", "feed_forward.", "block_sparse_moe."].iter().find_map(|part| rest.strip_prefix(part));
    if let Some(rest) = of_feed.unwrap_or(rest).strip_prefix("experts.") {
        return Some(format!("blk.{layer}.{}", expert_tensors::canonical(rest, family)?));
    }
    let fused = FUSED.iter().find(|f| family.fused && f.hugging_face == rest).map(|f| f.name);
    if family.latent && rest.starts_with("self_attn.") {
        return Some(format!("blk.{layer}.{}", latent_tensors::canonical(rest)?));
    }
    if family.latent
        && let Some(name) = mtp_tensors::of_numbered(rest)
    {
        return Some(format!("blk.{layer}.{name}"));
    }
    let part = || LAYER.iter().find(|p| p.hugging_face == rest && (p.exists)(family)).map(|p| p.name);
    let recurrent = || recurrent_tensors::canonical(rest, family.recurrent?);
    Some(format!("blk.{layer}.{}", fused.or_else(part).or_else(recurrent)?))
}

/// Returns the canonical name for a draft head, whose names begin with `layers`, or with `midlayer`
/// in some EAGLE-3 files.
fn canonical_of_head(hugging_face: &str, family: &Family) -> Option<String> {
    let outer = |part: &&Part| {
        (part.exists)(family) && part.hugging_face.trim_start_matches("model.") == hugging_face
    };
    if let Some(part) = OUTER.iter().find(outer) {
        return Some(part.name.into());
    }
    if family.head == Some(HeadFamily::Block) {
        return canonical_of_block(hugging_face, family);
    }
    if hugging_face == "input_norm.weight" {
        return Some(fused_norm(None));
    }
    if let Some(norm) = hugging_face.strip_prefix("fc_norm.") {
        return Some(fused_norm(Some(number(norm.strip_suffix(".weight")?)?)));
    }
    let rest = ["midlayer.", "layers.0."].iter().find_map(|layer| hugging_face.strip_prefix(layer))?;
    let part = LAYER.iter().find(|part| part.hugging_face == rest && (part.exists)(family))?;
    Some(format!("blk.0.{}", part.name))
}

/// Returns the canonical name for a block head's layers and optional tensors.
fn canonical_of_block(hugging_face: &str, family: &Family) -> Option<String> {
    if let Some(name) = block_tensors::outer(hugging_face) {
        return Some(name.to_owned());
    }
    let (layer, rest) = hugging_face.strip_prefix("layers.")?.split_once('.')?;
    let layer = number(layer)?;
    let part =
        LAYER.iter().find(|part| part.hugging_face == rest && (part.exists)(family)).map(|part| part.name);
    Some(format!("blk.{layer}.{}", part.or_else(|| block_tensors::of_layer(rest))?))
}

/// Norm of all states that a draft head fuses, or in a block head of their fusion.
pub const FUSED_NORM: &str = "enc.output_norm.weight";

/// Name of the norm of all states that a draft head fuses, or of one of them.
pub fn fused_norm(state: Option<usize>) -> String {
    match state {
        None => FUSED_NORM.to_owned(),
        Some(state) => format!("enc.output_norm.{state}.weight"),
    }
}

/// Parses a canonical decimal number: neither "+1" nor "01".
pub(super) fn number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number: &usize| number.to_string() == text)
}

/// Splits tensors that files store as one, and gives all tensors their canonical names. Parts that
/// a file stores separately stay as they are.
///
/// # Errors
/// `Error::BadModel` for a matrix with an unexpected number of rows.
pub(super) fn split(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    rename(tensors, config);
    if config.family.gate_in_query {
        split_gates(tensors, config)?;
    }
    expert_tensors::split(tensors, config)?;
    recurrent_tensors::split(tensors, config)?;
    latent_tensors::split(tensors, config)?;
    leave_out_shared(tensors, config);
    if !config.family.fused {
        return Ok(());
    }
    for (layer, fused) in (0..config.depth()).flat_map(|layer| FUSED.iter().map(move |fused| (layer, fused)))
    {
        let full = |name: &str| format!("blk.{layer}.{name}");
        let parts: Vec<(String, usize)> =
            fused.parts.iter().map(|(part, rows)| (full(part), size(*rows, config, layer))).collect();
        tensors.split_rows(&full(fused.name), &parts, config.hidden)?;
    }
    name_shared_expert(tensors, config);
    Ok(())
}

/// Renames Granite's shared expert, which Hugging Face files name like a dense feed-forward
/// network.
fn name_shared_expert(tensors: &mut Tensors, config: &ModelConfig) {
    let is_ungated = |spec: &FeedForwardSpec| spec.shared().is_some_and(|shared| !shared.gated);
    for layer in (0..config.depth()).filter(|&layer| is_ungated(&config.layers[layer].feed_forward)) {
        for part in ["ffn_gate", "ffn_up", "ffn_down"] {
            if let Some(stored) = tensors.stored.remove(&format!("blk.{layer}.{part}.weight")) {
                tensors.stored.insert(format!("blk.{layer}.{part}_shexp.weight"), stored);
            }
        }
    }
}

/// Replaces aliases of GGUF names, and moves MTP blocks to `tensors.mtp`.
fn rename(tensors: &mut Tensors, config: &ModelConfig) {
    let rename = |tensors: &mut Tensors, from: &str, to: &str| {
        if !tensors.stored.contains_key(to)
            && let Some(stored) = tensors.stored.remove(from)
        {
            tensors.stored.insert(to.to_owned(), stored);
        }
    };
    rename(tensors, "token_embd_norm.weight", OUTPUT_NORM);
    if config.assistant().is_some() {
        // An assistant's token table is its output matrix; the embedding is the target's.
        rename(tensors, EMBEDDING, OUTPUT);
        tensors.stored.remove(EMBEDDING);
    }
    let full = |layer: usize, name: &str| format!("blk.{layer}.{name}");
    if !config.family.norms.post {
        for layer in 0..config.depth() {
            rename(tensors, &full(layer, "post_attention_norm.weight"), &full(layer, "ffn_norm.weight"));
        }
    }
    for layer in 0..config.depth() {
        if let Some(gate) =
            tensors.stored.get_mut(&full(layer, SHARED_GATE)).filter(|gate| gate.shape.len() == 1)
        {
            gate.shape.insert(0, 1);
        }
    }
    for block in 0..config.mtp_layers {
        let name = full(config.depth() + block, "");
        for (found, stored) in tensors.stored.extract_if(.., |found, _| found.starts_with(&name)) {
            tensors.mtp.insert(full(block, &found[name.len()..]), stored);
        }
    }
}

/// Splits the query matrix that also contains the gate, head by head.
fn split_gates(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    for layer in (0..config.depth()).filter(|&layer| attends(config, layer)) {
        let [query, gate] = ["attn_q", "attn_gate"].map(|part| format!("blk.{layer}.{part}.weight"));
        let Some(both) = tensors.stored.remove(&query) else { continue };
        let (rows, run) = (size(Queries, config, layer), size(Head, config, layer));
        if both.shape != [2 * rows, config.hidden] {
            return Err(tensors.misshapen(&query, &[2 * rows, config.hidden], &both.shape));
        }
        for (name, first) in [(query, 0), (gate, run)] {
            let gathered = Some(Gathered { first, step: 2 * run, run, lie: Lie::Rows });
            let one = Stored { shape: vec![rows, config.hidden], gathered, ..both.clone() };
            tensors.stored.insert(name, one);
        }
    }
    Ok(())
}

/// Removes keys and values of layers that attend to another layer's cache; some files contain them.
fn leave_out_shared(tensors: &mut Tensors, config: &ModelConfig) {
    for layer in (0..config.depth()).filter(|&layer| attends(config, layer) && !config.computes_kv(layer)) {
        for part in ["attn_k.weight", "attn_v.weight", KEY_NORM] {
            tensors.stored.remove(&format!("blk.{layer}.{part}"));
        }
    }
}

/// Checks that exactly the family's tensors exist, in the shapes that the configuration requires.
/// An unexpected tensor, such as a bias or an adapter, would mean a different computation.
///
/// # Errors
/// `Error::BadModel` naming the first tensor that is missing, unknown or of another shape.
pub(super) fn check(tensors: &Tensors, config: &ModelConfig) -> Result<()> {
    let mut expected = 0;
    assistant_tensors::check(tensors, config)?;
    // A draft head may use its target's embedding and output matrix; an assistant has its own
    // output matrix.
    let borrowed = |name: &str| {
        let borrows = config.draft_head.is_some()
            && (name == EMBEDDING || name == OUTPUT && config.assistant().is_none());
        borrows && !tensors.stored.contains_key(name)
    };
    let fixed = |name: &str| {
        let may_lack = config.family.attention.head_norms == HeadNorms::Fixed
            && [QUERY_NORM, KEY_NORM].iter().any(|norm| name.ends_with(norm));
        may_lack && !tensors.stored.contains_key(name)
    };
    for (name, shape) in expected_tensors(config).filter(|(name, _)| !borrowed(name) && !fixed(name)) {
        let stored = tensors.find(&name)?;
        if stored.shape != shape {
            return Err(tensors.misshapen(&name, &shape, &stored.shape));
        }
        expected += 1;
    }
    if tensors.stored.keys().filter(|name| !is_rotary(name)).count() == expected {
        return Ok(());
    }
    let wanted: std::collections::BTreeSet<String> = expected_tensors(config).map(|(name, _)| name).collect();
    let unknown = tensors.stored.keys().find(|n| !is_rotary(n) && !wanted.contains(*n));
    Err(Error::BadModel {
        path: tensors.path.clone(),
        expected: format!("only the tensors of {}", config.family.name),
        found: unknown.map_or_else(String::new, |name| format!("{name} as well")),
        hint: "Choose another model.",
    })
}

/// Returns whether a tensor is part of the configuration.
fn is_rotary(name: &str) -> bool {
    [ROPE_FACTORS, LONG_FACTORS, SHORT_FACTORS].contains(&name)
}

fn expected_tensors(config: &ModelConfig) -> impl Iterator<Item = (String, Vec<usize>)> {
    let outer = OUTER
        .iter()
        .filter(|p| (p.exists)(config.family) && (p.name != OUTPUT || !config.tied_embeddings))
        .filter(|p| (p.within)(config, 0))
        .map(|p| (p.name.to_owned(), shape(p, config, 0)));
    let (norms, width) = config.draft_head.as_ref().map_or((0, 0), DraftHead::norms);
    let norms = (0..norms).map(move |state| (fused_norm((norms > 1).then_some(state)), vec![width]));
    let layers = (0..config.depth()).flat_map(move |layer| {
        let attends = attends(config, layer);
        let parts = LAYER.iter().filter(move |p| (p.exists)(config.family) && (p.within)(config, layer));
        let parts = parts.filter(move |p| attends || !p.is_of_attention());
        let parts = parts.map(move |p| (format!("blk.{layer}.{}", p.name), shape(p, config, layer)));
        let recurrent = recurrent_tensors::expected(config, layer);
        let recurrent = recurrent.map(move |(name, shape)| (format!("blk.{layer}.{name}"), shape));
        let latent = latent_tensors::expected(config, layer).into_iter();
        let latent = latent.map(move |(name, shape)| (format!("blk.{layer}.{name}"), shape));
        parts.chain(recurrent).chain(latent).chain(expert_tensors::expected(config, layer))
    });
    outer
        .chain(norms)
        .chain(layers)
        .chain(block_tensors::expected(config))
        .chain(mtp_tensors::expected(config))
        .chain(assistant_tensors::expected(config))
}

fn shape(part: &Part, config: &ModelConfig, layer: usize) -> Vec<usize> {
    part.shape.iter().map(|&dimension| size(dimension, config, layer)).collect()
}

/// Returns the size of a dimension in `layer`.
fn size(dimension: Dimension, config: &ModelConfig, layer: usize) -> usize {
    let per_layer = config.per_layer_input().unwrap_or_default();
    let keys = || config.attention(layer).map(|kind| kind.keys).unwrap_or_default();
    match dimension {
        Vocabulary => config.vocabulary,
        Tokens => config.tokens(),
        Hidden => config.hidden,
        Carried => config.carried(),
        Mixed => config.mixed(),
        States => config.draft_head.as_ref().map_or(0, DraftHead::states),
        Intermediate => config.layers[layer].feed_forward.width().unwrap_or_default(),
        Queries => config.heads * keys().size,
        KeyValues => keys().count * keys().size,
        Head => keys().size,
        Heads => config.heads,
        Experts => config.layers[layer].feed_forward.experts().map_or(0, |experts| experts.count),
        PerLayer => per_layer,
        AllLayers => config.depth() * per_layer,
        One => 1,
    }
}

/// Receives the bytes of weights loaded so far, the current tensor included, and their total;
/// `Break` cancels loading.
pub type Watcher = Arc<dyn Fn(u64, u64) -> ControlFlow<()> + Send + Sync>;

/// Identity of a matrix on this computer and of its conversion, for sharing packed weights.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    file: (PathBuf, u64, Option<SystemTime>),
    bytes: Range<usize>,
    shape: Vec<usize>,
    format: Format,
    rounded: bool,
}

/// Reader of weights for a device; each call reads one tensor.
pub struct Weights {
    tensors: Arc<Tensors>,
    device: Device,
    eight_bits: bool,
    watcher: Option<Watcher>,
    /// Bytes read so far, the current tensor included.
    done: AtomicU64,
}

impl Weights {
    pub(super) fn new(
        tensors: Arc<Tensors>,
        device: &Device,
        eight_bits: bool,
        watcher: Option<Watcher>,
    ) -> Self {
        Self { tensors, device: device.clone(), eight_bits, watcher, done: AtomicU64::new(0) }
    }

    /// Reports to the watcher that a tensor of `bytes` bytes is about to be read.
    fn report(&self, bytes: usize) -> Result<()> {
        let done = self.done.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        match &self.watcher {
            Some(watcher) if watcher(done, self.tensors.bytes()).is_break() => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// Reads a matrix `[out, in]` in its stored format, dequantised, or rounded to Q8_0 if
    /// requested.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor; `Error::Compute` from the device;
    /// `Error::Cancelled` if the watcher cancelled loading.
    pub fn matrix(&self, name: &str) -> Result<Arc<QTensor>> {
        self.matrix_on(&self.device, name)
    }

    /// Reads a matrix as [`Self::matrix`] does, but for `device`.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn matrix_on(&self, device: &Device, name: &str) -> Result<Arc<QTensor>> {
        let stored = self.stored(name)?;
        let matrix = if self.rounds(stored) {
            self.in_eight_bits(device, name)?
        } else {
            self.tensors.load(name, device)?
        };
        Ok(Arc::new(matrix))
    }

    /// Memory of a tensor on the CPU in bytes, where codebook formats are packed with one number
    /// per weight.
    pub(super) fn loaded_bytes(&self, stored: &Stored) -> u64 {
        if stored.shape.len() < 2 {
            return stored.bytes.len() as u64;
        }
        let format = if self.rounds(stored) { Format::Q8_0 } else { stored.format };
        stored.elements() * format.packed() as u64 / format.inputs() as u64
    }

    /// Returns whether a tensor is rounded to Q8_0: if requested, for 16 or 32 bits and whole
    /// blocks.
    pub fn rounds(&self, stored: &Stored) -> bool {
        let row = stored.shape.last().copied().unwrap_or(0);
        self.eight_bits && !stored.format.quantised() && row.is_multiple_of(Format::Q8_0.inputs())
    }

    /// Reads a matrix as Q8_0, whatever its stored format.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn in_eight_bits(&self, device: &Device, name: &str) -> Result<QTensor> {
        let stored = self.tensors.load(name, &Device::Cpu)?;
        tracing::info!("{name} is stored as {:?} and computed as Q8_0", stored.dtype());
        let numbers = stored.dequantize(&Device::Cpu)?;
        Ok(QTensor::quantize_onto(&numbers, GgmlDType::Q8_0, device)?)
    }

    /// Reads a vector as f32, with its stored numbers mapped to weights.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn vector(&self, name: &str) -> Result<Tensor> {
        let meaning = self.stored(name)?.meaning;
        let vector = self.tensors.load(name, &self.device)?.dequantize(&self.device)?;
        Ok(match meaning {
            Meaning::Themselves => vector,
            Meaning::AboveOne => (vector + 1.0)?,
            Meaning::MinusExp => vector.exp()?.neg()?,
        })
    }

    /// Opens a matrix that stays in its file.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn rows(&self, name: &str) -> Result<StoredRows> {
        Ok(StoredRows::new(Arc::clone(&self.tensors), self.stored(name)?.clone()))
    }

    /// Returns the identity of a matrix among packed weights; `None` if its rows are not
    /// contiguous.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor.
    pub fn identity(&self, name: &str) -> Result<Option<Identity>> {
        let stored = self.tensors.find(name)?;
        let file = self.tensors.files[stored.file].identity();
        Ok(stored.gathered.is_none().then(|| Identity {
            file,
            bytes: stored.bytes.clone(),
            shape: stored.shape.clone(),
            format: stored.format,
            rounded: self.rounds(stored),
        }))
    }

    /// Returns the location of a tensor that is about to be read, and reports it to the watcher.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor; `Error::Cancelled` as [`Self::matrix`].
    pub fn stored(&self, name: &str) -> Result<&Stored> {
        let stored = self.tensors.find(name)?;
        self.report(stored.bytes.len())?;
        Ok(stored)
    }

    /// Reads the bytes of a tensor as stored in the file.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` if the file has changed.
    pub fn read(&self, stored: &Stored) -> Result<Vec<u8>> {
        self.tensors.read(stored)
    }

    /// Returns an error for a model that is not as `expected`.
    pub fn bad(&self, expected: String, found: String) -> Error {
        Error::BadModel {
            path: self.tensors.path.clone(),
            expected,
            found,
            hint: "Choose another file of this model.",
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.stored.contains_key(name)
    }

    /// Reads an assistant's tokens, ordered by cluster.
    ///
    /// # Errors
    /// `Error::BadModel` if the list does not contain each of `tokens` tokens once, and errors of
    /// [`Self::vector`].
    pub fn order(&self, tokens: usize) -> Result<Vec<TokenId>> {
        self.tensors.order(tokens)
    }

    pub fn device(&self) -> &Device {
        &self.device
    }
}
