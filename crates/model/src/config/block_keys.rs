//! Reads the options of a block head: keys that both file formats share, and those of a
//! config.json. Rejects heads that would be computed wrongly.

use std::path::Path;

use serde_json::Value as Json;

use super::block_head::{BlockHead, Convolution, Correction, Domino, LiliCorr, Selector};
use super::{DraftHead, MAX_LAYERS, bad, layers, size};
use crate::error::{Error, Result};
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
        let correction = match (keys.is_domino(), keys.is_lilicorr()) {
            (true, false) => Correction::Domino(head.domino_of(keys)?),
            (false, true) => Correction::LiliCorr(head.lilicorr_of(keys)?),
            (false, false) => return Ok(head),
            (true, true) => return Err(keys.another_correction()),
        };
        if head.correction.is_some() {
            return Err(keys.another_correction());
        }
        Ok(Self { correction: Some(correction), ..head })
    }

    /// Reads the correction of a Domino head.
    fn domino_of(&self, keys: &Keys<'_>) -> Result<Domino> {
        let length = |key: &str| size(keys.path, key, keys.whole(key)?.unwrap_or(0));
        let plain = keys.whole("pure_draft_prefix_len")?;
        let Some(plain_prefix) = plain.filter(|&plain| plain < self.rows as u64) else {
            let found = plain.map_or_else(|| "none".to_owned(), |plain| plain.to_string());
            return Err(bad(keys.path, format!("a pure_draft_prefix_len below {}", self.rows), found));
        };
        Ok(Domino {
            gru: length("gru_hidden_dim")?,
            rank: length("emb_dim")?,
            plain_prefix: plain_prefix as usize,
        })
    }

    /// Reads the correction of a LiLiCorr head. No key has a default: two change no shape, so that
    /// a wrong one would go unseen.
    fn lilicorr_of(&self, keys: &Keys<'_>) -> Result<LiliCorr> {
        let length = |key: &str| size(keys.path, key, keys.whole(key)?.unwrap_or(0));
        let width = |found: Option<u64>| size(keys.path, "lilicorr_hidden_size", found.unwrap_or(0));
        // 0 stands for the width of the head.
        let hidden = match keys.whole("lilicorr_hidden_size")? {
            Some(0) => width(keys.whole("hidden_size")?)?,
            found => width(found)?,
        };
        let inner = hidden as f64 * keys.positive("lilicorr_mlp_ratio")?;
        let lilicorr = LiliCorr {
            hidden,
            layers: layers(keys.path, length("lilicorr_num_layers")?)?,
            heads: length("lilicorr_num_heads")?,
            intermediate: size(keys.path, "lilicorr_mlp_ratio", inner as u64)?,
            candidates: length("lilicorr_candidate_topk")?,
            factors: length("lilicorr_factor_dim")?,
            epsilon: keys.positive("lilicorr_vector_eps")? as f32,
            scale: keys.positive("lilicorr_logit_scale")? as f32,
        };
        let LiliCorr { heads, candidates, .. } = lilicorr;
        let nodes = candidates * (self.rows - 1);
        let refuse = |expected: String, found: String| Err(bad(keys.path, expected, found));
        if !hidden.is_multiple_of(heads) {
            return refuse(format!("a lilicorr_num_heads that divides {hidden}"), heads.to_string());
        }
        if candidates > LiliCorr::MOST_CANDIDATES {
            let most = LiliCorr::MOST_CANDIDATES;
            return refuse(format!("a lilicorr_candidate_topk of at most {most}"), candidates.to_string());
        }
        if nodes > LiliCorr::MOST_NODES {
            return refuse(
                format!("at most {} candidates in a block", LiliCorr::MOST_NODES),
                nodes.to_string(),
            );
        }
        if self.from_anchor {
            return refuse("sample_from_anchor of false with LiLiCorr".to_owned(), "true".to_owned());
        }
        Ok(lilicorr)
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

    /// Returns whether the file declares a LiLiCorr head.
    fn is_lilicorr(&self) -> bool {
        let is_key = |key: &String| key.starts_with("lilicorr_");
        let objects = [&self.config["dflash_config"], self.config];
        let mentioned =
            objects.iter().filter_map(|json| json.as_object()).any(|json| json.keys().any(is_key));
        let declared = self.find("projector_type").is_some_and(|kind| kind == "lilicorr");
        let switched_off = self.find("lilicorr_enabled").is_some_and(|enabled| enabled == false);
        !switched_off && (mentioned || declared || self.is_kind("lilicorr"))
    }

    /// Returns the positive number in a required key.
    fn positive(&self, key: &str) -> Result<f64> {
        let found = self.find(key);
        let number = found.and_then(Json::as_f64).filter(|number| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| {
            let found = found.map_or_else(|| "none".to_owned(), Json::to_string);
            bad(self.path, format!("a positive number for {key} in config.json"), found)
        })
    }

    fn another_correction(&self) -> Error {
        let expected = "a draft head with one correction of its logits".to_owned();
        bad(self.path, expected, "several".to_owned())
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
        assert_refused(
            &config,
            &[
                ("shift_label", json!(null), "shift_label, true or false"),
                ("sample_from_anchor", json!(false), "another sample_from_anchor"),
                ("pure_draft_prefix_len", json!(null), "a pure_draft_prefix_len below 8"),
                ("pure_draft_prefix_len", json!(8), "found 8"),
                ("gru_hidden_dim", json!(null), "a size in gru_hidden_dim"),
                ("gru_hidden_dim", json!(1_u64 << 40), "gru_hidden_dim of at most"),
                ("gru_hidden_dim", json!(-1), "a whole number for gru_hidden_dim"),
                ("emb_dim", json!(0), "a size in emb_dim"),
                ("markov_rank", json!(16), "with one correction"),
                ("lilicorr_candidate_topk", json!(16), "with one correction"),
            ],
        );
    }

    /// Asserts that each value of a key of `dflash_config` is rejected with a message.
    fn assert_refused(config: &Json, spoiled: &[(&str, Json, &str)]) {
        for (key, value, said) in spoiled {
            let mut config = config.clone();
            config["dflash_config"][*key] = value.clone();
            let error = read(config).unwrap_err().to_string();
            assert!(error.contains(said), "{key}: {error}");
        }
    }

    #[test]
    fn a_lilicorr_head_is_read_and_no_key_has_a_default() {
        let config = json!({
            "architectures": ["LiLiCorrDraftModel"], "hidden_size": 48,
            "dflash_config": {
                "target_layer_ids": [1, 9], "lilicorr_candidate_topk": 4, "lilicorr_hidden_size": 0,
                "lilicorr_num_layers": 2, "lilicorr_num_heads": 3, "lilicorr_mlp_ratio": 1.5,
                "lilicorr_factor_dim": 8, "lilicorr_vector_eps": 1e-6, "lilicorr_logit_scale": 10,
            },
        });
        let (head, _) = read(config.clone()).unwrap();
        let expected = LiliCorr {
            hidden: 48,
            layers: 2,
            heads: 3,
            intermediate: 72,
            candidates: 4,
            factors: 8,
            epsilon: 1e-6,
            scale: 10.0,
        };
        assert_eq!(head.lilicorr(), Some(expected));
        let mut off = config.clone();
        off["architectures"] = json!(["DFlashDraftModel"]);
        off["dflash_config"]["lilicorr_enabled"] = json!(false);
        assert_eq!(read(off).unwrap().0.correction, None);
        assert_refused(
            &config,
            &[
                ("lilicorr_vector_eps", json!(null), "a positive number for lilicorr_vector_eps"),
                ("lilicorr_logit_scale", json!(null), "a positive number for lilicorr_logit_scale"),
                ("lilicorr_logit_scale", json!(-1), "found -1"),
                ("lilicorr_mlp_ratio", json!(1e300), "lilicorr_mlp_ratio of at most"),
                ("lilicorr_hidden_size", json!(null), "a size in lilicorr_hidden_size"),
                ("lilicorr_num_layers", json!(1 << 20), "at most 4096 layers"),
                ("lilicorr_num_heads", json!(5), "that divides 48"),
                ("lilicorr_candidate_topk", json!(65), "of at most 64"),
                ("lilicorr_factor_dim", json!(0), "a size in lilicorr_factor_dim"),
                ("sample_from_anchor", json!(true), "sample_from_anchor of false"),
                ("markov_rank", json!(16), "with one correction"),
            ],
        );
    }
}
