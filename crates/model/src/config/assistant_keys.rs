//! Reads the options of an assistant beside those of its layers.

use std::path::Path;

use serde_json::Value as Json;

use super::super::gguf::Header;
use super::{Assistant, Clusters, DraftHead, HeadKind, ModelConfig, Scoring, bad, size};
use crate::error::Result;

impl ModelConfig {
    /// Sets the assistant's options from a GGUF header; `clusters` comes from the tensors.
    ///
    /// # Errors
    /// As [`Self::assist`].
    pub(crate) fn assist_gguf(&mut self, header: &Header, clusters: Option<Clusters>) -> Result<()> {
        let key = format!("{}.embedding_length_out", self.family.name);
        let target_hidden = size(header.path(), &key, header.integer(&key)?.unwrap_or(0))?;
        self.assist(header.path(), target_hidden, clusters)
    }

    /// Sets the assistant's options from a config.json.
    ///
    /// # Errors
    /// As [`Self::assist`].
    pub(crate) fn assist_json(&mut self, path: &Path, json: &Json) -> Result<()> {
        let number = |key: &str, usual: usize| match &json[key] {
            Json::Null => Ok(usual),
            value => size(path, key, value.as_u64().unwrap_or(0)),
        };
        let clusters = match json["use_ordered_embeddings"] == true {
            false => None,
            true => Some(Clusters {
                count: number("num_centroids", 2048)?,
                nearest: number("centroid_intermediate_top_k", Clusters::USUAL)?,
            }),
        };
        let target_hidden = json["backbone_hidden_size"].as_u64().unwrap_or(0);
        self.assist(path, size(path, "backbone_hidden_size", target_hidden)?, clusters)
    }

    /// Sets the options of an assistant whose target has hidden states of width `target_hidden`.
    /// The embeddings are the target's and scaled like them; logits have no soft cap.
    ///
    /// # Errors
    /// `Error::BadModel` for values that no assistant has.
    fn assist(&mut self, path: &Path, target_hidden: usize, clusters: Option<Clusters>) -> Result<()> {
        let tokens = self.vocabulary;
        if let Some(Clusters { count, nearest }) = clusters {
            if !tokens.is_multiple_of(count) {
                let expected = format!("a number of clusters that divides {tokens} tokens");
                return Err(bad(path, expected, count.to_string()));
            }
            if nearest > count {
                return Err(bad(path, format!("up to {count} clusters to look at"), nearest.to_string()));
            }
        }
        if self.attention_kinds.iter().any(|kind| kind.window == Some(1)) {
            return Err(bad(path, "a window of at least two tokens".to_owned(), "1".to_owned()));
        }
        self.embedding_scale = self.family.embedding_scale(target_hidden);
        self.scoring = Scoring::PLAIN;
        self.draft_head = Some(DraftHead {
            entering: Some(Vec::new()),
            target_hidden,
            tokens,
            kind: HeadKind::Assistant(Assistant {
                sees: Vec::new(),
                seen: self.attention_kinds.iter().map(|kind| kind.keys.cached()).sum(),
                clusters,
            }),
        });
        Ok(())
    }
}
