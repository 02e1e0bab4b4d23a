//! All families on candle tensors: the path for CUDA and Metal, and on the CPU what the
//! engine made for it is compared with. One pass over a token tree; weights stay quantised.

mod attention;
mod cache;
mod feed;
mod layer;
mod stack;
mod turns;

use std::ops::Range;
use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{Device, Result as Computed, Tensor};
use candle_nn::ops::rms_norm;

use self::feed::Feed;
use self::layer::{Layer, Sight};
use self::stack::{Arithmetic, Padding, Stack};
use self::turns::Turns;
use super::sketch::{Interest, Sketch};
use super::{Logits, Model, Peak, Row, admit};
use crate::error::Result;
use crate::model::{ModelConfig, ModelSource, Reach};
use crate::trace::TokenId;
use crate::tree::TokenTree;

/// A loaded model and its cache.
pub struct TensorModel {
    config: ModelConfig,
    device: Device,
    embedding: Arc<QTensor>, // [vocabulary, hidden]
    layers: Vec<Layer>,
    /// Of each kind of attention.
    turns: Vec<Turns>,
    output_norm: Tensor, // [hidden]
    output: Stack,       // [vocabulary, hidden]
    padding: Padding,
    cached: Vec<TokenId>,
    /// How many of `cached` the last pass added.
    last_pass: usize,
    interest: Interest,
    /// Tokens that rows have.
    vocabulary: usize,
    found: Found,
}

/// What the last pass gave, by what was of interest.
enum Found {
    Rows { logits: Vec<f32>, peaks: Vec<Peak> }, // [rows asked for, vocabulary]
    Sketches(Vec<Sketch>),
}

impl TensorModel {
    /// # Errors
    /// A missing or misshapen tensor, or `Error::Compute` when the device has no room.
    pub fn load(source: &ModelSource, device: &Device) -> Result<Self> {
        Self::computing(source, device, Arithmetic::Kernels)
    }

    /// In 32 bits throughout: what the rounding of others is measured against.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn exact(source: &ModelSource, device: &Device) -> Result<Self> {
        Self::computing(source, device, Arithmetic::Exact)
    }

    fn computing(source: &ModelSource, device: &Device, arithmetic: Arithmetic) -> Result<Self> {
        let config = source.config()?.clone();
        let weights = source.weights(device)?;
        let layers = (0..config.layers)
            .map(|index| Layer::load(&weights, &config, index, arithmetic))
            .collect::<Result<Vec<_>>>()?;
        let embedding = weights.matrix("token_embd.weight")?;
        let output =
            if config.tied_embeddings { Arc::clone(&embedding) } else { weights.matrix("output.weight")? };
        let turns = config.reaches.iter().map(|reach| Turns::new(reach.rotary.clone(), device));
        Ok(Self {
            output_norm: weights.vector("output_norm.weight")?,
            output: Stack::new(vec![output], arithmetic, device)?,
            embedding,
            turns: turns.collect::<Computed<_>>()?,
            padding: layers.first().map_or(Ok(Padding::NONE), |layer| layer.measure(&config, device))?,
            layers,
            vocabulary: config.vocabulary,
            config,
            device: device.clone(),
            cached: Vec::new(),
            last_pass: 0,
            interest: Interest::Peaks,
            found: Found::Sketches(Vec::new()),
        })
    }

    /// Hidden states of what is fed, `[nodes, hidden]`.
    fn run_layers(&mut self, feed: &Feed) -> Computed<Tensor> {
        let mut x = self.embedding.embedding(&feed.ids)?;
        if self.config.family.scaled_embeddings {
            x = (x * f64::from(self.config.embedding_scale()))?;
        }
        let kinds = self.config.reaches.iter().zip(&mut self.turns);
        let sight = |(reach, turns): (&Reach, &mut Turns)| -> Computed<Sight> {
            Ok(Sight { mask: feed.mask(reach.window)?, angles: turns.at(&feed.positions)? })
        };
        let kinds: Vec<Sight> = kinds.map(sight).collect::<Computed<_>>()?;
        let at = self.cached.len();
        for layer in &mut self.layers {
            x = layer.forward(&x, &self.config, at, &kinds[layer.kind], self.padding)?;
        }
        Ok(x)
    }

    /// What is of interest in the logits of the nodes in `rows`. `tokens` are fed.
    fn run_output(
        &self,
        hidden: &Tensor,
        rows: Range<usize>,
        tokens: &[TokenId],
        feed: &Feed,
    ) -> Computed<Found> {
        if rows.is_empty() {
            return Ok(Found::Sketches(Vec::new()));
        }
        let hidden = hidden.narrow(0, rows.start, rows.len())?.contiguous()?;
        let hidden = rms_norm(&hidden, &self.output_norm, self.config.norm_epsilon as f32)?;
        let logits = self.output.forward(&hidden, self.padding)?.narrow(1, 0, self.vocabulary)?;
        if self.interest != Interest::Everything {
            return Sketch::all(&logits, tokens, &feed.ids, self.interest).map(Found::Sketches);
        }
        let logits: Vec<f32> = logits.flatten_all()?.to_vec1()?;
        let peaks = logits.chunks(self.vocabulary).map(|logits| Row::of(logits).peak()).collect();
        Ok(Found::Rows { logits, peaks })
    }
}

impl Model for TensorModel {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn cached(&self) -> &[TokenId] {
        &self.cached
    }

    fn expect(&mut self, interest: Interest) {
        self.interest = interest;
    }

    fn narrow(&mut self, vocabulary: usize) {
        self.vocabulary = vocabulary.min(self.config.vocabulary);
    }

    fn wait(&self) -> Result<()> {
        Ok(self.device.synchronize()?)
    }

    fn last_pass(&self) -> usize {
        self.last_pass
    }

    fn pass(&mut self, tree: &TokenTree, first: usize, rows: Range<usize>) -> Result<Logits<'_>> {
        let before = self.cached.len() - first;
        admit(tree, &self.config, before)?;
        let tokens: Vec<TokenId> = tree.tokens().skip(first).collect();
        let feed = Feed::new(tree, first, before, &self.device)?;
        let hidden = self.run_layers(&feed)?;
        self.found = self.run_output(&hidden, rows.start - first..rows.end - first, &tokens, &feed)?;
        self.cached.extend(tokens);
        self.last_pass = tree.len();
        let vocabulary = self.vocabulary;
        Ok(match &self.found {
            Found::Rows { logits, peaks } => Logits::new(logits, vocabulary, vocabulary, peaks),
            Found::Sketches(sketches) => Logits::on_device(sketches),
        })
    }

    fn keep(&mut self, path: &[usize]) -> Result<()> {
        let start = self.cached.len() - self.last_pass;
        let moved = path.iter().enumerate().skip_while(|&(to, &from)| to == from);
        let moved: Vec<usize> = moved.map(|(_, &from)| from).collect();
        if !moved.is_empty() {
            let to = start + path.len() - moved.len();
            let from: Vec<u32> = moved.iter().map(|&node| (start + node) as u32).collect();
            let from = Tensor::new(from, &self.device)?;
            self.layers.iter_mut().try_for_each(|layer| layer.gather(&from, to))?;
        }
        let kept: Vec<TokenId> = path.iter().map(|&node| self.cached[start + node]).collect();
        self.cached.truncate(start);
        self.cached.extend(kept);
        self.last_pass = path.len();
        Ok(())
    }

    fn truncate(&mut self, length: usize) {
        self.cached.truncate(length);
        self.last_pass = 0;
    }
}
