//! Comparison of a file's tensors with those that the tables require.

use std::collections::BTreeSet;

use super::super::config::ModelConfig;
use super::super::tensors::Tensors;
use super::modules::{Module, modules};
use super::spec::{Expected, Place, TensorSpec};
use super::{assistant, eagle3, experts, latent, lilicorr, outer};
use crate::error::{Error, Result};

/// Checks that exactly the model's tensors exist, in the shapes that the configuration requires. An
/// unexpected tensor, such as a bias or an adapter, would mean a different computation.
///
/// # Errors
/// `Error::BadModel` naming the first tensor that is missing, unknown or of another shape.
pub(crate) fn check(tensors: &Tensors, config: &ModelConfig) -> Result<()> {
    let mut expected = 0;
    let modules = modules(config);
    assistant::check_order(tensors, config)?;
    for Expected { name, shape, optional } in expected_tensors(config, &modules) {
        if optional && !tensors.stored.contains_key(&name) {
            continue;
        }
        let stored = tensors.find(&name)?;
        if stored.shape != shape {
            return Err(tensors.misshapen(&name, &shape, &stored.shape));
        }
        expected += 1;
    }
    let is_other = |name: &&String| !outer::is_rotary(name);
    if tensors.stored.keys().filter(is_other).count() == expected {
        return Ok(());
    }
    let wanted: BTreeSet<String> = expected_tensors(config, &modules).map(|expected| expected.name).collect();
    let unknown = tensors.stored.keys().filter(is_other).find(|name| !wanted.contains(*name));
    Err(Error::BadModel {
        path: tensors.path.clone(),
        expected: format!("only the tensors of {}", config.family.name),
        found: unknown.map_or_else(String::new, |name| format!("{name} as well")),
        hint: "Choose another model.",
    })
}

fn expected_tensors(config: &ModelConfig, modules: &[&'static Module]) -> impl Iterator<Item = Expected> {
    let outer = Place { config, layer: 0 };
    let outer = modules.iter().flat_map(move |module| those_of(module.outer, outer, String::new()));
    let layers = (0..config.depth()).flat_map(move |layer| {
        let place = Place { config, layer };
        let specs =
            modules.iter().flat_map(move |module| those_of(module.layer, place, format!("blk.{layer}.")));
        let of_heads = latent::of_heads(place).into_iter();
        specs.chain(of_heads).chain(experts::expected(place))
    });
    outer.chain(eagle3::norms(config)).chain(lilicorr::expected(config)).chain(layers)
}

/// Tensors of a table that exist in `place`, with `prefix` before their names.
fn those_of(
    specs: &'static [TensorSpec],
    place: Place<'_>,
    prefix: String,
) -> impl Iterator<Item = Expected> {
    specs.iter().filter(move |spec| (spec.exists)(place)).map(move |spec| Expected {
        name: format!("{prefix}{}", spec.name),
        shape: (spec.shape)(place),
        optional: (spec.optional)(place),
    })
}
