//! The weights of what is done to each token by itself: feed-forward networks and experts.

use super::packing::{panels, vector};
use super::panels::Panels;
use crate::error::Result;
use crate::model::expert_tensors::CHOICE_BIAS;
use crate::model::{ModelConfig, SharedExpert, Weights};

/// What is done to each token by itself.
#[derive(Debug)]
pub enum FeedForward {
    Dense(Dense),
    Experts(Experts),
    Both(Box<Both>),
    Shared(Box<Shared>),
}

/// Experts, and one more that each token goes through.
#[derive(Debug)]
pub struct Shared {
    pub experts: Experts,
    pub dense: Dense,
    /// The share of the latter is the sigmoid of this, if it has one.
    pub gate: Option<Panels>, // [1, hidden]
}

/// A network that each token goes through, and experts beside it. What both give is normed and added.
#[derive(Debug)]
pub struct Both {
    pub dense: Dense,
    pub dense_post_norm: Vec<f32>, // [hidden]
    pub experts: Experts,
    /// Of what the router is given, and of what experts are.
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
    /// Added to what each of them gives.
    pub biases: Option<DenseBiases>,
}

/// Of the matrices of a feed-forward network.
#[derive(Debug)]
pub struct DenseBiases {
    pub gate: Vec<f32>, // [intermediate]
    pub up: Vec<f32>,   // [intermediate]
    pub down: Vec<f32>, // [hidden]
}

/// Networks of which each token goes through those that the router ranks highest.
#[derive(Debug)]
pub struct Experts {
    pub router: Panels,                // [experts, hidden]
    pub router_bias: Option<Vec<f32>>, // [experts]
    pub experts: Vec<Dense>,
    /// How many of them a row goes through.
    pub used: usize,
    /// Shares of each are multiplied with this.
    pub scales: Option<Vec<f32>>, // [experts]
    /// Added to the sigmoids of scores where experts are chosen.
    pub choice_bias: Option<Vec<f32>>, // [experts]
}

impl FeedForward {
    pub fn load(weights: &Weights, config: &ModelConfig, index: usize) -> Result<Self> {
        let dense = || Dense::load(weights, index, "", false);
        Ok(match config.experts_of(index) {
            None => Self::Dense(dense()?),
            Some(experts) if experts.beside => {
                Self::Both(Box::new(Both::load(weights, (config, experts), index, dense()?)?))
            }
            Some(experts) => match experts.shared {
                Some(kind) => Self::Shared(Box::new(Shared::load(weights, (kind, experts), index)?)),
                None => Self::Experts(Experts::load(weights, index, experts)?),
            },
        })
    }

    /// What is read first.
    pub fn first(&self) -> &Panels {
        match self {
            Self::Dense(dense) => &dense.gate,
            Self::Experts(experts) => &experts.router,
            Self::Both(both) => &both.dense.gate,
            Self::Shared(shared) => &shared.dense.gate,
        }
    }

    /// What a row reads.
    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        let (dense, experts, gate) = match self {
            Self::Dense(dense) => (Some(dense), None, None),
            Self::Experts(experts) => (None, Some(experts), None),
            Self::Both(both) => (Some(&both.dense), Some(&both.experts), None),
            Self::Shared(shared) => (Some(&shared.dense), Some(&shared.experts), shared.gate.as_ref()),
        };
        let router = experts.map(|experts| &experts.router);
        let chosen = experts.map_or(&[][..], |experts| &experts.experts[..experts.used]);
        let networks =
            dense.into_iter().chain(chosen).flat_map(|Dense { gate, up, down, .. }| [gate, up, down]);
        router.into_iter().chain(gate).chain(networks)
    }
}

impl Shared {
    fn load(
        weights: &Weights,
        (kind, experts): (SharedExpert, &crate::model::Experts),
        index: usize,
    ) -> Result<Self> {
        let gate = || panels(weights, &format!("blk.{index}.ffn_gate_inp_shexp.weight"));
        Ok(Self {
            experts: Experts::load(weights, index, experts)?,
            dense: Dense::load(weights, index, "_shexp", false)?,
            gate: (kind == SharedExpert::Gated).then(gate).transpose()?,
        })
    }
}

impl Both {
    fn load(
        weights: &Weights,
        (config, experts): (&ModelConfig, &crate::model::Experts),
        index: usize,
        dense: Dense,
    ) -> Result<Self> {
        let part = |part: &str| vector(weights, &format!("blk.{index}.{part}"));
        let by = 1.0 / (config.hidden as f32).sqrt();
        Ok(Self {
            dense,
            dense_post_norm: part("post_ffw_norm_1.weight")?,
            experts: Experts::load(weights, index, experts)?,
            router_norm: part("ffn_gate_inp.scale")?.into_iter().map(|scale| scale * by).collect(),
            experts_norm: part("pre_ffw_norm_2.weight")?,
            experts_post_norm: part("post_ffw_norm_2.weight")?,
        })
    }
}

impl Dense {
    /// `which` is put behind the names of its matrices.
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
    pub fn load(weights: &Weights, index: usize, config: &crate::model::Experts) -> Result<Self> {
        let expert = |expert| Dense::load(weights, index, &format!(".{expert}"), config.biases);
        let choice_bias = || vector(weights, &format!("blk.{index}.{CHOICE_BIAS}"));
        let router_bias = || vector(weights, &format!("blk.{index}.ffn_gate_inp.bias"));
        Ok(Self {
            router: panels(weights, &format!("blk.{index}.ffn_gate_inp.weight"))?,
            router_bias: config.biases.then(router_bias).transpose()?,
            experts: (0..config.count).map(expert).collect::<Result<_>>()?,
            used: config.used.min(config.count),
            scales: config
                .beside
                .then(|| vector(weights, &format!("blk.{index}.ffn_down_exps.scale")))
                .transpose()?,
            choice_bias: config.sigmoids.is_some_and(|of| of.biased).then(choice_bias).transpose()?,
        })
    }
}
