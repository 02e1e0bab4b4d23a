//! Names and shapes of the tensors of latent attention. The matrices that expand latents to keys
//! and values get canonical names per head.

use super::config::{Latent, MixerSpec, ModelConfig};
use super::gathered::{Gathered, Lie};
use super::tensors::{Stored, Tensors};
use crate::error::{Error, Result};

/// Query matrix, `[heads * (plain + turned), hidden]`.
pub const QUERIES: &str = "attn_q";
/// Down projection of low-rank queries, `[queries, hidden]`.
pub const QUERIES_DOWN: &str = "attn_q_a";
/// Norm between the projections of low-rank queries, `[queries]`.
pub const QUERIES_NORM: &str = "attn_q_a_norm";
/// Up projection of low-rank queries, `[heads * (plain + turned), queries]`.
pub const QUERIES_UP: &str = "attn_q_b";
/// Down projection to the latent and the rotated part of the key, `[size + turned, hidden]`.
pub const LATENT: &str = "attn_kv_a_mqa";
/// Norm of the latent, `[size]`.
pub const LATENT_NORM: &str = "attn_kv_a_norm";
/// Key matrices of all heads in GGUF files, `[heads, size, plain]`.
const KEYS: &str = "attn_k_b";
/// Value matrices of all heads in GGUF files, `[heads, value, size]`.
const VALUES: &str = "attn_v_b";
/// Key and value matrices of all heads in Hugging Face files, `[heads * (plain + value), size]`.
const KEYS_AND_VALUES: &str = "attn_kv_b";
/// Output projection, `[hidden, heads * value]`.
pub const OUTPUT: &str = "attn_output";

const NAMES: [(&str, &str); 8] = [
    ("self_attn.q_proj", QUERIES),
    ("self_attn.q_a_proj", QUERIES_DOWN),
    ("self_attn.q_a_layernorm", QUERIES_NORM),
    ("self_attn.q_b_proj", QUERIES_UP),
    ("self_attn.kv_a_proj_with_mqa", LATENT),
    ("self_attn.kv_a_layernorm", LATENT_NORM),
    ("self_attn.kv_b_proj", KEYS_AND_VALUES),
    ("self_attn.o_proj", OUTPUT),
];

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

/// Returns the canonical name for a Hugging Face name in a layer's attention.
pub(super) fn canonical(hugging_face: &str) -> Option<String> {
    let name = hugging_face.strip_suffix(".weight")?;
    let found = NAMES.iter().find(|(other, _)| *other == name)?;
    Some(format!("{}.weight", found.1))
}

/// Names and shapes of the tensors of latent attention in `layer`; none for other mixers.
pub(super) fn expected(config: &ModelConfig, layer: usize) -> Vec<(String, Vec<usize>)> {
    let MixerSpec::Latent { sizes: of, .. } = config.layers[layer].mixer else { return Vec::new() };
    let (hidden, heads) = (config.hidden, config.heads);
    let all_queries = heads * of.query();
    let queries = match of.queries {
        None => vec![(QUERIES.to_owned(), vec![all_queries, hidden])],
        Some(queries) => vec![
            (QUERIES_DOWN.to_owned(), vec![queries, hidden]),
            (QUERIES_NORM.to_owned(), vec![queries]),
            (QUERIES_UP.to_owned(), vec![all_queries, queries]),
        ],
    };
    let others = [
        (LATENT.to_owned(), vec![of.size + of.turned, hidden]),
        (LATENT_NORM.to_owned(), vec![of.size]),
        (OUTPUT.to_owned(), vec![hidden, heads * of.value]),
    ];
    let of_head =
        |head| [(of_keys(head), vec![of.size, of.plain]), (of_values(head), vec![of.value, of.size])];
    let named = |(name, shape): (String, Vec<usize>)| (format!("{name}.weight"), shape);
    queries.into_iter().chain(others).chain((0..heads).flat_map(of_head)).map(named).collect()
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
    format!("blk.{layer}.{name}.weight")
}

/// Splits a stack of one matrix per head.
fn split_stack(
    tensors: &mut Tensors,
    heads: usize,
    layer: usize,
    stack: &str,
    [rows, columns]: [usize; 2],
) -> Result<()> {
    let Some(found) = tensors.stored.remove(&full(layer, stack)) else { return Ok(()) };
    let whole = [heads, rows, columns];
    if found.shape != whole {
        return Err(tensors.misshapen(&full(layer, stack), &whole, &found.shape));
    }
    let bytes = found.bytes.len() / heads;
    for head in 0..heads {
        let start = found.bytes.start + head * bytes;
        let one = Stored { shape: vec![rows, columns], bytes: start..start + bytes, ..found.clone() };
        tensors.stored.insert(full(layer, &format!("{stack}.{head}")), one);
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
        tensors.stored.insert(full(layer, &of_keys(head)), keys);
        tensors.stored.insert(full(layer, &of_values(head)), values);
    }
    Ok(())
}
