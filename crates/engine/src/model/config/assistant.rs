//! What a draft head has that attends to its target's keys and values: Gemma 4's assistants.

use std::path::Path;

use serde_json::Value as Json;

use super::super::gguf::Header;
use super::{DraftHead, FusedNorms, ModelConfig, Scoring, bad, size};
use crate::error::Result;

/// See the module. Its layers compute queries alone, all of them at the position after the text, whichever token is
/// guessed. What it gives for the token after is a state as wide as the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assistant {
    /// Of each of its kinds of attention the target's layer whose keys and values it sees; none as long as the target is
    /// not known.
    pub sees: Vec<usize>,
    /// Numbers of a token's keys and values in these layers.
    pub seen: usize,
    /// Its output matrix is looked at in part.
    pub clusters: Option<Clusters>,
}

/// Clusters of as many tokens each: those of the ones that a state is nearest to are scored, and the others get one score
/// less than the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clusters {
    pub count: usize,
    /// The ones that are looked at.
    pub nearest: usize,
}

impl Clusters {
    /// As many as are looked at where a file does not say.
    pub const USUAL: usize = 32;

    /// Tokens in each.
    pub fn size(&self, tokens: usize) -> usize {
        tokens / self.count
    }
}

impl ModelConfig {
    /// Of a draft head that attends to its target's keys and values.
    pub fn assistant(&self) -> Option<&Assistant> {
        self.draft_head.as_ref()?.assistant.as_ref()
    }

    /// Numbers of the embedding of a token, and of the state after the last layer as a draft head goes on with it.
    pub fn carried(&self) -> usize {
        let head = self.draft_head.as_ref().filter(|head| head.assistant.is_some());
        head.map_or(self.hidden, |head| head.target_hidden)
    }

    /// Makes it an assistant by what a GGUF header says of it, whose tensors tell of `clusters`.
    ///
    /// # Errors
    /// As [`Self::assist`].
    pub(in crate::model) fn assist_gguf(
        &mut self,
        header: &Header,
        clusters: Option<Clusters>,
    ) -> Result<()> {
        let key = format!("{}.embedding_length_out", self.family.name);
        let target_hidden = size(header.path(), &key, header.integer(&key)?.unwrap_or(0))?;
        self.assist(header.path(), target_hidden, clusters)
    }

    /// The same by a config.json.
    ///
    /// # Errors
    /// As [`Self::assist`].
    pub(in crate::model) fn assist_json(&mut self, path: &Path, json: &Json) -> Result<()> {
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

    /// Makes it an assistant of a target whose states have so many numbers: it multiplies the target's embeddings with
    /// what the target does, and bends no scores.
    ///
    /// # Errors
    /// `Error::BadModel` for numbers that no assistant has.
    fn assist(
        &mut self,
        path: &Path,
        target_hidden: usize,
        clusters: Option<Clusters>,
    ) -> Result<()> {
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
            fused_norms: FusedNorms::None,
            normed_residual: false,
            normed_output: true,
            block: None,
            mtp: false,
            assistant: Some(Assistant {
                sees: Vec::new(),
                seen: self.attention_kinds.iter().map(|kind| kind.keys.cached()).sum(),
                clusters,
            }),
        });
        Ok(())
    }
}
