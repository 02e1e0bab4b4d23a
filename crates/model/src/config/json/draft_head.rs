//! Reads the options of a draft head from a config.json.

use std::path::Path;

use serde_json::Value as Json;

use super::super::block_keys::Keys as BlockKeys;
use super::super::{BlockHead, DraftHead, Eagle3, FusedNorms, HeadKind, ModelConfig, bad, size};
use super::ConfigJson;
use crate::error::Result;

impl DraftHead {
    /// Reads the options of an EAGLE-3 head from a config.json whose part `block` describes the
    /// layer.
    ///
    /// # Errors
    /// `Error::BadModel` for unusable numbers.
    pub(crate) fn eagle3_from_json(path: &Path, json: &Json, block: &Json) -> Result<Self> {
        // Writers disagree on the object that contains these keys.
        let nested = [json, block, &json["eagle_config"]];
        let find = |key: &str| nested.iter().map(|json| &json[key]).find(|value| !value.is_null());
        let number = |key: &str| find(key).and_then(Json::as_u64);
        let flag = |key: &str| find(key).and_then(Json::as_bool).unwrap_or(false);
        let layers = ["eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids", "layer_ids"];
        let entering = layers.iter().find_map(|key| find(key)).map(|layers| {
            let numbers = layers.as_array().into_iter().flatten().map(Json::as_u64);
            let numbers: Option<Vec<u64>> = numbers.collect();
            Self::checked_layers(&numbers.unwrap_or_default(), Self::MOST_STATES).ok_or_else(|| {
                let most = Self::MOST_STATES;
                let expected = format!("1 to {most} layers of the target, ascending, in config.json");
                bad(path, expected, layers.to_string())
            })
        });
        let hidden = number("target_hidden_size").or_else(|| block["hidden_size"].as_u64()).unwrap_or(0);
        let fused_norms = FusedNorms::of(flag("fc_norm"), flag("norm_before_fc")).ok_or_else(|| {
            bad(path, "fc_norm or norm_before_fc in config.json".to_owned(), "both".to_owned())
        })?;
        Ok(Self {
            entering: entering.transpose()?,
            target_hidden: size(path, "target_hidden_size", hidden)?,
            tokens: size(path, "vocab_size", number("vocab_size").unwrap_or(0))?,
            kind: HeadKind::Eagle3(Eagle3 {
                fused_norms,
                normed_residual: flag("norm_before_residual"),
                normed_output: flag("norm_output"),
            }),
        })
    }

    /// Reads the options of a block head from a config.json. Its part `block` describes the layers
    /// and was read as `config`.
    ///
    /// # Errors
    /// `Error::BadModel` for unusable numbers.
    pub(crate) fn block_from_json(
        path: &Path,
        json: &Json,
        block: &Json,
        config: &ModelConfig,
    ) -> Result<Self> {
        let sliding = ConfigJson { path, json: block, family: config.family }.sliding(config.depth())?;
        let keys = &BlockKeys { path, config: json, block };
        let target_hidden = keys.find("target_hidden_size").and_then(Json::as_u64);
        Ok(Self {
            entering: Some(keys.entering()?),
            target_hidden: size(
                keys.path,
                "target_hidden_size",
                target_hidden.unwrap_or(config.hidden as u64),
            )?,
            tokens: config.vocabulary,
            kind: HeadKind::Block(BlockHead::from_json(keys, config.vocabulary, &sliding)?),
        })
    }
}
