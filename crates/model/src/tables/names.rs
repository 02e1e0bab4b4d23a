//! Canonical names of the tensors in Hugging Face files.

use super::super::config::ModelConfig;
use super::super::family::HeadFamily;
use super::modules::{head_is, modules};
use super::spec::{Place, TensorSpec, number};
use super::{eagle3, experts, mtp};

/// Canonical names of the tensors in a model's Hugging Face files.
pub(crate) struct Names<'a> {
    config: &'a ModelConfig,
    /// Configuration of the multi-token prediction block, if the model can have one.
    mtp: Option<ModelConfig>,
}

impl<'a> Names<'a> {
    pub fn new(config: &'a ModelConfig) -> Self {
        Self { config, mtp: config.mtp_head() }
    }

    /// Returns the canonical name for a Hugging Face name; `None` for a tensor of no module of the
    /// model.
    pub fn canonical(&self, hugging_face: &str) -> Option<String> {
        // Names of EAGLE-3 and block heads have no prefix.
        let prefix = match self.config.family.head {
            Some(HeadFamily::Eagle3 | HeadFamily::Block) => "",
            Some(HeadFamily::Assistant) | None => "model.",
        };
        let name = hugging_face.strip_prefix(prefix);
        let numbered = name.and_then(|name| name.strip_prefix("layers.")?.split_once('.'));
        if let Some((layer, rest)) = numbered {
            return self.in_layer(number(layer)?, rest);
        }
        let other = || eagle3::other(hugging_face, |rest| self.in_layer(0, rest));
        self.outer(hugging_face).or_else(|| other().filter(|_| head_is(self.config, HeadFamily::Eagle3)))
    }

    /// Returns the canonical name for a name in a multi-token prediction block, counted from the
    /// first block, or the name itself if it is unknown; `None` for tensors outside such blocks.
    pub fn canonical_of_mtp(&self, hugging_face: &str) -> Option<String> {
        let name = mtp::name_in_block(hugging_face)?;
        let known = mtp::around(name).or_else(|| {
            let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
            let layer = number(layer)?;
            Some(match rest_of_experts(rest) {
                Some(rest) => format!("blk.{layer}.{}", experts::canonical(rest, self.config.family)?),
                None => format!("blk.{layer}.{}", self.in_mtp(rest)?),
            })
        });
        Some(known.unwrap_or_else(|| hugging_face.to_owned()))
    }

    fn outer(&self, hugging_face: &str) -> Option<String> {
        let place = Place { config: self.config, layer: 0 };
        let found = find(|| modules(self.config).flat_map(|module| module.outer), hugging_face, Some(place));
        found.map(|spec| spec.name.to_owned())
    }

    /// Returns the canonical name of `rest`, a name after the prefix of `layer`. Layers after the
    /// last one are multi-token prediction blocks.
    fn in_layer(&self, layer: usize, rest: &str) -> Option<String> {
        if let Some(name) = rest_of_experts(rest) {
            return Some(format!("blk.{layer}.{}", experts::canonical(name, self.config.family)?));
        }
        let config = self.config;
        let name = match layer < config.depth() {
            true => name_in_layer(config, Some(Place { config, layer }), rest),
            false => self.in_mtp(rest).or_else(|| name_in_layer(config, None, rest)),
        };
        Some(format!("blk.{layer}.{}", name?))
    }

    /// Returns the canonical name of `rest` in a multi-token prediction block.
    fn in_mtp(&self, rest: &str) -> Option<&'static str> {
        let config = self.mtp.as_ref()?;
        name_in_layer(config, Some(Place { config, layer: 0 }), rest)
    }
}

/// Returns the part of a layer's Hugging Face name after `experts.`.
fn rest_of_experts(rest: &str) -> Option<&str> {
    const PREFIXES: [&str; 4] = ["", "mlp.", "feed_forward.", "block_sparse_moe."];
    let name = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)?.strip_prefix("experts."));
    name.or_else(|| experts::stack(rest))
}

/// Returns the canonical name of a name within a layer. Tensors of `place` come first, then those
/// of other layers.
fn name_in_layer(config: &ModelConfig, place: Option<Place<'_>>, rest: &str) -> Option<&'static str> {
    let aliases = || modules(config).flat_map(|module| module.aliases);
    let alias = aliases()
        .find(|alias| alias.hugging_face.contains(&rest) && place.is_some_and(|place| (alias.exists)(place)));
    let spec = || find(|| modules(config).flat_map(|module| module.layer), rest, place);
    alias.map(|alias| alias.name).or_else(|| spec().map(|spec| spec.name))
}

/// Returns the tensor with a Hugging Face name: one that exists in `place`, or else any.
fn find<I: Iterator<Item = &'static TensorSpec>>(
    specs: impl Fn() -> I,
    hugging_face: &str,
    place: Option<Place<'_>>,
) -> Option<&'static TensorSpec> {
    let named = |spec: &&TensorSpec| spec.hugging_face.contains(&hugging_face);
    let here = specs().filter(named).find(|spec| place.is_some_and(|place| (spec.exists)(place)));
    here.or_else(|| specs().find(named))
}
