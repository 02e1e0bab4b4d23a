//! Feed-forward part of a layer: a gated network, a mixture of experts, or both.

use std::collections::BTreeMap;

use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::{rms_norm, sigmoid, silu};
use foretoken_model::error::Result as Loaded;
use foretoken_model::tables::experts::SELECTION_BIAS;
use foretoken_model::{self, Activation, FeedForwardSpec, ModelConfig};

use super::origin::Origin;
use super::stack::{Padding, Stack};
use crate::routing::choose;

pub enum FeedForward {
    Dense(Dense),
    Experts(Experts),
    DenseAndExperts(Box<DenseAndExperts>),
    WithSharedExpert(Box<WithSharedExpert>),
}

/// Experts with a shared expert that processes every token. `gate`, if present, weights its output
/// by a sigmoid.
pub struct WithSharedExpert {
    experts: Experts,
    dense: Dense,
    gate: Option<Stack>, // [1, hidden]
}

/// Experts beside a dense network (Gemma 4). Both outputs are normed and added.
pub struct DenseAndExperts {
    dense: Dense,
    dense_post_norm: Tensor, // [hidden]
    experts: Experts,
    router_norm: Tensor,       // [hidden]
    experts_norm: Tensor,      // [hidden]
    experts_post_norm: Tensor, // [hidden]
}

/// `down * (activation(gate * x) * (up * x))`
pub struct Dense {
    gate_and_up: Stack, // [2 * intermediate, hidden]
    down: Stack,        // [hidden, intermediate]
    /// Biases of both matrices, if the family has them.
    biases: Option<[Tensor; 2]>,
}

/// Mixture of experts. The CPU selects each token's experts, so it waits for the device in every
/// such layer.
pub struct Experts {
    router: Stack,               // [experts, hidden]
    router_bias: Option<Tensor>, // [experts]
    experts: Vec<Dense>,
    /// Factor on the routing weights of each expert.
    scales: Option<Vec<f32>>, // [experts]
    /// Added to the sigmoids of scores for selection only.
    selection_bias: Option<Vec<f32>>, // [experts]
}

impl FeedForward {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>) -> Loaded<Self> {
        let dense = || Dense::load(origin, "", false);
        Ok(match &origin.config.layers[origin.index].feed_forward {
            FeedForwardSpec::Dense { .. } => Self::Dense(dense()?),
            FeedForwardSpec::Experts(experts) => Self::Experts(Experts::load(origin, experts)?),
            FeedForwardSpec::BesideDense { experts, .. } => {
                Self::DenseAndExperts(Box::new(DenseAndExperts::load(origin, experts, dense()?)?))
            }
            FeedForwardSpec::WithShared { experts, shared } => {
                Self::WithSharedExpert(Box::new(WithSharedExpert {
                    experts: Experts::load(origin, experts)?,
                    dense: Dense::load(origin, "_shexp", false)?,
                    gate: shared.gated.then(|| origin.stack(&["ffn_gate_inp_shexp"])).transpose()?,
                }))
            }
        })
    }

    /// The largest matrix, if one exceeds the mixer's.
    pub fn largest(&self) -> Option<&Stack> {
        match self {
            Self::Dense(dense) => Some(&dense.gate_and_up),
            Self::Experts(_) | Self::DenseAndExperts(_) | Self::WithSharedExpert(_) => None,
        }
    }

    /// Maps `x`, `[nodes, hidden]`, to `[nodes, hidden]`; `x` are the normed `states`.
    pub fn forward(
        &self,
        x: &Tensor,
        states: &Tensor,
        config: &ModelConfig,
        padding: Padding,
    ) -> Result<Tensor> {
        match (self, config.experts()) {
            (Self::Experts(experts), Some(sizes)) => experts.forward(x, x, config, sizes, padding),
            (Self::DenseAndExperts(both), Some(sizes)) => both.forward(x, states, config, sizes, padding),
            (Self::WithSharedExpert(shared), Some(sizes)) => {
                let mut output = shared.dense.forward(x, config.activation, padding)?;
                if let Some(gate) = &shared.gate {
                    output = output.broadcast_mul(&sigmoid(&gate.forward(x, padding)?)?)?;
                }
                shared.experts.forward(x, x, config, sizes, padding)? + output
            }
            (Self::Experts(_) | Self::DenseAndExperts(_) | Self::WithSharedExpert(_), None) => {
                candle_core::bail!("experts without settings")
            }
            (Self::Dense(dense), _) => dense.forward(x, config.activation, padding),
        }
    }
}

impl DenseAndExperts {
    fn load(origin: Origin<'_>, experts: &foretoken_model::Experts, dense: Dense) -> Loaded<Self> {
        let scale = 1.0 / (origin.config.hidden as f64).sqrt();
        Ok(Self {
            dense,
            dense_post_norm: origin.vector("post_ffw_norm_1.weight")?,
            experts: Experts {
                scales: Some(origin.vector("ffn_down_exps.scale")?.to_vec1()?),
                ..Experts::load(origin, experts)?
            },
            router_norm: (origin.vector("ffn_gate_inp.scale")? * scale)?,
            experts_norm: origin.vector("pre_ffw_norm_2.weight")?,
            experts_post_norm: origin.vector("post_ffw_norm_2.weight")?,
        })
    }

    /// Computes both parts; `x` are normed states for the dense network.
    fn forward(
        &self,
        x: &Tensor,
        states: &Tensor,
        config: &ModelConfig,
        sizes: &foretoken_model::Experts,
        padding: Padding,
    ) -> Result<Tensor> {
        let (epsilon, after) = (config.norm_epsilon as f32, config.post_norm_epsilon as f32);
        let states = states.contiguous()?;
        let dense = self.dense.forward(x, config.activation, padding)?;
        let router_input = rms_norm(&states, &self.router_norm, epsilon)?;
        let routed = rms_norm(&states, &self.experts_norm, epsilon)?;
        let routed = self.experts.forward(&router_input, &routed, config, sizes, padding)?;
        rms_norm(&dense, &self.dense_post_norm, after)? + rms_norm(&routed, &self.experts_post_norm, after)?
    }
}

impl Dense {
    /// Loads a network whose matrix names end with `suffix`.
    fn load(origin: Origin<'_>, suffix: &str, has_biases: bool) -> Loaded<Self> {
        let [gate, up, down] = ["ffn_gate", "ffn_up", "ffn_down"].map(|name| format!("{name}{suffix}"));
        let biases = || -> Loaded<[Tensor; 2]> {
            let [gate, up, down] = [&gate, &up, &down].map(|name| origin.vector(&format!("{name}.bias")));
            Ok([Tensor::cat(&[gate?, up?], 0)?, down?])
        };
        Ok(Self {
            biases: has_biases.then(biases).transpose()?,
            gate_and_up: origin.stack(&[&gate, &up])?,
            down: origin.stack(&[&down])?,
        })
    }

    fn forward(&self, x: &Tensor, activation: Activation, padding: Padding) -> Result<Tensor> {
        let mut both = self.gate_and_up.forward(x, padding)?;
        if let Some([bias, _]) = &self.biases {
            both = both.broadcast_add(bias)?;
        }
        let intermediate = both.dim(D::Minus1)? / 2;
        let (gate, up) = (both.narrow(1, 0, intermediate)?, both.narrow(1, intermediate, intermediate)?);
        let gated = match activation {
            Activation::Silu => silu(&gate)? * up,
            Activation::Gelu => gate.gelu()? * up,
            Activation::Clamped => {
                let gate = gate.minimum(7.0)?;
                (&gate * sigmoid(&(&gate * 1.702)?)?)? * (up.clamp(-7.0, 7.0)? + 1.0)?
            }
        };
        let output = self.down.forward(&gated?, padding)?;
        self.biases.as_ref().map_or(Ok(output.clone()), |[_, bias]| output.broadcast_add(bias))
    }
}

impl Experts {
    fn load(origin: Origin<'_>, config: &foretoken_model::Experts) -> Loaded<Self> {
        let expert = |expert| Dense::load(origin, &format!(".{expert}"), config.biases);
        let selection_bias = || Loaded::Ok(origin.vector(SELECTION_BIAS)?.to_vec1()?);
        Ok(Self {
            router: origin.stack(&["ffn_gate_inp"])?,
            router_bias: config.biases.then(|| origin.vector("ffn_gate_inp.bias")).transpose()?,
            experts: (0..config.count).map(expert).collect::<Loaded<_>>()?,
            scales: None,
            selection_bias: config.has_selection_bias().then(selection_bias).transpose()?,
        })
    }

    /// Computes the selected experts of `x`; the router scores `router_input`.
    fn forward(
        &self,
        router_input: &Tensor,
        x: &Tensor,
        config: &ModelConfig,
        sizes: &foretoken_model::Experts,
        padding: Padding,
    ) -> Result<Tensor> {
        let device = x.device();
        let mut scores = self.router.forward(router_input, padding)?;
        if let Some(bias) = &self.router_bias {
            scores = scores.broadcast_add(bias)?;
        }
        let scores: Vec<Vec<f32>> = scores.to_device(&Device::Cpu)?.to_vec2()?;
        // Rows that each expert processes, and the expert's weights for them.
        let mut chosen: BTreeMap<usize, (Vec<u32>, Vec<f32>)> = BTreeMap::new();
        for (row, scores) in scores.iter().enumerate() {
            for (expert, weight) in choose(scores, sizes, self.selection_bias.as_deref()) {
                let (rows, weights) = chosen.entry(expert).or_default();
                rows.push(row as u32);
                weights.push(weight * self.scales.as_ref().map_or(1.0, |scales| scales[expert]));
            }
        }
        let mut sum = x.zeros_like()?;
        for (expert, (rows, weights)) in chosen {
            let (weights, rows) = (Tensor::new(weights, device)?.unsqueeze(1)?, Tensor::new(rows, device)?);
            let input = x.index_select(&rows, 0)?;
            let output = self.experts[expert].forward(&input, config.activation, padding)?;
            sum = sum.index_add(&rows, &output.broadcast_mul(&weights)?, 0)?;
        }
        Ok(sum)
    }
}
