//! The tensors of attention to latents: their names in both formats, and their shapes. The matrices that make keys and
//! values of latents have names of their own for every head.

use super::config::{Latent, ModelConfig};
use super::gathered::{Gathered, Lie};
use super::tensors::{Stored, Tensors};
use crate::error::{Error, Result};

/// The matrix of queries, or that of the vector that they are made of, its norm, and theirs then, `[heads * (plain +
/// turned), hidden]`, `[queries, hidden]`, `[queries]` and `[heads * (plain + turned), queries]`.
pub const QUERIES: &str = "attn_q";
pub const QUERIES_DOWN: &str = "attn_q_a";
pub const QUERIES_NORM: &str = "attn_q_a_norm";
pub const QUERIES_UP: &str = "attn_q_b";
/// Of the latent and of the part of the key that turns, `[size + turned, hidden]`, and the norm of the latent, `[size]`.
pub const LATENT: &str = "attn_kv_a_mqa";
pub const LATENT_NORM: &str = "attn_kv_a_norm";
/// Of all heads, `[heads, size, plain]` and `[heads, value, size]` in GGUF files.
const KEYS: &str = "attn_k_b";
const VALUES: &str = "attn_v_b";
/// Both of them as Hugging Face files have them, `[heads * (plain + value), size]`.
const KEYS_AND_VALUES: &str = "attn_kv_b";
/// `[hidden, heads * value]`
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

/// The name of a head's matrix that makes of the part of a query that does not turn what is compared with latents,
/// `[size, plain]`, without what is before and behind.
pub fn of_keys(head: usize) -> String {
    format!("{KEYS}.{head}")
}

/// The same of the one that makes values of latents, `[value, size]`.
pub fn of_values(head: usize) -> String {
    format!("{VALUES}.{head}")
}

/// The canonical name of a Hugging Face tensor of such attention, if it is one.
pub(super) fn canonical(hugging_face: &str) -> Option<String> {
    let name = hugging_face.strip_suffix(".weight")?;
    let found = NAMES.iter().find(|(other, _)| *other == name)?;
    Some(format!("{}.weight", found.1))
}

/// The names and shapes of those of a layer.
pub(super) fn expected(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let Some(of) = config.latent else { return Vec::new() };
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

/// Finds the matrices of every head in those that hold what all have.
///
/// # Errors
/// `Error::BadModel` for one that has another shape than its parts ask for.
pub(super) fn split(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    let Some(of) = config.latent else { return Ok(()) };
    for layer in 0..config.layers {
        split_stack(tensors, config.heads, layer, KEYS, [of.size, of.plain])?;
        split_stack(tensors, config.heads, layer, VALUES, [of.value, of.size])?;
        split_both(tensors, config.heads, layer, &of)?;
    }
    Ok(())
}

fn full(layer: usize, name: &str) -> String {
    format!("blk.{layer}.{name}.weight")
}

/// The matrices of all heads, one after the other.
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

/// Of every head the rows that make keys, which are columns of what we take, and then those that make values.
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
