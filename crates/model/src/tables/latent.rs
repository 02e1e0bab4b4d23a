//! Tensors of latent attention. The matrices that expand latents to keys and values get canonical
//! names per head.

use super::super::config::{Latent, MixerSpec, ModelConfig};
use super::super::gathered::{Gathered, Lie};
use super::super::tensors::{Stored, Tensors};
use super::spec::{Alias, Expected, Place, Storage, TensorSpec};
use crate::error::{Error, Result};

/// Query matrix, `[heads * (plain + turned), hidden]`.
const QUERIES: &str = "attn_q.weight";
/// Down projection of low-rank queries, `[queries, hidden]`.
const QUERIES_DOWN: &str = "attn_q_a.weight";
/// Norm between the projections of low-rank queries, `[queries]`.
const QUERIES_NORM: &str = "attn_q_a_norm.weight";
/// Up projection of low-rank queries, `[heads * (plain + turned), queries]`.
const QUERIES_UP: &str = "attn_q_b.weight";
/// Down projection to the latent and the rotated part of the key, `[size + turned, hidden]`.
const LATENT: &str = "attn_kv_a_mqa.weight";
/// Norm of the latent, `[size]`.
const LATENT_NORM: &str = "attn_kv_a_norm.weight";
/// Key matrices of all heads in GGUF files, `[heads, size, plain]`.
const KEYS: &str = "attn_k_b";
/// Value matrices of all heads in GGUF files, `[heads, value, size]`.
const VALUES: &str = "attn_v_b";
/// Key and value matrices of all heads in Hugging Face files, `[heads * (plain + value), size]`.
const KEYS_AND_VALUES: &str = "attn_kv_b.weight";
/// Output projection, `[hidden, heads * value]`.
const OUTPUT: &str = "attn_output.weight";

pub(super) const TENSORS: [TensorSpec; 7] = [
    TensorSpec::new(QUERIES, &["self_attn.q_proj.weight"], |p| vec![queries(p), p.hidden()])
        .when(|p| p.latent().is_some_and(|of| of.queries.is_none())),
    TensorSpec::new(QUERIES_DOWN, &["self_attn.q_a_proj.weight"], |p| vec![rank(p), p.hidden()])
        .when(has_low_rank),
    TensorSpec::new(QUERIES_NORM, &["self_attn.q_a_layernorm.weight"], |p| vec![rank(p)]).when(has_low_rank),
    TensorSpec::new(QUERIES_UP, &["self_attn.q_b_proj.weight"], |p| vec![queries(p), rank(p)])
        .when(has_low_rank),
    TensorSpec::new(LATENT, &["self_attn.kv_a_proj_with_mqa.weight"], |p| {
        vec![size(p, |of| of.size + of.turned), p.hidden()]
    })
    .when(is_latent),
    TensorSpec::new(LATENT_NORM, &["self_attn.kv_a_layernorm.weight"], |p| vec![size(p, |of| of.size)])
        .when(is_latent),
    TensorSpec::new(OUTPUT, &["self_attn.o_proj.weight"], |p| {
        vec![p.hidden(), p.config.heads * size(p, |of| of.value)]
    })
    .when(is_latent),
];

pub(super) const ALIASES: [Alias; 1] = [Alias {
    name: KEYS_AND_VALUES,
    hugging_face: &["self_attn.kv_b_proj.weight"],
    exists: is_latent,
    storage: Storage::Custom,
}];

fn is_latent(place: Place<'_>) -> bool {
    place.latent().is_some()
}

fn has_low_rank(place: Place<'_>) -> bool {
    place.latent().is_some_and(|of| of.queries.is_some())
}

fn size(place: Place<'_>, of: fn(&Latent) -> usize) -> usize {
    place.latent().as_ref().map_or(0, of)
}

/// Total width of the queries.
fn queries(place: Place<'_>) -> usize {
    place.config.heads * size(place, Latent::query)
}

/// Rank of the query projection.
fn rank(place: Place<'_>) -> usize {
    size(place, |of| of.queries.unwrap_or_default())
}

/// Name of a head's matrix that projects the unrotated part of a query onto latents, `[size,
/// plain]`; without layer prefix and `.weight`.
pub fn of_keys(head: usize) -> String {
    format!("{KEYS}.{head}")
}

/// Name of a head's matrix that expands latents to values, `[value, size]`; without layer prefix
/// and `.weight`.
pub fn of_values(head: usize) -> String {
    format!("{VALUES}.{head}")
}

/// The matrices of each head in a layer; none for other mixers.
pub(super) fn of_heads(place: Place<'_>) -> Vec<Expected> {
    let Some(of) = place.latent() else { return Vec::new() };
    let full = |name: String| full(place.layer, &format!("{name}.weight"));
    let of_head = |head| {
        [
            Expected::required(full(of_keys(head)), vec![of.size, of.plain]),
            Expected::required(full(of_values(head)), vec![of.value, of.size]),
        ]
    };
    (0..place.config.heads).flat_map(of_head).collect()
}

/// Locates each head's matrices in the stacks that contain them.
///
/// # Errors
/// `Error::BadModel` for a stack of an unexpected shape.
pub(super) fn split(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    for (layer, spec) in config.layers.iter().enumerate() {
        let MixerSpec::Latent { sizes: of, .. } = spec.mixer else { continue };
        split_stack(tensors, config.heads, layer, KEYS, [of.size, of.plain])?;
        split_stack(tensors, config.heads, layer, VALUES, [of.value, of.size])?;
        split_both(tensors, config.heads, layer, &of)?;
    }
    Ok(())
}

fn full(layer: usize, name: &str) -> String {
    format!("blk.{layer}.{name}")
}

/// Splits a stack of one matrix per head.
fn split_stack(
    tensors: &mut Tensors,
    heads: usize,
    layer: usize,
    stack: &str,
    [rows, columns]: [usize; 2],
) -> Result<()> {
    let name = full(layer, &format!("{stack}.weight"));
    let Some(found) = tensors.stored.remove(&name) else { return Ok(()) };
    let whole = [heads, rows, columns];
    if found.shape != whole {
        return Err(tensors.misshapen(&name, &whole, &found.shape));
    }
    let bytes = found.bytes.len() / heads;
    for head in 0..heads {
        let start = found.bytes.start + head * bytes;
        let one = Stored { shape: vec![rows, columns], bytes: start..start + bytes, ..found.clone() };
        tensors.stored.insert(full(layer, &format!("{stack}.{head}.weight")), one);
    }
    Ok(())
}

/// Splits Hugging Face's stack: for each head its key rows, which are read transposed, then its
/// value rows.
fn split_both(tensors: &mut Tensors, heads: usize, layer: usize, of: &Latent) -> Result<()> {
    let Some(found) = tensors.stored.remove(&full(layer, KEYS_AND_VALUES)) else { return Ok(()) };
    let (name, whole) = (full(layer, KEYS_AND_VALUES), [heads * (of.plain + of.value), of.size]);
    if found.shape != whole {
        return Err(tensors.misshapen(&name, &whole, &found.shape));
    }
    if found.format.quantised() {
        return Err(Error::BadModel {
            path: tensors.path.clone(),
            expected: format!("{name} that is not quantised, since columns of blocks cannot be taken"),
            found: found.format.name().to_owned(),
            hint: "Choose a newer GGUF file of this model, which has attn_k_b and attn_v_b instead.",
        });
    }
    let row = found.bytes.len() / whole[0];
    for head in 0..heads {
        let start = found.bytes.start + head * (of.plain + of.value) * row;
        let (middle, end) = (start + of.plain * row, start + (of.plain + of.value) * row);
        let gathered = Some(Gathered { first: 0, run: 1, step: 1, lie: Lie::Columns });
        let (keys, values) = (vec![of.size, of.plain], vec![of.value, of.size]);
        let keys = Stored { shape: keys, bytes: start..middle, gathered, ..found.clone() };
        let values = Stored { shape: values, bytes: middle..end, ..found.clone() };
        tensors.stored.insert(full(layer, &format!("{}.weight", of_keys(head))), keys);
        tensors.stored.insert(full(layer, &format!("{}.weight", of_values(head))), values);
    }
    Ok(())
}
