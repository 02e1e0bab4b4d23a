//! Multi-head latent attention (MLA). The cache holds the RoPE part of keys as keys and the
//! compressed latents as values.

use candle_core::{Result, Tensor};
use candle_nn::ops::{rms_norm, softmax_last_dim};
use foretoken_model::error::Result as Loaded;
use foretoken_model::tables::latent::{of_keys, of_values};
use foretoken_model::{Latent as Sizes, ModelConfig};

use super::attention::AttentionInputs;
use super::cache::Cache;
use super::origin::Origin;
use super::stack::{Padding, Stack};

pub struct Latent {
    sizes: Sizes,
    kind: usize,
    down: Option<(Stack, Tensor)>, // [queries, hidden], [queries]
    query: Stack,                  // [heads * (plain + turned), queries or hidden]
    latent: Stack,                 // [size + turned, hidden]
    norm: Tensor,                  // [size]
    /// Up-projections of all heads, dequantised: one product computes all heads.
    keys: Tensor, // [heads, plain, size]
    values: Tensor,                // [heads, size, value]
    output: Stack,                 // [hidden, heads * value]
    cache: Cache,
}

impl Latent {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>, sizes: Sizes, kind: usize) -> Loaded<Self> {
        let (config, device) = (origin.config, origin.weights.device());
        let of_heads = |part: fn(usize) -> String| -> Loaded<Tensor> {
            let matrix = |head| -> Loaded<Tensor> {
                let name = format!("blk.{}.{}.weight", origin.index, part(head));
                Ok(origin.weights.matrix(&name)?.dequantize(device)?.t()?.contiguous()?)
            };
            Ok(Tensor::stack(&(0..config.heads).map(matrix).collect::<Loaded<Vec<_>>>()?, 0)?)
        };
        let vector = |name: &str| origin.vector(&format!("{name}.weight"));
        let down = || Loaded::Ok((origin.stack(&["attn_q_a"])?, vector("attn_q_a_norm")?));
        Ok(Self {
            sizes,
            kind,
            down: sizes.queries.map(|_| down()).transpose()?,
            query: origin.stack(&[if sizes.queries.is_some() { "attn_q_b" } else { "attn_q" }])?,
            latent: origin.stack(&["attn_kv_a_mqa"])?,
            norm: vector("attn_kv_a_norm")?,
            keys: of_heads(of_keys)?,
            values: of_heads(of_values)?,
            output: origin.stack(&["attn_output"])?,
            cache: Cache::with_head_sizes(1, [sizes.turned, sizes.size], config.context, device)?,
        })
    }

    /// The largest matrix.
    pub fn largest(&self) -> &Stack {
        &self.query
    }

    /// Maps `[nodes, hidden]` to `[nodes, hidden]`; caches latents from position `at` on.
    pub fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        inputs: &[AttentionInputs],
        padding: Padding,
    ) -> Result<Tensor> {
        let AttentionInputs { mask, angles } = &inputs[self.kind];
        let (Sizes { size, turned, plain, value, .. }, heads) = (self.sizes, config.heads);
        let (rows, epsilon) = (x.dim(0)?, Sizes::EPSILON);
        let queries = match &self.down {
            None => self.query.forward(x, padding)?,
            Some((down, norm)) => {
                self.query.forward(&rms_norm(&down.forward(x, padding)?, norm, epsilon)?, padding)?
            }
        };
        let queries = queries.reshape((rows, heads, plain + turned))?.transpose(0, 1)?;
        let rope_queries = angles.rotate(&queries.narrow(2, plain, turned)?.contiguous()?)?;
        let latent_queries = queries.narrow(2, 0, plain)?.contiguous()?.matmul(&self.keys)?; // [heads, rows, size]

        let compressed = self.latent.forward(x, padding)?;
        let latents =
            rms_norm(&compressed.narrow(1, 0, size)?.contiguous()?, &self.norm, epsilon)?.unsqueeze(0)?;
        let keys = angles.rotate(&compressed.narrow(1, size, turned)?.contiguous()?.unsqueeze(0)?)?;
        let (keys, latents) = self.cache.write(at, &keys, &latents)?;
        let (keys, latents) = (keys.squeeze(0)?, latents.squeeze(0)?); // [length, turned], [length, size]
        let (length, all) = (keys.dim(0)?, heads * rows);

        let scores = (latent_queries.reshape((all, size))?.matmul(&latents.t()?)?
            + rope_queries.reshape((all, turned))?.matmul(&keys.t()?)?)?;
        let mut scores = (scores * f64::from(config.query_scale))?.reshape((heads, rows, length))?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        let mixed = softmax_last_dim(&scores)?.reshape((all, length))?.matmul(&latents)?;
        let mixed = mixed.reshape((heads, rows, size))?.matmul(&self.values)?; // [heads, rows, value]
        let mixed = mixed.transpose(0, 1)?.reshape((rows, heads * value))?;
        self.output.forward(&mixed, padding)
    }

    /// Moves entries at `from` (ascending positions) to the positions from `to` on.
    pub fn gather(&mut self, from: &Tensor, to: usize) -> Result<()> {
        self.cache.gather(from, to)
    }
}
