//! Weights of feed-forward networks and mixtures of experts.

use foretoken_model::error::Result;
use foretoken_model::tables::experts::SELECTION_BIAS;
use foretoken_model::{FeedForwardSpec, ModelConfig, Weights};

use super::packing::{panels, vector};
use super::panels::Panels;

/// A layer's feed-forward part.
#[derive(Debug)]
pub enum FeedForward {
    Dense(Dense),
    Experts(Experts),
    DenseAndExperts(Box<DenseAndExperts>),
    WithSharedExpert(Box<WithSharedExpert>),
}

/// Routed experts and a shared expert that processes every token.
#[derive(Debug)]
pub struct WithSharedExpert {
    pub experts: Experts,
    pub dense: Dense,
    /// The shared expert's weight is the sigmoid of this; 1 without.
    pub gate: Option<Panels>, // [1, hidden]
}

/// A dense network and experts side by side; both outputs are normed and added (Gemma 4).
#[derive(Debug)]
pub struct DenseAndExperts {
    pub dense: Dense,
    pub dense_post_norm: Vec<f32>, // [hidden]
    pub experts: Experts,
    /// Norm of the router's input. `experts_norm` is that of the experts' input.
    pub router_norm: Vec<f32>, // [hidden]
    pub experts_norm: Vec<f32>,      // [hidden]
    pub experts_post_norm: Vec<f32>, // [hidden]
}

/// A gated feed-forward network: `down * (activation(gate * x) * (up * x))`.
#[derive(Debug)]
pub struct Dense {
    pub gate: Panels, // [intermediate, hidden]
    pub up: Panels,   // [intermediate, hidden]
    pub down: Panels, // [hidden, intermediate]
    /// Biases of the three products.
    pub biases: Option<DenseBiases>,
}

/// Biases of a dense network.
#[derive(Debug)]
pub struct DenseBiases {
    pub gate: Vec<f32>, // [intermediate]
    pub up: Vec<f32>,   // [intermediate]
    pub down: Vec<f32>, // [hidden]
}

/// Mixture of experts: each token is processed by the experts that the router ranks highest.
#[derive(Debug)]
pub struct Experts {
    pub router: Panels,                // [experts, hidden]
    pub router_bias: Option<Vec<f32>>, // [experts]
    pub experts: Vec<Dense>,
    /// Experts that process a row (top k).
    pub top_k: usize,
    /// Factor of each expert's weight.
    pub scales: Option<Vec<f32>>, // [experts]
    /// Added to the sigmoid of each score for selection only.
    pub selection_bias: Option<Vec<f32>>, // [experts]
}

impl FeedForward {
    pub fn load(weights: &Weights, config: &ModelConfig, index: usize) -> Result<Self> {
        let dense = || Dense::load(weights, index, "", false);
        Ok(match &config.layers[index].feed_forward {
            FeedForwardSpec::Dense { .. } => Self::Dense(dense()?),
            FeedForwardSpec::Experts(experts) => Self::Experts(Experts::load(weights, index, experts)?),
            FeedForwardSpec::BesideDense { experts, .. } => {
                let both = DenseAndExperts::load(weights, config.hidden, experts, index, dense()?)?;
                Self::DenseAndExperts(Box::new(both))
            }
            FeedForwardSpec::WithShared { experts, shared } => {
                let gate = || panels(weights, &format!("blk.{index}.ffn_gate_inp_shexp.weight"));
                Self::WithSharedExpert(Box::new(WithSharedExpert {
                    experts: Experts::load(weights, index, experts)?,
                    dense: Dense::load(weights, index, "_shexp", false)?,
                    gate: shared.gated.then(gate).transpose()?,
                }))
            }
        })
    }

    /// First matrix that the layer reads.
    pub fn first(&self) -> &Panels {
        match self {
            Self::Dense(dense) => &dense.gate,
            Self::Experts(experts) => &experts.router,
            Self::DenseAndExperts(both) => &both.dense.gate,
            Self::WithSharedExpert(shared) => &shared.dense.gate,
        }
    }

    /// Matrices that one row reads.
    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let (dense, experts, gate) = match self {
            Self::Dense(dense) => (Some(dense), None, None),
            Self::Experts(experts) => (None, Some(experts), None),
            Self::DenseAndExperts(both) => (Some(&both.dense), Some(&both.experts), None),
            Self::WithSharedExpert(shared) => {
                (Some(&shared.dense), Some(&shared.experts), shared.gate.as_ref())
            }
        };
        let router = experts.map(|experts| &experts.router);
        let chosen = experts.map_or(&[][..], |experts| &experts.experts[..experts.top_k]);
        let networks =
            dense.into_iter().chain(chosen).flat_map(|Dense { gate, up, down, .. }| [gate, up, down]);
        router.into_iter().chain(gate).chain(networks)
    }
}

impl DenseAndExperts {
    fn load(
        weights: &Weights,
        hidden: usize,
        experts: &foretoken_model::Experts,
        index: usize,
        dense: Dense,
    ) -> Result<Self> {
        let part = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        let by = 1.0 / (hidden as f32).sqrt();
        Ok(Self {
            dense,
            dense_post_norm: part("post_ffw_norm_1.weight")?,
            experts: Experts {
                scales: Some(part("ffn_down_exps.scale")?),
                ..Experts::load(weights, index, experts)?
            },
            router_norm: part("ffn_gate_inp.scale")?.into_iter().map(|scale| scale * by).collect(),
            experts_norm: part("pre_ffw_norm_2.weight")?,
            experts_post_norm: part("post_ffw_norm_2.weight")?,
        })
    }
}

impl Dense {
    /// Loads a dense network; `which` is the suffix of its tensors' names.
    pub fn load(weights: &Weights, index: usize, which: &str, has_biases: bool) -> Result<Self> {
        let panels = |part: &str| panels(weights, &format!("blk.{index}.{part}{which}.weight"));
        let bias = |part: &str| vector(weights, &format!("blk.{index}.{part}{which}.bias"));
        let biases = || {
            Result::Ok(DenseBiases { gate: bias("ffn_gate")?, up: bias("ffn_up")?, down: bias("ffn_down")? })
        };
        Ok(Self {
            gate: panels("ffn_gate")?,
            up: panels("ffn_up")?,
            down: panels("ffn_down")?,
            biases: has_biases.then(biases).transpose()?,
        })
    }
}

impl Experts {
    pub fn load(weights: &Weights, index: usize, config: &foretoken_model::Experts) -> Result<Self> {
        let expert = |expert| Dense::load(weights, index, &format!(".{expert}"), config.biases);
        let selection_bias = || vector(weights, &format!("blk.{index}.{SELECTION_BIAS}"));
        let router_bias = || vector(weights, &format!("blk.{index}.ffn_gate_inp.bias"));
        Ok(Self {
            router: panels(weights, &format!("blk.{index}.ffn_gate_inp.weight"))?,
            router_bias: config.biases.then(router_bias).transpose()?,
            experts: (0..config.count).map(expert).collect::<Result<_>>()?,
            top_k: config.top_k.min(config.count),
            scales: None,
            selection_bias: config.has_selection_bias().then(selection_bias).transpose()?,
        })
    }
}
