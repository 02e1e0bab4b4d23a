//! One layer: a token mixer and a feed-forward part, each added to the residual stream.

use candle_core::{Device, Result as Computed, Tensor};
use candle_nn::ops::rms_norm;
use foretoken_model::error::Result;
use foretoken_model::{MixerSpec, ModelConfig};

use super::attention::{Attention, AttentionInputs, SharedKv};
use super::convolution::Convolution;
use super::feed_forward::FeedForward;
use super::latent::Latent;
use super::memory::RecurrentPass;
use super::origin::Origin;
use super::per_layer::PerLayerInput;
use super::recurrent::Recurrent;
use super::rotary::Angles;
use super::stack::Padding;

/// One layer. Parts that the family does not have are `None`.
pub struct Layer {
    mixer_norm: Option<Tensor>, // [hidden]
    mixer: Mixer,
    /// Norm of the mixer's output.
    mixer_post_norm: Option<Tensor>,
    feed_forward_norm: Option<Tensor>,
    feed_forward: FeedForward,
    /// Norm of the feed-forward output.
    feed_forward_post_norm: Option<Tensor>,
    per_layer_input: Option<PerLayerInput>,
    /// Factor on the layer's output, if the family has one.
    scale: Option<Tensor>, // [1]
    /// Convolutions around the mixer and around the feed-forward part.
    convolutions: Option<[Convolution; 2]>,
}

/// Token mixer, with its cache.
enum Mixer {
    Attention(Box<Attention>),
    Latent(Box<Latent>),
    Recurrent(Box<Recurrent>),
}

/// Inputs of a layer besides its state.
pub struct LayerInputs<'a> {
    /// Input of the mixer, if it is not the normed state.
    pub fused: Option<Tensor>,
    /// Input from the per-layer embeddings.
    pub per_layer: Option<&'a Tensor>,
    /// Inputs of every kind of attention.
    pub attention: &'a [AttentionInputs],
    /// Inputs of recurrent layers.
    pub recurrent: Option<&'a RecurrentPass<'a>>,
}

impl Layer {
    /// # Errors
    /// A missing or misshapen tensor, or `Error::Compute` when the device has no room.
    pub fn load(origin: Origin<'_>) -> Result<Self> {
        let norm = |name: &str| origin.vector(&format!("{name}.weight"));
        let spec = &origin.config.layers[origin.index];
        let pre_norm = |name| spec.norms.pre.then(|| norm(name)).transpose();
        let post_norm = |name| spec.norms.post.then(|| norm(name)).transpose();
        let convolutions = origin.config.block().and_then(|block| block.convolution).map(|sizes| {
            let convolution = |part| Convolution::load(origin, part, sizes);
            Result::Ok([convolution("attn")?, convolution("ffn")?])
        });
        Ok(Self {
            mixer_norm: pre_norm("attn_norm")?,
            mixer: Mixer::load(origin)?,
            mixer_post_norm: post_norm("post_attention_norm")?,
            feed_forward_norm: pre_norm("ffn_norm")?,
            feed_forward: FeedForward::load(origin)?,
            feed_forward_post_norm: post_norm("post_ffw_norm")?,
            per_layer_input: PerLayerInput::load(origin)?,
            scale: spec.output_scale.then(|| norm("layer_output_scale")).transpose()?,
            convolutions: convolutions.transpose()?,
        })
    }

    /// Measures the padding for this layer's largest matrix, which stands for those of all layers.
    pub fn measure(&self, config: &ModelConfig, device: &Device) -> Computed<Padding> {
        let of_mixer = match &self.mixer {
            Mixer::Attention(attention) => attention.largest(),
            Mixer::Latent(latent) => latent.largest(),
            Mixer::Recurrent(recurrent) => recurrent.largest(),
        };
        let largest = self.feed_forward.largest().unwrap_or(of_mixer);
        Padding::measured(largest, config.hidden, device)
    }

    /// Maps `[nodes, hidden]` to `[nodes, hidden]` and caches the nodes from position `at` on.
    pub fn forward(
        &mut self,
        x: &Tensor,
        LayerInputs { fused, per_layer, attention: inputs, recurrent: recurrent_pass }: LayerInputs<'_>,
        shared_kv: &mut SharedKv,
        config: &ModelConfig,
        at: usize,
        padding: Padding,
    ) -> Computed<Tensor> {
        let (epsilon, after) = (config.norm_epsilon as f32, config.post_norm_epsilon as f32);
        let normed = fused.map_or_else(|| normalised(x.clone(), self.mixer_norm.as_ref(), epsilon), Ok)?;
        let mixer = &mut self.mixer;
        let [mixer_convolution, feed_forward_convolution] =
            self.convolutions.as_ref().map_or([None, None], |[a, b]| [Some(a), Some(b)]);
        let mixed =
            convolved(mixer_convolution, normed, padding, |normed| match (&mut *mixer, recurrent_pass) {
                (Mixer::Attention(attention), _) => {
                    attention.forward(normed, config, at, inputs, shared_kv, padding)
                }
                (Mixer::Latent(latent), _) => latent.forward(normed, config, at, inputs, padding),
                (Mixer::Recurrent(recurrent), Some(recurrent_pass)) => {
                    recurrent.forward(normed, config, recurrent_pass, padding)
                }
                (Mixer::Recurrent(_), None) => candle_core::bail!("a recurrent layer without a plan"),
            })?;
        let x = (x + normalised(mixed, self.mixer_post_norm.as_ref(), after)?)?;
        let normed = normalised(x.clone(), self.feed_forward_norm.as_ref(), epsilon)?;
        let feed_forward = &self.feed_forward;
        let output = convolved(feed_forward_convolution, normed, padding, |normed| {
            feed_forward.forward(normed, &x, config, padding)
        })?;
        let mut x = (&x + normalised(output, self.feed_forward_post_norm.as_ref(), after)?)?;
        if let Some((part, input)) = self.per_layer_input.as_ref().zip(per_layer) {
            x = (&x + part.forward(&x, input, config, padding)?)?;
        }
        self.scale.as_ref().map_or(Ok(x.clone()), |scale| x.broadcast_mul(scale))
    }

    /// Caches keys and values of `[rows, hidden]` from position `at` on, without computing outputs.
    pub fn cache_kv(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        at: usize,
        angles: &Angles,
        padding: Padding,
    ) -> Computed<()> {
        match &mut self.mixer {
            Mixer::Attention(attention) => attention.cache_kv(x, config, at, angles, padding),
            Mixer::Latent(_) | Mixer::Recurrent(_) => Ok(()),
        }
    }

    /// Attention's cached entries, as [`Attention::cached_kv`]; empty for other mixers.
    pub fn cached_kv(&self, from: usize, positions: usize) -> Computed<Vec<Tensor>> {
        match &self.mixer {
            Mixer::Attention(attention) => attention.cached_kv(from, positions).map(Vec::from),
            Mixer::Latent(_) | Mixer::Recurrent(_) => Ok(Vec::new()),
        }
    }

    /// Moves entries at `from` (ascending positions) to the positions from `to` on.
    pub fn gather(&mut self, from: &Tensor, to: usize) -> Computed<()> {
        match &mut self.mixer {
            Mixer::Attention(attention) => attention.gather(from, to),
            Mixer::Latent(latent) => latent.gather(from, to),
            // Recurrent layers have step logs, not positions.
            Mixer::Recurrent(_) => Ok(()),
        }
    }
}

impl Mixer {
    fn load(origin: Origin<'_>) -> Result<Self> {
        Ok(match &origin.config.layers[origin.index].mixer {
            MixerSpec::Attention { kind, .. } => Self::Attention(Box::new(Attention::load(origin, *kind)?)),
            MixerSpec::Latent { kind, sizes } => Self::Latent(Box::new(Latent::load(origin, *sizes, *kind)?)),
            MixerSpec::Recurrent(of) => Self::Recurrent(Box::new(Recurrent::load(origin, of)?)),
        })
    }
}

/// Applies `part` to rows, with the convolutions around it if there are any.
fn convolved(
    convolution: Option<&Convolution>,
    x: Tensor,
    padding: Padding,
    part: impl FnOnce(&Tensor) -> Computed<Tensor>,
) -> Computed<Tensor> {
    let Some(convolution) = convolution else { return part(&x) };
    let (x, dynamic) = convolution.begin(&x, padding)?;
    convolution.finish(&part(&x)?, &dynamic)
}

fn normalised(x: Tensor, norm: Option<&Tensor>, epsilon: f32) -> Computed<Tensor> {
    norm.map_or(Ok(x.clone()), |norm| rms_norm(&x, norm, epsilon))
}
