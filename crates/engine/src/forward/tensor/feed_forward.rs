//! What is done to each token by itself: a gated network, or some of many that a router chooses.

use std::collections::BTreeMap;

use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::{sigmoid, silu};

use super::origin::Origin;
use super::stack::{Padding, Stack};
use crate::error::Result as Loaded;
use crate::forward::routing::choose;
use crate::model::{self, Activation, ModelConfig};

pub enum FeedForward {
    Dense(Dense),
    Experts(Experts),
}

/// `down * (activation(gate * x) * (up * x))`
pub struct Dense {
    gate_and_up: Stack, // [2 * intermediate, hidden]
    down: Stack,        // [hidden, intermediate]
    /// Of these matrices, if the family has them.
    biases: Option<[Tensor; 2]>,
}

/// Networks of which each token goes through those that the router ranks highest. Which these are is for the
/// processor to say, which waits for the device in every such layer.
pub struct Experts {
    router: Stack, // [experts, hidden]
    router_bias: Option<Tensor>, // [experts]
    experts: Vec<Dense>,
}

impl FeedForward {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>) -> Loaded<Self> {
        let Some(experts) = &origin.config.experts else {
            return Dense::load(origin, "", false).map(Self::Dense);
        };
        let expert = |expert| Dense::load(origin, &format!(".{expert}"), experts.biases);
        Ok(Self::Experts(Experts {
            router: origin.stack(&["ffn_gate_inp"])?,
            router_bias: experts.biases.then(|| origin.vector("ffn_gate_inp.bias")).transpose()?,
            experts: (0..experts.count).map(expert).collect::<Loaded<_>>()?,
        }))
    }

    /// The largest of its matrices, if it is larger than others.
    pub fn largest(&self) -> Option<&Stack> {
        match self {
            Self::Dense(dense) => Some(&dense.gate_and_up),
            Self::Experts(_) => None,
        }
    }

    /// `[nodes, hidden]` to `[nodes, hidden]`
    pub fn forward(&self, x: &Tensor, config: &ModelConfig, padding: Padding) -> Result<Tensor> {
        match (self, &config.experts) {
            (Self::Experts(experts), Some(sizes)) => experts.forward(x, config, sizes, padding),
            (Self::Experts(_), None) => candle_core::bail!("experts without numbers"),
            (Self::Dense(dense), _) => dense.forward(x, config.family.activation, padding),
        }
    }
}

impl Dense {
    /// `which` is put behind the names of its matrices.
    fn load(origin: Origin<'_>, which: &str, has_biases: bool) -> Loaded<Self> {
        let [gate, up, down] = ["ffn_gate", "ffn_up", "ffn_down"].map(|name| format!("{name}{which}"));
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
        let given = self.down.forward(&gated?, padding)?;
        self.biases.as_ref().map_or(Ok(given.clone()), |[_, bias]| given.broadcast_add(bias))
    }
}

impl Experts {
    fn forward(
        &self,
        x: &Tensor,
        config: &ModelConfig,
        sizes: &model::Experts,
        padding: Padding,
    ) -> Result<Tensor> {
        let device = x.device();
        let mut scores = self.router.forward(x, padding)?;
        if let Some(bias) = &self.router_bias {
            scores = scores.broadcast_add(bias)?;
        }
        let scores: Vec<Vec<f32>> = scores.to_device(&Device::Cpu)?.to_vec2()?;
        // Of each expert the rows that go through it, and its shares of them.
        let mut chosen: BTreeMap<usize, (Vec<u32>, Vec<f32>)> = BTreeMap::new();
        for (row, scores) in scores.iter().enumerate() {
            for (expert, share) in choose(scores, sizes) {
                let (rows, shares) = chosen.entry(expert).or_default();
                rows.push(row as u32);
                shares.push(share);
            }
        }
        let mut sum = x.zeros_like()?;
        for (expert, (rows, shares)) in chosen {
            let (shares, rows) = (Tensor::new(shares, device)?.unsqueeze(1)?, Tensor::new(rows, device)?);
            let given = x.index_select(&rows, 0)?;
            let given = self.experts[expert].forward(&given, config.family.activation, padding)?;
            sum = sum.index_add(&rows, &given.broadcast_mul(&shares)?, 0)?;
        }
        Ok(sum)
    }
}
