//! Grouped-query attention over the KV cache with an explicit mask, as matrix products.

use std::collections::HashMap;

use candle_core::{DType, Result, Tensor};
use candle_nn::ops::{rms_norm, sigmoid};
use foretoken_model::error::Result as Loaded;
use foretoken_model::{AttentionKind, HeadNorms, KeyHeads, ModelConfig};

use super::cache::Cache;
use super::origin::Origin;
use super::rotary::Angles;
use super::stack::{Padding, Stack};

pub struct Attention {
    /// Index of the layer's inputs: its kind of attention, or the layer itself in a block head.
    kind: usize,
    /// Key and value heads; none in a layer that shares another layer's KV cache.
    keys: KeyHeads,
    /// Queries, keys and values: `[(heads + 2 kv_heads) * head_size, hidden]`.
    projection: Stack,
    /// Norm of values, if the family has one.
    value_norm: Option<Tensor>, // [head_size]
    /// Bias of the projection, of the same height, if the family has one.
    bias: Option<Tensor>,
    /// Norms of queries and keys, per head `[head_size]` or over all heads, if the family has them.
    head_norms: Option<(Tensor, Tensor)>,
    /// Output gate, if the family has one: the output is multiplied by `sigmoid(gate * input)`.
    gate: Option<Stack>, // [heads * head_size, hidden]
    output: Stack,               // [hidden, heads * head_size]
    output_bias: Option<Tensor>, // [hidden]
    /// Attention sinks, if the family has them: one score per head without a value.
    sinks: Option<Tensor>, // [heads]
    cache: Cache,
}

/// Keys and values of the last caching layer, per kind of attention.
pub type SharedKv = HashMap<usize, (Tensor, Tensor)>;

/// Inputs of one kind of attention for the nodes of a pass.
pub struct AttentionInputs {
    /// Added to scores, `[nodes, cached + tree]`; `None` if every node attends to everything.
    pub mask: Option<Tensor>,
    pub angles: Angles,
}

impl Attention {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>, kind: usize) -> Loaded<Self> {
        let (config, device) = (origin.config, origin.weights.device());
        let AttentionKind { keys, parts, .. } = config.attention_kinds[kind];
        let caches = config.computes_kv(origin.index);
        let projections: &[&str] = match (caches, keys.are_values) {
            (true, false) => &["attn_q", "attn_k", "attn_v"],
            (true, true) => &["attn_q", "attn_k", "attn_k"],
            (false, _) => &["attn_q"],
        };
        let bias = || -> Loaded<Tensor> {
            let bias = |name: &&str| origin.vector(&format!("{name}.bias"));
            Ok(Tensor::cat(&projections.iter().map(bias).collect::<Loaded<Vec<_>>>()?, 0)?)
        };
        let norm = |part: &str, fixed: f32| -> Loaded<Tensor> {
            let name = format!("attn_{part}_norm.weight");
            if parts.head_norms == HeadNorms::Fixed && !origin.contains(&name) {
                return Ok(Tensor::full(fixed, keys.size, device)?);
            }
            origin.vector(&name)
        };
        let head_norms = || -> Loaded<(Tensor, Tensor)> {
            let queries = norm("q", config.query_norm)?;
            let keys = if caches { norm("k", 1.0)? } else { queries.clone() };
            Ok((queries, keys))
        };
        Ok(Self {
            // In a head that drafts blocks, each layer has inputs of its own.
            kind: if config.block().is_some() { origin.index } else { kind },
            keys: KeyHeads { count: if caches { keys.count } else { 0 }, ..keys },
            projection: origin.stack(projections)?,
            value_norm: parts.value_norm.then(|| Tensor::ones(keys.size, DType::F32, device)).transpose()?,
            bias: parts.biases.then(bias).transpose()?,
            head_norms: (parts.head_norms != HeadNorms::None).then(head_norms).transpose()?,
            gate: parts.gate.then(|| origin.stack(&["attn_gate"])).transpose()?,
            output: origin.stack(&["attn_output"])?,
            output_bias: parts.output_bias.then(|| origin.vector("attn_output.bias")).transpose()?,
            sinks: parts.sinks.then(|| origin.vector("attn_sinks.weight")).transpose()?,
            cache: Cache::new(keys.count, keys.size, if caches { config.context } else { 1 }, device)?,
        })
    }

    /// The largest matrix.
    pub fn largest(&self) -> &Stack {
        &self.projection
    }

    /// Maps `[nodes, hidden]` to `[nodes, hidden]`. Caches keys and values from position `at` on;
    /// `shared_kv` hands them to layers of the same kind that have none.
    pub fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        inputs: &[AttentionInputs],
        shared_kv: &mut SharedKv,
        padding: Padding,
    ) -> Result<Tensor> {
        let AttentionInputs { mask, angles } = &inputs[self.kind];
        let (queries, keys, values) = self.project(x, config, angles, padding)?;
        if self.keys.count > 0 {
            shared_kv.insert(self.kind, self.cache.write(at, &keys, &values)?);
        }
        let Some((keys, values)) = shared_kv.get(&self.kind) else {
            candle_core::bail!("no keys to attend to")
        };
        let (scale, sinks) = (config.query_scale, self.sinks.as_ref());
        let mut mixed = attend(&queries, keys, values, scale, mask.as_ref(), sinks)?;
        if let Some(gate) = &self.gate {
            mixed = (mixed * sigmoid(&gate.forward(x, padding)?)?)?;
        }
        let output = self.output.forward(&mixed, padding)?;
        self.output_bias.as_ref().map_or(Ok(output.clone()), |bias| output.broadcast_add(bias))
    }

    /// Caches keys and values of `[rows, hidden]` from position `at` on, without attending.
    pub fn cache_kv(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        angles: &Angles,
        padding: Padding,
    ) -> Result<()> {
        let (_, keys, values) = self.project(x, config, angles, padding)?;
        self.cache.write(at, &keys, &values).map(drop)
    }

    /// Queries, keys and values with RoPE, `[heads or kv_heads, nodes, head_size]`.
    fn project(
        &self,
        x: &Tensor,
        config: &ModelConfig,
        angles: &Angles,
        padding: Padding,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let (heads, KeyHeads { count: kv_heads, size: head_size, .. }) = (config.heads, self.keys);
        let mut all = self.projection.forward(x, padding)?;
        if let Some(bias) = &self.bias {
            all = all.broadcast_add(bias)?;
        }
        if config.attention_parts().head_norms == HeadNorms::Together {
            all = self.norm_together(&all, config)?;
        }
        let all = all.reshape((all.dim(0)?, heads + 2 * kv_heads, head_size))?;
        let all = all.transpose(0, 1)?.contiguous()?; // [heads + 2 kv_heads, nodes, head_size]
        let mut values = all.narrow(0, heads + kv_heads, kv_heads)?;
        if let Some(norm) = self.value_norm.as_ref().filter(|_| kv_heads > 0) {
            values = rms_norm(&values.contiguous()?, norm, config.norm_epsilon as f32)?;
        }
        let per_head =
            self.head_norms.as_ref().filter(|_| config.attention_parts().head_norms != HeadNorms::Together);
        let (queries, keys) = match per_head {
            None => {
                let rotated = angles.rotate(&all.narrow(0, 0, heads + kv_heads)?)?;
                (rotated.narrow(0, 0, heads)?, rotated.narrow(0, heads, kv_heads)?)
            }
            Some((of_queries, of_keys)) => {
                let rotated = |first, count, norm| -> Result<Tensor> {
                    let normed = rms_norm(&all.narrow(0, first, count)?, norm, config.norm_epsilon as f32)?;
                    angles.rotate(&normed)
                };
                let queries = rotated(0, heads, of_queries)?;
                let keys = if kv_heads > 0 { rotated(heads, kv_heads, of_keys)? } else { values.clone() };
                (queries, keys)
            }
        };
        Ok((angles.scale_queries(queries)?, keys, values))
    }

    /// Norms over all heads of a row together, `[nodes, (heads + 2 kv_heads) * head_size]`.
    fn norm_together(&self, all: &Tensor, config: &ModelConfig) -> Result<Tensor> {
        let Some((of_queries, of_keys)) = &self.head_norms else { return Ok(all.clone()) };
        let [queries, keys] = [config.heads, config.kv_heads()].map(|heads| heads * config.head_size());
        let normed = |first, width, norm| {
            rms_norm(&all.narrow(1, first, width)?.contiguous()?, norm, config.norm_epsilon as f32)
        };
        let (normed_queries, normed_keys) =
            (normed(0, queries, of_queries)?, normed(queries, keys, of_keys)?);
        Tensor::cat(&[normed_queries, normed_keys, all.narrow(1, queries + keys, keys)?], 1)
    }

    /// Cached keys and values of all heads at `positions` positions from `from` on, `[positions,
    /// kv_heads * head_size]` each.
    pub fn cached_kv(&self, from: usize, positions: usize) -> Result<[Tensor; 2]> {
        let (keys, values) = self.cache.read(from, positions)?;
        let rows = |half: Tensor| half.transpose(0, 1)?.contiguous()?.flatten_from(1);
        Ok([rows(keys)?, rows(values)?])
    }

    /// Moves entries at `from` (ascending positions) to the positions from `to` on.
    pub fn gather(&mut self, from: &Tensor, to: usize) -> Result<()> {
        self.cache.gather(from, to)
    }
}

/// softmax(scale q k^T) v for each head.
///
/// - `queries`: `[heads, rows, head_size]`
/// - `keys` and `values`: `[kv_heads, length, head_size]`, contiguous in the last two dimensions
/// - `mask`: `[rows, length]`; `None` if all rows attend to everything
/// - `sinks`: `[heads]`, scores without values
///
/// Head `h` reads key head `h / (heads / kv_heads)`. Returns `[rows, heads * head_size]`.
fn attend(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    scale: f32,
    mask: Option<&Tensor>,
    sinks: Option<&Tensor>,
) -> Result<Tensor> {
    let (heads, rows, head_size) = queries.dims3()?;
    let (kv_heads, length, _) = keys.dims3()?;
    let group = heads / kv_heads;
    // Heads of a group share their keys, so they become further rows of one product.
    let queries = queries.contiguous()?.reshape((kv_heads, group * rows, head_size))?;
    let mut scores = (queries.matmul(&keys.t()?)? * f64::from(scale))?;
    if let Some(mask) = mask {
        scores = scores.reshape((heads, rows, length))?.broadcast_add(mask)?;
    }
    let weights = match sinks {
        None => candle_nn::ops::softmax_last_dim(&scores)?,
        Some(sinks) => {
            let sinks = sinks.reshape((heads, 1, 1))?.broadcast_as((heads, rows, 1))?.contiguous()?;
            let scores = Tensor::cat(&[scores.reshape((heads, rows, length))?, sinks], 2)?.contiguous()?;
            candle_nn::ops::softmax_last_dim(&scores)?.narrow(2, 0, length)?.contiguous()?
        }
    };
    let mixed = weights.reshape((kv_heads, group * rows, length))?.matmul(values)?;
    mixed.reshape((heads, rows, head_size))?.transpose(0, 1)?.reshape((rows, heads * head_size))
}
