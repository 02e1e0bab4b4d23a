//! Parts of an assistant (Gemma 4's MTP drafter) beside its layers: the target's KV cache and
//! embedding, the projections before and after the layers, and the clusters of tokens that are
//! scored.

use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{D, Device, Result as Computed, Tensor};
use foretoken_model::error::Result;
use foretoken_model::tables::assistant::{CENTROIDS, POST_PROJECTION, PRE_PROJECTION};
use foretoken_model::tables::outer::{EMBEDDING, OUTPUT};
use foretoken_model::token::TokenId;
use foretoken_model::{self as model, KeyHeads, ModelConfig, StoredRows, Weights};

use super::attention::SharedKv;
use super::cache::Cache;
use super::stack::{Arithmetic, Padding, Stack};
use crate::Features;

pub struct Assistant {
    /// The target's embedding. A draft reads few of its rows, so they stay in the file.
    embedding: StoredRows, // [tokens, carried]
    pre_projection: Stack,  // [hidden, 2 * carried]
    post_projection: Stack, // [carried, hidden]
    clusters: Option<Clusters>,
    /// The target's keys and values, per kind of attention.
    caches: Vec<(KeyHeads, Cache)>,
}

struct Clusters {
    centroids: Stack, // [clusters, hidden]
    nearest: usize,
    /// Tokens per cluster.
    size: usize,
    order: Vec<TokenId>,
    output: Arc<QTensor>, // [vocabulary, hidden]
}

impl Assistant {
    /// # Errors
    /// Those of [`super::TensorModel::load`].
    pub fn load(
        weights: &Weights,
        config: &ModelConfig,
        assistant: &model::Assistant,
        arithmetic: Arithmetic,
    ) -> Result<Self> {
        let device = weights.device();
        let stack =
            |name| -> Result<Stack> { Ok(Stack::new(vec![weights.matrix(name)?], arithmetic, device)?) };
        let clusters = assistant.clusters.map(|sizes| -> Result<_> {
            Ok(Clusters {
                centroids: stack(CENTROIDS)?,
                nearest: sizes.nearest,
                size: sizes.size(config.vocabulary),
                order: weights.order(config.vocabulary)?,
                output: weights.matrix(OUTPUT)?,
            })
        });
        let cache = |keys: KeyHeads| -> Computed<_> {
            Ok((keys, Cache::new(keys.count, keys.size, config.context, device)?))
        };
        Ok(Self {
            embedding: weights.rows(EMBEDDING)?,
            pre_projection: stack(PRE_PROJECTION)?,
            post_projection: stack(POST_PROJECTION)?,
            clusters: clusters.transpose()?,
            caches: config.attention_kinds.iter().map(|kind| cache(kind.keys)).collect::<Computed<_>>()?,
        })
    }

    /// Input of the first layer, `[nodes, hidden]`: embeddings of `tokens`, concatenated with
    /// `states` and projected.
    ///
    /// # Errors
    /// Those of reading the file of the target's embedding, and of the device.
    pub fn input(
        &self,
        tokens: &[TokenId],
        states: Features<'_>,
        config: &ModelConfig,
        padding: Padding,
        device: &Device,
    ) -> Result<Tensor> {
        let mut input = Vec::new();
        for (row, &token) in tokens.iter().enumerate() {
            let embedding = self.embedding.row(token as usize)?;
            input.extend(embedding.into_iter().map(|number| number * config.embedding_scale));
            input.extend_from_slice(states.row(row));
        }
        let input = Tensor::from_vec(input, (tokens.len(), 2 * config.carried()), device)?;
        Ok(self.pre_projection.forward(&input, padding)?)
    }

    /// Caches keys and values from position `at` on. In `rows` they follow the target's states.
    pub fn cache_target_kv(&mut self, rows: Features<'_>, config: &ModelConfig, at: usize) -> Computed<()> {
        let mut from = config.carried();
        for (KeyHeads { count, size, .. }, cache) in &mut self.caches {
            let mut part = || {
                let numbers: Vec<f32> = (0..rows.len())
                    .flat_map(|row| &rows.row(row)[from..][..*count * *size])
                    .copied()
                    .collect();
                from += *count * *size;
                Tensor::from_vec(numbers, (rows.len(), *count, *size), cache.device())?.transpose(0, 1)
            };
            let (keys, values) = (part()?, part()?);
            cache.write(at, &keys, &values)?;
        }
        Ok(())
    }

    /// Keys and values of the first `length` positions, for layers without their own.
    pub fn shared_kv(&self, length: usize) -> Computed<SharedKv> {
        let kinds = self.caches.iter().enumerate();
        kinds.map(|(kind, (_, cache))| Ok((kind, cache.read(0, length)?))).collect()
    }

    /// Projects normed states `[nodes, hidden]` to the head inputs of the next pass, `[nodes,
    /// carried]`.
    pub fn output_states(&self, normed: &Tensor, padding: Padding) -> Computed<Tensor> {
        self.post_projection.forward(normed, padding)
    }

    /// Logits of normed states `[rows, hidden]`. Only tokens of the nearest clusters are scored;
    /// all others get the lowest of these logits minus 1. `None` if the assistant has no clusters.
    pub fn score(&self, normed: &Tensor, padding: Padding) -> Computed<Option<Tensor>> {
        let Some(clusters) = &self.clusters else { return Ok(None) };
        let vocabulary = clusters.order.len();
        let mut logits = Vec::new();
        let nearest = clusters.centroids.forward(normed, padding)?;
        let nearest = nearest.arg_sort_last_dim(false)?.narrow(D::Minus1, 0, clusters.nearest)?;
        for row in 0..normed.dim(0)? {
            let chosen: Vec<u32> = nearest.get(row)?.to_vec1()?;
            let of = |cluster: u32| &clusters.order[cluster as usize * clusters.size..][..clusters.size];
            let tokens: Vec<TokenId> = chosen.into_iter().flat_map(of).copied().collect();
            let rows = clusters.output.embedding(&Tensor::new(&tokens[..], normed.device())?)?;
            let scores: Vec<f32> = rows.matmul(&normed.narrow(0, row, 1)?.t()?)?.flatten_all()?.to_vec1()?;
            let lowest = scores.iter().copied().fold(f32::INFINITY, f32::min);
            let mut all = vec![lowest - 1.0; vocabulary];
            tokens.iter().zip(scores).for_each(|(&token, score)| all[token as usize] = score);
            logits.extend(all);
        }
        Tensor::from_vec(logits, (normed.dim(0)?, vocabulary), normed.device()).map(Some)
    }
}
