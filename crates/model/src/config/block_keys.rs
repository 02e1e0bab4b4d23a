//! Reads the options of a block head: keys that both file formats share, and those of a
//! config.json. Rejects heads that would be computed wrongly.

use std::path::Path;

use serde_json::Value as Json;

use super::block_head::{BlockHead, Convolution, Correction, Domino, Selector};
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
            correction: correction(path, some("markov_rank")?, selector)?,
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
        let from_anchor = match keys.is_domino() {
            true => keys.shifts_labels()?,
            false => {
                let from_anchor = keys.find("sample_from_anchor").and_then(Json::as_bool);
                from_anchor.unwrap_or_else(|| keys.is_kind("dspark"))
            }
        };
        let mask = keys.whole("mask_token_id")?;
        let head = Self::of(keys.path, &|key| keys.whole(key), mask, tokens, from_anchor, causal)?;
        if keys.is_domino() { head.with_domino(keys) } else { Ok(head) }
    }

    /// Adds the correction of a Domino head.
    fn with_domino(self, keys: &Keys<'_>) -> Result<Self> {
        if self.correction.is_some() {
            let expected = "a Domino head without another correction".to_owned();
            return Err(bad(keys.path, expected, "a selector or a Markov head as well".to_owned()));
        }
        let length = |key: &str| size(keys.path, key, keys.whole(key)?.unwrap_or(0));
        let plain = keys.whole("pure_draft_prefix_len")?;
        let Some(plain_prefix) = plain.filter(|&plain| plain < self.rows as u64) else {
            let found = plain.map_or_else(|| "none".to_owned(), |plain| plain.to_string());
            return Err(bad(keys.path, format!("a pure_draft_prefix_len below {}", self.rows), found));
        };
        let domino = Domino {
            gru: length("gru_hidden_dim")?,
            rank: length("emb_dim")?,
            plain_prefix: plain_prefix as usize,
        };
        Ok(Self { correction: Some(Correction::Domino(domino)), ..self })
    }
}

/// Returns the correction with these sizes; a head has at most one.
fn correction(path: &Path, markov: Option<usize>, selector: Option<Selector>) -> Result<Option<Correction>> {
    match (markov, selector) {
        (Some(_), Some(_)) => Err(bad(path, "a selector or a Markov head".to_owned(), "both".to_owned())),
        (Some(rank), None) => Ok(Some(Correction::Markov { rank })),
        (None, selector) => Ok(selector.map(Correction::Selector)),
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

    /// Returns whether the file declares a Domino head.
    fn is_domino(&self) -> bool {
        self.find("projector_type").is_some_and(|kind| kind == "domino") || self.is_kind("domino")
    }

    /// Returns whether each row of a Domino head predicts the next token. Writers have different
    /// defaults, so the key is required.
    fn shifts_labels(&self) -> Result<bool> {
        let flag = |key: &str| self.find(key).and_then(Json::as_bool);
        let shifts = flag("shift_label");
        let stated = flag("sample_from_anchor");
        shifts.filter(|&shifts| stated.is_none_or(|stated| stated == shifts)).ok_or_else(|| {
            let found = if shifts.is_some() { "another sample_from_anchor" } else { "none" };
            bad(self.path, "shift_label, true or false, in config.json".to_owned(), found.to_owned())
        })
    }

    /// Returns whether layers are causal; `None` if that depends on their windows.
    fn causal(&self) -> Option<bool> {
        let flag = |key: &str| self.find(key).and_then(Json::as_bool);
        // Speculators omits keys that have their default value.
        let exported = self.config["speculators_model_type"] == "dflash2";
        // Domino heads are trained so that windows reach to both sides.
        let windows_too = flag("sliding_window_non_causal").unwrap_or(exported || self.is_domino());
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
        assert_eq!((first.convolution, first.correction), (None, None));
        assert_eq!(second.convolution, Some(Convolution { taps: 2, group: 16 }));
        assert_eq!(second.selector(), Some(Selector { rank: 256, candidates: 16 }));
    }

    #[test]
    fn a_domino_head_is_read_as_its_authors_write_it() {
        // The keys of Huang2020/Qwen3-8B-Domino-b16.
        let config = json!({
            "architectures": ["DominoDraftModel"], "emb_dim": 256,
            "dflash_config": {
                "target_layer_ids": [1, 9], "projector_type": "domino", "pure_draft_prefix_len": 1,
                "gru_hidden_dim": 1024, "shift_label": true,
            },
        });
        let (head, _) = read(config.clone()).unwrap();
        assert_eq!(head.domino(), Some(Domino { gru: 1024, rank: 256, plain_prefix: 1 }));
        assert_eq!((head.longest(), head.causal), (8, vec![false; 2]));
        for (key, value, said) in [
            ("shift_label", json!(null), "shift_label, true or false"),
            ("sample_from_anchor", json!(false), "another sample_from_anchor"),
            ("pure_draft_prefix_len", json!(null), "a pure_draft_prefix_len below 8"),
            ("pure_draft_prefix_len", json!(8), "found 8"),
            ("gru_hidden_dim", json!(null), "a size in gru_hidden_dim"),
            ("gru_hidden_dim", json!(1_u64 << 40), "gru_hidden_dim of at most"),
            ("gru_hidden_dim", json!(-1), "a whole number for gru_hidden_dim"),
            ("emb_dim", json!(0), "a size in emb_dim"),
            ("markov_rank", json!(16), "without another correction"),
        ] {
            let mut config = config.clone();
            config["dflash_config"][key] = value;
            let error = read(config).unwrap_err().to_string();
            assert!(error.contains(said), "{key}: {error}");
        }
    }
}
