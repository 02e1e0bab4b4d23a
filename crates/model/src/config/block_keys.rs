//! Reads the options of a block head: keys that both file formats share, and those of a
//! config.json. Rejects heads that would be computed wrongly.

use std::path::Path;

use serde_json::Value as Json;

use super::block_head::{BlockHead, Convolution, Selector};
use super::{DraftHead, MAX_LAYERS, bad, size};
use crate::error::Result;
use crate::token::TokenId;

/// Upper bound of the rows of a block, far above real heads.
const MOST_ROWS: u64 = 1 << 10;

impl BlockHead {
    /// Reads the keys that both formats share; `whole` returns the integer in a key. The mask token
    /// must be below `tokens`.
    pub(super) fn of(
        path: &Path,
        whole: &dyn Fn(&str) -> Result<Option<u64>>,
        mask: Option<u64>,
        tokens: usize,
        from_anchor: bool,
        causal: Vec<bool>,
    ) -> Result<Self> {
        let rows = whole("block_size")?.unwrap_or(0);
        if !(2..=MOST_ROWS).contains(&rows) {
            let expected = format!("a block_size from 2 to {MOST_ROWS}");
            return Err(bad(path, expected, rows.to_string()));
        }
        let Some(mask) = mask.filter(|&mask| mask < tokens as u64) else {
            let found = mask.map_or_else(|| "none".to_owned(), |mask| mask.to_string());
            return Err(bad(path, format!("a mask_token_id below {tokens}"), found));
        };
        let some = |key: &str| -> Result<Option<usize>> {
            let found = whole(key)?.filter(|&found| found > 0);
            found.map(|found| size(path, key, found)).transpose()
        };
        let convolution = match (some("conv_kernel_size")?, some("conv_group_size")?) {
            (Some(taps), Some(group)) => Some(Convolution { taps, group }),
            _ => None,
        };
        let selector = match (some("selector_rank")?, some("selector_top_k")?) {
            (Some(rank), Some(candidates)) => Some(Selector { rank, candidates }),
            _ => None,
        };
        Ok(Self {
            rows: rows as usize,
            mask: mask as TokenId,
            from_anchor,
            causal,
            convolution,
            selector,
            markov: some("markov_rank")?,
            confidence: None,
        })
    }

    /// Reads a config.json. `sliding` marks the layers with a window; `tokens` is the size of the
    /// input vocabulary.
    ///
    /// # Errors
    /// `Error::BadModel` for unusable values and for options that are not supported.
    pub(super) fn from_json(keys: &Keys<'_>, tokens: usize, sliding: &[bool]) -> Result<Self> {
        keys.refuse_what_is_not_run()?;
        let causal = match keys.causal() {
            Some(causal) => vec![causal; sliding.len()],
            None => sliding.to_vec(),
        };
        let from_anchor = keys.find("sample_from_anchor").and_then(Json::as_bool);
        let from_anchor = from_anchor.unwrap_or_else(|| keys.is_kind("dspark"));
        Self::of(keys.path, &|key| keys.whole(key), keys.whole("mask_token_id")?, tokens, from_anchor, causal)
    }
}

/// Reads the keys of a block head's config.json. Writers disagree on the object that contains them.
pub(super) struct Keys<'a> {
    pub path: &'a Path,
    pub config: &'a Json,
    /// The object that describes the head's layers.
    pub block: &'a Json,
}

impl Keys<'_> {
    /// Returns the integer in `key`, or its default.
    fn whole(&self, key: &str) -> Result<Option<u64>> {
        match self.find(key) {
            None => Ok(self.default(key)),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| {
                bad(self.path, format!("a whole number for {key} in config.json"), value.to_string())
            }),
        }
    }

    pub fn find(&self, key: &str) -> Option<&Json> {
        let nested = [&self.config["dflash_config"], self.config, self.block];
        nested.into_iter().map(|json| &json[key]).find(|value| !value.is_null())
    }

    /// Returns the layers of the target whose input states the head reads.
    pub fn entering(&self) -> Result<Vec<usize>> {
        let entering = ["eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids"];
        let (found, up) = match entering.into_iter().find_map(|key| self.find(key)) {
            Some(layers) => (Some(layers), 0),
            // These name layers whose output states are read.
            None => (self.find("target_layer_ids"), 1),
        };
        let layers = found.and_then(Json::as_array).into_iter().flatten();
        let layers: Option<Vec<u64>> = layers.map(|layer| layer.as_u64()?.checked_add(up)).collect();
        DraftHead::checked_layers(layers.as_deref().unwrap_or_default(), MAX_LAYERS).ok_or_else(|| {
            let found = found.map_or_else(|| "none".to_owned(), Json::to_string);
            bad(self.path, "target_layer_ids, ascending, in config.json".to_owned(), found)
        })
    }

    /// Default of a key that files of DFlash 2 and DSpark may leave out.
    fn default(&self, key: &str) -> Option<u64> {
        match key {
            "conv_kernel_size" if self.is_kind("dflash2") => Some(2),
            "conv_group_size" | "selector_top_k" if self.is_kind("dflash2") => Some(16),
            "selector_rank" if self.is_kind("dflash2") => Some(256),
            _ => None,
        }
    }

    /// Returns whether the file declares this kind of head.
    fn is_kind(&self, kind: &str) -> bool {
        let class = self.config["architectures"][0].as_str().unwrap_or_default().to_lowercase();
        self.config["speculators_model_type"] == kind || class.contains(kind)
    }

    /// Returns whether layers are causal; `None` if that depends on their windows.
    fn causal(&self) -> Option<bool> {
        let flag = |key: &str| self.find(key).and_then(Json::as_bool);
        // Speculators omits keys that have their default value.
        let exported = self.config["speculators_model_type"] == "dflash2";
        let windows_too = flag("sliding_window_non_causal").unwrap_or(exported);
        flag("is_causal").or_else(|| flag("causal")).or(windows_too.then_some(false))
    }

    fn refuse_what_is_not_run(&self) -> Result<()> {
        let refuse = |expected: &str, found: String| Err(bad(self.path, expected.to_owned(), found));
        for key in ["embedding_scale", "input_embedding_scale", "output_multiplier"] {
            if let Some(found) = self.find(key).filter(|scale| scale.as_f64() != Some(1.0)) {
                return refuse(&format!("{key} of 1 in a draft head"), found.to_string());
            }
        }
        if let Some(cap) = self.find("final_logit_softcapping") {
            return refuse("a draft head whose logits are not soft-capped", cap.to_string());
        }
        if let Some(kind) = self.find("markov_head_type").filter(|kind| *kind != "vanilla") {
            return refuse("a Markov head of the kind 'vanilla'", kind.to_string());
        }
        if self.path.join("mask_embedding.pt").exists() {
            let expected = "a draft head whose mask is one of the target's tokens";
            return refuse(expected, "one of its own, in mask_embedding.pt".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn read(mut config: Json) -> Result<(BlockHead, Vec<usize>)> {
        for (key, value) in [("block_size", json!(8)), ("mask_token_id", json!(5))] {
            config[key] = value;
        }
        let keys = Keys { path: Path::new("head"), config: &config, block: &config };
        Ok((BlockHead::from_json(&keys, 100, &[true, false])?, keys.entering()?))
    }

    #[test]
    fn layers_with_a_window_are_causal_unless_a_file_says_otherwise() {
        let by_window = vec![true, false];
        for (config, causal) in [
            (json!({}), by_window.clone()),
            (json!({ "is_causal": true }), vec![true; 2]),
            (json!({ "dflash_config": { "causal": false } }), vec![false; 2]),
            (json!({ "is_causal": false, "dflash_config": { "causal": true } }), vec![false; 2]),
            (json!({ "sliding_window_non_causal": true }), vec![false; 2]),
            (json!({ "architectures": ["DFlash2DraftModel"] }), by_window.clone()),
            (json!({ "speculators_model_type": "dflash2" }), vec![false; 2]),
            (json!({ "speculators_model_type": "dflash2", "sliding_window_non_causal": false }), by_window),
        ] {
            let mut config = config;
            config["target_layer_ids"] = json!([0, 4]);
            let (head, entering) = read(config.clone()).unwrap();
            assert_eq!((head.causal, entering), (causal, vec![1, 5]), "{config}");
        }
    }

    #[test]
    fn what_a_kind_of_head_leaves_out_is_known() {
        let kind = |name: &str| {
            let layers = json!({ "speculators_model_type": name, "aux_hidden_state_layer_ids": [2, 3] });
            let (head, entering) = read(layers).unwrap();
            assert_eq!(entering, [2, 3]);
            head
        };
        let (first, second, spark) = (kind("dflash"), kind("dflash2"), kind("dspark"));
        assert_eq!([&first, &second, &spark].map(BlockHead::longest), [7, 7, 8]);
        assert_eq!((first.convolution, first.selector), (None, None));
        assert_eq!(second.convolution, Some(Convolution { taps: 2, group: 16 }));
        assert_eq!(second.selector, Some(Selector { rank: 256, candidates: 16 }));
    }
}
