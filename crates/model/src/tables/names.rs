//! Canonical names of the tensors in Hugging Face files.

use std::borrow::Cow;

use super::super::config::ModelConfig;
use super::super::family::HeadFamily;
use super::modules::{Module, head_is, modules};
use super::spec::{Place, TensorSpec, number};
use super::{eagle3, experts, lilicorr, mtp};

/// Canonical names of the tensors in a model's Hugging Face files.
pub(crate) struct Names<'a> {
    model: Tables<'a>,
    /// Tables of the multi-token prediction block, if the model can have one.
    mtp: Option<Tables<'a>>,
}

impl<'a> Names<'a> {
    pub fn new(config: &'a ModelConfig) -> Self {
        let mtp = config.mtp_head().map(|config| Tables::new(Cow::Owned(config)));
        Self { model: Tables::new(Cow::Borrowed(config)), mtp }
    }

    /// Returns the canonical name for a Hugging Face name; `None` for a tensor of no module of the
    /// model.
    pub fn canonical(&self, hugging_face: &str) -> Option<String> {
        let config = &*self.model.config;
        // Names of EAGLE-3 and block heads have no prefix.
        let prefix = match config.family.head {
            Some(HeadFamily::Eagle3 | HeadFamily::Block) => "",
            Some(HeadFamily::Assistant) | None => "model.",
        };
        let name = hugging_face.strip_prefix(prefix);
        let numbered = name.and_then(|name| name.strip_prefix("layers.")?.split_once('.'));
        if let Some((layer, rest)) = numbered {
            return self.in_layer(number(layer)?, rest);
        }
        let other = || eagle3::other(hugging_face, |rest| self.in_layer(0, rest));
        let outer = self.model.outer(hugging_face).map(str::to_owned);
        let of_eagle3 = || other().filter(|_| head_is(config, HeadFamily::Eagle3));
        let of_block = || lilicorr::canonical(hugging_face).filter(|_| head_is(config, HeadFamily::Block));
        outer.or_else(of_eagle3).or_else(of_block)
    }

    /// Returns the canonical name for a name in a multi-token prediction block, counted from the
    /// first block, or the name itself if it is unknown; `None` for tensors outside such blocks.
    pub fn canonical_of_mtp(&self, hugging_face: &str) -> Option<String> {
        let name = mtp::name_in_block(hugging_face)?;
        let known = mtp::around(name).or_else(|| {
            let (layer, rest) = name.strip_prefix("layers.")?.split_once('.')?;
            Some(format!("blk.{}.{}", number(layer)?, self.mtp.as_ref()?.in_layer(Some(0), rest)?))
        });
        Some(known.unwrap_or_else(|| hugging_face.to_owned()))
    }

    /// Returns the canonical name of `rest`, a name after the prefix of `layer`. Layers after the
    /// last one are multi-token prediction blocks.
    fn in_layer(&self, layer: usize, rest: &str) -> Option<String> {
        let name = match layer < self.model.config.depth() {
            true => self.model.in_layer(Some(layer), rest),
            false => {
                let in_mtp = self.mtp.as_ref().and_then(|mtp| mtp.in_layer(Some(0), rest));
                in_mtp.or_else(|| self.model.in_layer(None, rest))
            }
        };
        Some(format!("blk.{layer}.{}", name?))
    }
}

/// Tables of the modules that a model can have.
struct Tables<'a> {
    config: Cow<'a, ModelConfig>,
    modules: Vec<&'static Module>,
}

impl<'a> Tables<'a> {
    fn new(config: Cow<'a, ModelConfig>) -> Self {
        let modules = modules(&config);
        Self { config, modules }
    }

    fn outer(&self, hugging_face: &str) -> Option<&'static str> {
        let place = Place { config: &self.config, layer: 0 };
        let found = find(|| self.modules.iter().flat_map(|module| module.outer), hugging_face, Some(place));
        found.map(|spec| spec.name)
    }

    /// Returns the canonical name of a name within a layer. Tensors of `layer` come first, then
    /// those of other layers.
    fn in_layer(&self, layer: Option<usize>, rest: &str) -> Option<String> {
        if let Some(name) = rest_of_experts(rest) {
            return experts::canonical(name, self.config.family);
        }
        let place = layer.map(|layer| Place { config: &self.config, layer });
        let mut aliases = self.modules.iter().flat_map(|module| module.aliases);
        let alias = aliases.find(|alias| {
            alias.hugging_face.contains(&rest) && place.is_some_and(|place| (alias.exists)(place))
        });
        let spec = || find(|| self.modules.iter().flat_map(|module| module.layer), rest, place);
        alias.map(|alias| alias.name).or_else(|| spec().map(|spec| spec.name)).map(str::to_owned)
    }
}

/// Returns the part of a layer's Hugging Face name after `experts.`.
fn rest_of_experts(rest: &str) -> Option<&str> {
    const PREFIXES: [&str; 4] = ["", "mlp.", "feed_forward.", "block_sparse_moe."];
    let name = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)?.strip_prefix("experts."));
    name.or_else(|| experts::stack(rest))
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
