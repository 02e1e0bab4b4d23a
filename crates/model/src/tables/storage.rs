//! Differences between the tensors that files store and those of the tables: other names, and
//! matrices that contain several tensors.

use super::super::config::ModelConfig;
use super::super::gathered::{Gathered, Lie};
use super::super::tensors::{Stored, Tensors};
use super::modules::modules;
use super::outer::{EMBEDDING, OUTPUT, OUTPUT_NORM};
use super::spec::{Place, Storage};
use super::{attention, experts, feed_forward, latent, layer, recurrent};
use crate::error::Result;

/// Splits tensors that files store as one, and gives all tensors their canonical names. Tensors
/// that a file stores separately stay as they are.
///
/// # Errors
/// `Error::BadModel` for a matrix with an unexpected number of rows.
pub(crate) fn split(tensors: &mut Tensors, config: &ModelConfig) -> Result<()> {
    rename(tensors, config);
    if config.family.gate_in_query {
        split_gates(tensors, config)?;
    }
    experts::split(tensors, config)?;
    recurrent::flatten(tensors, config);
    latent::split(tensors, config)?;
    leave_out_shared(tensors, config);
    let aliases: Vec<_> = modules(config).iter().flat_map(|module| module.aliases).collect();
    for place in places(config) {
        for alias in &aliases {
            let Storage::Rows(parts) = alias.storage else { continue };
            if (alias.exists)(place) {
                let full = |name: &str| format!("blk.{}.{name}", place.layer);
                let parts: Vec<_> = parts(place).into_iter().map(|(name, rows)| (full(name), rows)).collect();
                tensors.split_rows(&full(alias.name), &parts, config.hidden)?;
            }
        }
    }
    Ok(())
}

fn places(config: &ModelConfig) -> impl Iterator<Item = Place<'_>> {
    (0..config.depth()).map(move |layer| Place { config, layer })
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
    for Place { layer, .. } in places(config).filter(|place| !place.spec().norms.post) {
        rename(tensors, &full(layer, layer::MIXER_POST_NORM), &full(layer, layer::FEED_FORWARD_NORM));
    }
    for layer in 0..config.depth() {
        if let Some(gate) = tensors
            .stored
            .get_mut(&full(layer, feed_forward::SHARED_GATE))
            .filter(|gate| gate.shape.len() == 1)
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
    for place in places(config).filter(|place| place.attends()) {
        let [query, gate] =
            [attention::QUERIES, attention::GATE].map(|name| format!("blk.{}.{name}", place.layer));
        let Some(both) = tensors.stored.remove(&query) else { continue };
        let (rows, run) = (attention::queries(place), place.key_heads().size);
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
    for place in places(config).filter(|place| place.attends() && !config.computes_kv(place.layer)) {
        for name in [attention::KEYS, attention::VALUES, attention::KEY_NORM] {
            tensors.stored.remove(&format!("blk.{}.{name}", place.layer));
        }
    }
}
