//! The modules that a model can have, each with its tables.

use super::super::config::{HeadKind, MixerSpec, ModelConfig};
use super::super::family::HeadFamily;
use super::spec::{Alias, TensorSpec};
use super::{
    assistant, attention, block_head, eagle3, experts, feed_forward, latent, layer, mtp, outer, recurrent,
};

/// Tables of a module's tensors.
pub(super) struct Module {
    /// Returns whether a model can have the module.
    belongs: fn(&ModelConfig) -> bool,
    pub outer: &'static [TensorSpec],
    pub layer: &'static [TensorSpec],
    /// Tensors in files that contain several of the tables' tensors, or others under their names.
    pub aliases: &'static [Alias],
}

impl Module {
    const NONE: Self = Self { belongs: |_| true, outer: &[], layer: &[], aliases: &[] };
}

const MODULES: [Module; 13] = [
    Module { outer: &outer::TENSORS, layer: &layer::TENSORS, ..Module::NONE },
    Module {
        belongs: |config| {
            config.layers.iter().any(|layer| matches!(layer.mixer, MixerSpec::Attention { .. }))
        },
        layer: &attention::TENSORS,
        aliases: &attention::ALIASES,
        ..Module::NONE
    },
    Module {
        belongs: |config| config.latent().is_some(),
        layer: &latent::TENSORS,
        aliases: &latent::ALIASES,
        ..Module::NONE
    },
    Module { belongs: recurrent::is_short_conv, layer: &recurrent::SHORT_CONV, ..Module::NONE },
    Module { belongs: recurrent::is_delta, layer: &recurrent::DELTA, ..Module::NONE },
    Module {
        belongs: recurrent::is_mamba,
        layer: &recurrent::MAMBA,
        aliases: &recurrent::ALIASES,
        ..Module::NONE
    },
    Module { layer: &feed_forward::TENSORS, aliases: &feed_forward::ALIASES, ..Module::NONE },
    Module { belongs: |config| config.family.experts.is_some(), layer: &experts::ROUTER, ..Module::NONE },
    Module { belongs: |config| head_is(config, HeadFamily::Eagle3), layer: &eagle3::TENSORS, ..Module::NONE },
    Module {
        belongs: |config| matches!(&config.draft_head, Some(head) if head.kind == HeadKind::Mtp),
        layer: &mtp::TENSORS,
        ..Module::NONE
    },
    Module {
        belongs: |config| head_is(config, HeadFamily::Eagle3) || head_is(config, HeadFamily::Block),
        outer: &eagle3::FUSION,
        ..Module::NONE
    },
    Module {
        belongs: |config| head_is(config, HeadFamily::Block),
        outer: &block_head::OUTER,
        layer: &block_head::LAYER,
        ..Module::NONE
    },
    Module {
        belongs: |config| head_is(config, HeadFamily::Assistant),
        outer: &assistant::TENSORS,
        ..Module::NONE
    },
];

pub(super) fn head_is(config: &ModelConfig, head: HeadFamily) -> bool {
    config.family.head == Some(head)
}

/// Returns the modules that a model can have. Looks at all layers, so that callers keep the list.
pub(super) fn modules(config: &ModelConfig) -> Vec<&'static Module> {
    MODULES.iter().filter(|module| (module.belongs)(config)).collect()
}
