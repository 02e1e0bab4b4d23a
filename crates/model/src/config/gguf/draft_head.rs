//! Reads the options of a draft head from a GGUF header.

use super::super::keys::{Keys, Source};
use super::super::{BlockHead, DraftHead, Eagle3, FusedNorms, HeadKind, MAX_LAYERS, ModelConfig};
use super::{MARKOV_BEFORE, Settings};
use crate::error::Result;
use crate::family::HeadFamily;

impl Settings<'_> {
    /// Options of a draft head; `None` for other families and for assistants.
    pub fn draft_head(&self, keys: Keys<'_>, config: &ModelConfig) -> Result<Option<DraftHead>> {
        match self.family.head {
            None | Some(HeadFamily::Assistant) => Ok(None),
            Some(HeadFamily::Block) => self.block_head(keys, config).map(Some),
            Some(HeadFamily::Eagle3) => self.eagle3(keys).map(Some),
        }
    }

    fn eagle3(&self, keys: Keys<'_>) -> Result<DraftHead> {
        let tokens = keys.size("vocab_size")?;
        let (entering, found) = self.target_layers()?;
        let entering = entering.unwrap_or_default();
        let entering = DraftHead::checked_layers(&entering, DraftHead::MOST_STATES);
        let entering = entering.ok_or_else(|| {
            let (most, key) = (DraftHead::MOST_STATES, keys.name("target_layers"));
            keys.bad(format!("1 to {most} layers, ascending, in {key}"), found)
        })?;
        let flag = |key| keys.boolean(key).map(|flag| flag == Some(true));
        let fused_norms = FusedNorms::of(flag("fc_norm")?, flag("norm_before_fc")?).ok_or_else(|| {
            let [each, whole] = ["fc_norm", "norm_before_fc"].map(|key| keys.name(key));
            keys.bad(format!("{each} or {whole}"), "both".to_owned())
        })?;
        Ok(DraftHead {
            entering: Some(entering),
            target_hidden: keys.size("target_hidden_size")?,
            tokens,
            kind: HeadKind::Eagle3(Eagle3 {
                fused_norms,
                normed_residual: flag("norm_before_residual")?,
                normed_output: flag("norm_output")?,
            }),
        })
    }

    /// Returns the layers of the target that the head reads, if all are numbers, and the value in
    /// the file for messages.
    fn target_layers(&self) -> Result<(Option<Vec<u64>>, String)> {
        let listed = self.header.list(&self.name("target_layers"))?.and_then(|layers| layers.integers());
        let found = listed.as_ref().map_or_else(|| "none".to_owned(), |layers| format!("{layers:?}"));
        let layers = listed.into_iter().flatten().map(|layer| u64::try_from(layer).ok()).collect();
        Ok((layers, found))
    }

    /// Options of a draft head that drafts blocks.
    fn block_head(&self, keys: Keys<'_>, config: &ModelConfig) -> Result<DraftHead> {
        let tokens = keys.size("vocab_size")?;
        for key in ["embedding_scale", "attention.value_scale", "logit_scale"] {
            if let Some(found) = keys.number(key)?.filter(|&scale| scale != 1.0 && scale != 0.0) {
                return Err(keys.bad(format!("{} of 1", keys.name(key)), found.to_string()));
            }
        }
        for key in ["attention.scale", "hidden_activation", "hyper_connection_count"] {
            let name = keys.name(key);
            if self.header.has(&name) {
                return Err(keys.bad(format!("no {name}"), "some".to_owned()));
            }
        }
        let (entering, found) = self.target_layers()?;
        let entering = entering.unwrap_or_default();
        let entering = DraftHead::checked_layers(&entering, MAX_LAYERS).ok_or_else(|| {
            let key = keys.name("target_layers");
            keys.bad(format!("layers, ascending, in {key}"), found)
        })?;
        let causal = match keys.boolean("attention.causal")? {
            Some(causal) => vec![causal; config.depth()],
            None => keys.windowed(config.depth())?,
        };
        let mask = self.header.integer("tokenizer.ggml.mask_token_id")?;
        // Other options follow from the tensors. DSpark heads sample from the anchor by default.
        let from_anchor = keys.boolean("sample_from_anchor")?;
        let from_anchor = from_anchor.unwrap_or_else(|| (self.has)(MARKOV_BEFORE));
        let whole = |key: &str| keys.integer(key);
        Ok(DraftHead {
            entering: Some(entering),
            target_hidden: keys.size_or("target_hidden_size", config.hidden)?,
            tokens,
            kind: HeadKind::Block(BlockHead::of(keys.path(), &whole, mask, tokens, from_anchor, causal)?),
        })
    }
}
