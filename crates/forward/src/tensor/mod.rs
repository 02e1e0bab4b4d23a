//! All model families on candle tensors: the engine for CUDA and Metal, and the reference for the
//! CPU engine. A pass runs over a token tree; weights stay quantised.

mod assistant;
mod attention;
mod block_head;
mod cache;
mod convolution;
mod delta;
mod domino;
mod eagle3;
mod feed;
mod feed_forward;
mod head;
mod latent;
mod layer;
mod mamba;
mod memory;
mod mtp;
mod origin;
mod per_layer;
mod recurrent;
mod rotary;
mod row;
mod sketch;
mod stack;

use std::ops::Range;
use std::sync::Arc;

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Result as Computed, Tensor};
use candle_nn::ops::rms_norm;
use foretoken_model::error::Result;
use foretoken_model::tables::outer::OUTPUT;
use foretoken_model::token::TokenId;
use foretoken_model::{AttentionKind, ModelConfig, ModelSource, Scoring};

use self::attention::{AttentionInputs, SharedKv};
use self::block_head::BlockHead;
use self::feed::Feed;
use self::head::Head;
use self::layer::{Layer, LayerInputs};
use self::memory::RecurrentPass;
use self::origin::Origin;
use self::per_layer::PerLayerInputs;
use self::rotary::RotaryTable;
use self::stack::{Arithmetic, Padding, Stack};
use super::sketch::Sketch;
use super::{BlockState, Features, HeadInput, LogitSubset, Logits, Peak, Row, Taps, Want};
use crate::cached::{Cached, Executor, Nodes};
use crate::lilicorr::{Block, candidates};
use crate::pair_scores::PairScores;

/// A model on tensors and its cache.
pub type TensorModel = Cached<TensorExecutor>;

/// Runs passes on tensors.
pub struct TensorExecutor {
    config: ModelConfig,
    device: Device,
    /// `None` for an assistant, which reads its target's embedding.
    embedding: Option<Arc<QTensor>>, // [vocabulary, hidden]
    per_layer: Option<PerLayerInputs>,
    /// `None` for models that run by themselves.
    head: Option<Head>,
    layers: Vec<Layer>,
    /// RoPE tables, per kind of attention.
    rotary: Vec<RotaryTable>,
    output_norm: Tensor, // [hidden]
    output: Stack,       // [vocabulary, hidden]
    padding: Padding,
    scores: Scores,
    features: Vec<f32>, // [nodes, tapped]
    /// Numbers per node of the last pass's features.
    tapped: usize,
    /// Normed states of the scored rows, `[rows, hidden]`, in a head that drafts blocks.
    scored_states: Option<Tensor>,
    /// Scores of one of those rows after a token.
    after: Vec<f32>,
}

/// Maximum number of checkpoints of recurrent layers.
const MAX_CHECKPOINTS: usize = 4;

/// Scores of the last pass, whole or as sketches.
enum Scores {
    /// `[requested rows, requested vocabulary]`
    Rows {
        logits: Vec<f32>,
        vocabulary: usize,
        peaks: Vec<Peak>,
    },
    Sketches(Vec<Sketch>),
}

impl TensorModel {
    /// # Errors
    /// A missing or misshapen tensor, or `Error::Compute` when the device has no room.
    pub fn load(source: &ModelSource, device: &Device) -> Result<Self> {
        Ok(Self::new(TensorExecutor::load(source, device, Arithmetic::Kernels)?, MAX_CHECKPOINTS))
    }

    /// Loads a model that computes in 32 bits throughout: the reference for rounding errors.
    ///
    /// # Errors
    /// Those of [`Self::load`].
    pub fn exact(source: &ModelSource, device: &Device) -> Result<Self> {
        Ok(Self::new(TensorExecutor::load(source, device, Arithmetic::Exact)?, MAX_CHECKPOINTS))
    }
}

impl TensorExecutor {
    fn load(source: &ModelSource, device: &Device, arithmetic: Arithmetic) -> Result<Self> {
        let config = source.config()?.clone();
        let weights = source.weights(device)?;
        let layers = (0..config.depth())
            .map(|index| Layer::load(Origin { index, weights: &weights, config: &config, arithmetic }))
            .collect::<Result<Vec<_>>>()?;
        let embedding = || weights.matrix("token_embd.weight");
        let embedding = config.assistant().is_none().then(embedding).transpose()?;
        let head = config.draft_head.as_ref().map(|head| Head::load(&weights, &config, head, arithmetic));
        let head = head.transpose()?;
        let output = match &embedding {
            _ if matches!(head, Some(Head::Mtp(_))) => {
                Stack::in_pieces(&*weights.matrix_on(&Device::Cpu, OUTPUT)?, arithmetic, device)?
            }
            Some(embedding) if config.tied_embeddings => {
                Stack::new(vec![Arc::clone(embedding)], arithmetic, device)?
            }
            _ => Stack::new(vec![weights.matrix(OUTPUT)?], arithmetic, device)?,
        };
        let rotary = config.attention_kinds.iter().map(|kind| RotaryTable::new(kind.rotary.clone(), device));
        Ok(Self {
            output_norm: weights.vector("output_norm.weight")?,
            output,
            head,
            per_layer: PerLayerInputs::load(&weights, &config, arithmetic)?,
            embedding,
            rotary: rotary.collect::<Computed<_>>()?,
            padding: layers.first().map_or(Ok(Padding::NONE), |layer| layer.measure(&config, device))?,
            layers,
            config,
            device: device.clone(),
            scores: Scores::Sketches(Vec::new()),
            features: Vec::new(),
            tapped: 0,
            scored_states: None,
            after: Vec::new(),
        })
    }

    /// Runs all layers over nodes at the cached positions from `start` on. Returns the last layer's
    /// output, `[nodes, hidden]`, and the tapped inputs of layers.
    fn run_layers(
        &mut self,
        feed: &Feed,
        start: usize,
        tokens: &[TokenId],
        recurrent: Option<&RecurrentPass<'_>>,
        want: &Want<'_>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let taps = want.features;
        let mut x = match (&self.embedding, &self.head, want.head_input) {
            (Some(embedding), ..) => embedding.embedding(&feed.ids)?,
            (None, Some(Head::Assistant(assistant)), Some(head_input)) => {
                assistant.input(tokens, head_input.features(), &self.config, self.padding, &self.device)?
            }
            (None, ..) => return Err(candle_core::Error::msg("a head that is given nothing").into()),
        };
        if self.config.embedding_scale != 1.0 && self.embedding.is_some() {
            x = (x * f64::from(self.config.embedding_scale))?;
        }
        x = feed.place_pictures(x)?;
        if self.config.normed_embeddings {
            let ones = Tensor::ones(self.config.hidden, DType::F32, &self.device)?;
            x = rms_norm(&x, &ones, self.config.norm_epsilon as f32)?;
        }
        // Input of the first layer's attention, if it is not the normed state.
        let mut fused_input = None;
        let epsilon = self.config.norm_epsilon as f32;
        match (&self.head, want.head_input) {
            (Some(Head::Eagle3(head)), Some(input)) => {
                let (state, fused) = head.input(&x, input, epsilon, self.padding)?;
                (x, fused_input) = (state, Some(fused));
            }
            (Some(Head::Mtp(mtp)), Some(input)) => {
                x = mtp.input(&x, input.features(), epsilon, self.padding)?;
            }
            _ => {}
        }
        let per_layer = self.per_layer.as_ref();
        let per_layer = per_layer.map(|inputs| inputs.compute(&x, tokens, &self.config, self.padding));
        let per_layer = per_layer.transpose()?;
        let inputs = self.inputs(feed)?;
        let assistant = self.head.as_ref().and_then(Head::assistant);
        let mut shared_kv = assistant.map_or_else(|| Ok(SharedKv::new()), |of| of.shared_kv(feed.cached))?;
        let mut tapped = Vec::new();
        for (index, layer) in self.layers.iter_mut().enumerate() {
            if taps.is_some_and(|taps| taps.entering.contains(&index)) {
                tapped.push(x.clone());
            }
            let layer_inputs = LayerInputs {
                fused: fused_input.take(),
                per_layer: per_layer.as_ref().map(|inputs| &inputs[index]),
                attention: &inputs,
                recurrent,
            };
            x = layer.forward(&x, layer_inputs, &mut shared_kv, &self.config, start, self.padding)?;
            x = feed.add_pictures(x, index)?;
        }
        Ok((x, tapped))
    }

    /// Inputs of each kind of attention; of each layer in a head that drafts blocks.
    fn inputs(&mut self, feed: &Feed) -> Computed<Vec<AttentionInputs>> {
        let kinds = &self.config.attention_kinds;
        if let Some(block) = self.config.block() {
            let layers = self.config.kinds().zip(&block.causal);
            let inputs = layers.map(|(kind, &causal)| {
                let mask = feed.mask_of_block(kinds[kind].window, causal)?;
                Ok(AttentionInputs { mask, angles: self.rotary[kind].at(&feed.positions)? })
            });
            return inputs.collect();
        }
        let inputs = |(kind, rotary): (&AttentionKind, &mut RotaryTable)| {
            Ok(AttentionInputs { mask: feed.mask(kind.window)?, angles: rotary.at(&feed.positions)? })
        };
        kinds.iter().zip(&mut self.rotary).map(inputs).collect()
    }

    /// Caches head inputs without drafting: the target's states in a head that drafts blocks, its
    /// keys and values in an assistant.
    fn cache_states(&mut self, states: Features<'_>, feed: &Feed, start: usize) -> Computed<()> {
        let head = match &mut self.head {
            Some(Head::Assistant(assistant)) => {
                return assistant.cache_target_kv(states, &self.config, start);
            }
            Some(Head::Block(head)) => head,
            Some(Head::Eagle3(_) | Head::Mtp(_)) | None => return Ok(()),
        };
        let rows = head.rows(states, self.config.norm_epsilon as f32, self.padding, &self.device)?;
        for (layer, kind) in self.layers.iter_mut().zip(self.config.kinds()) {
            let angles = self.rotary[kind].at(&feed.positions)?;
            layer.cache_kv(&rows, &self.config, start, &angles, self.padding)?;
        }
        Ok(())
    }

    /// Features of all `taps`, `[nodes, width]`, at the cached positions from `start` on. `hidden`
    /// is the last layer's output, `tapped` the inputs of layers.
    fn fetch_features(
        &self,
        taps: &Taps,
        hidden: &Tensor,
        mut tapped: Vec<Tensor>,
        start: usize,
    ) -> Computed<Vec<f32>> {
        if taps.entering.contains(&self.config.depth()) {
            tapped.push(hidden.clone());
        }
        if self.config.state_scale != 1.0 {
            for state in &mut tapped {
                *state = (&*state * f64::from(self.config.state_scale))?;
            }
        }
        if taps.last {
            let normed = self.normalise(hidden)?;
            tapped.push(match &self.head {
                Some(Head::Assistant(assistant)) => assistant.output_states(&normed, self.padding)?,
                _ => normed,
            });
        }
        for &layer in &taps.cached {
            tapped.extend(self.layers[layer].cached_kv(start, hidden.dim(0)?)?);
        }
        Tensor::cat(&tapped, 1)?.flatten_all()?.to_vec1()
    }

    /// Final norm, before the output matrix.
    fn normalise(&self, hidden: &Tensor) -> Computed<Tensor> {
        rms_norm(&hidden.contiguous()?, &self.output_norm, self.config.norm_epsilon as f32)
    }

    /// Scores of `rows`, as far as `want` needs them. `tokens` are those of the pass.
    fn run_output(
        &self,
        hidden: &Tensor,
        rows: Range<usize>,
        tokens: &[TokenId],
        feed: &Feed,
        want: &Want<'_>,
    ) -> Computed<Scores> {
        if rows.is_empty() {
            return Ok(Scores::Sketches(Vec::new()));
        }
        let hidden = self.normalise(&hidden.narrow(0, rows.start, rows.len())?)?;
        let vocabulary = want.vocabulary.min(self.config.vocabulary);
        let assistant = self.head.as_ref().and_then(Head::assistant);
        let clustered = assistant.map(|assistant| assistant.score(&hidden, self.padding));
        let logits = match clustered.transpose()?.flatten() {
            Some(logits) => logits,
            None => self.output.first_outputs(&hidden, vocabulary, self.padding)?,
        };
        let logits = logits.narrow(1, 0, vocabulary)?;
        let logits = apply_scoring(logits, self.config.scoring)?;
        if want.subset != LogitSubset::Everything {
            let (subset, penalised) = (want.subset, want.penalised);
            return self::sketch::sketches(&logits, tokens, &feed.ids, subset, penalised)
                .map(Scores::Sketches);
        }
        let logits: Vec<f32> = logits.flatten_all()?.to_vec1()?;
        let peaks = logits.chunks(vocabulary).map(|logits| Row::of(logits).peak()).collect();
        Ok(Scores::Rows { logits, vocabulary, peaks })
    }
}

/// Applies the logit scale and soft cap.
fn apply_scoring(mut logits: Tensor, scoring: Scoring) -> Computed<Tensor> {
    if scoring.scale != 1.0 {
        logits = (logits * f64::from(scoring.scale))?;
    }
    if let Some(cap) = scoring.cap {
        logits = ((logits / f64::from(cap))?.tanh()? * f64::from(cap))?;
    }
    Ok(logits)
}

impl Executor for TensorExecutor {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn wait(&self) -> Result<()> {
        Ok(self.device.synchronize()?)
    }

    fn run(&mut self, nodes: Nodes<'_>, want: &Want<'_>) -> Result<()> {
        let Nodes { tree, first, at, long, states, media, positions } = nodes;
        self.rotary.iter_mut().for_each(|rotary| rotary.set_long(long));
        let tokens: Vec<TokenId> = tree.tokens().skip(first).collect();
        let start = at + first;
        let feed = match &self.head {
            Some(Head::Assistant(_)) => Feed::independent(&tokens, at, &self.device)?,
            _ => Feed::new(tree, first, at, &self.device)?
                .with_pictures(&media, first, self.config.hidden)?
                .with_positions(positions),
        };
        let caches_input = matches!(self.head, Some(Head::Block(_) | Head::Assistant(_)));
        if let Some(HeadInput::Target(rows)) = want.head_input.filter(|_| caches_input) {
            self.cache_states(rows, &feed, start)?;
            self.scores = Scores::Sketches(Vec::new());
            return Ok(());
        }
        let recurrent = states.map(|plan| RecurrentPass { plan, tree, first });
        let (hidden, tapped) = self.run_layers(&feed, start, &tokens, recurrent.as_ref(), want)?;
        let rows = want.rows_between(first, tree.len());
        self.scored_states = None;
        if matches!(self.head, Some(Head::Block(_))) && !rows.is_empty() {
            self.scored_states = Some(self.normalise(&hidden.narrow(0, rows.start, rows.len())?)?);
        }
        self.scores = self.run_output(&hidden, rows, &tokens, &feed, want)?;
        self.features.clear();
        if let Some(taps) = want.features {
            self.features = self.fetch_features(taps, &hidden, tapped, start)?;
        }
        self.tapped = want.features.map_or(0, |taps| taps.width(&self.config));
        Ok(())
    }

    fn logits(&self) -> Logits<'_> {
        match &self.scores {
            Scores::Rows { logits, vocabulary, peaks } => {
                Logits::new(logits, *vocabulary, *vocabulary, peaks)
            }
            Scores::Sketches(sketches) => Logits::on_device(sketches),
        }
    }

    fn pair_scores(&mut self, anchor: Features<'_>) -> Result<Option<PairScores>> {
        let head = self.head.as_ref().and_then(Head::block);
        let (Some(head), Some(embedding), Some(states)) = (head, &self.embedding, &self.scored_states) else {
            return Ok(None);
        };
        let Some(lilicorr) = head.lilicorr() else { return Ok(None) };
        let rows = (0..self.logits().rows()).map(|row| self.logits().row(row));
        let Some(candidates) = candidates(rows, lilicorr.candidates())? else { return Ok(None) };
        let numbers = |tensor: Tensor| tensor.flatten_all()?.to_vec1::<f32>();
        let tokens: Vec<TokenId> = candidates.iter().flatten().map(|&(token, _)| token).collect();
        let embeddings = numbers(embedding.embedding(&Tensor::new(tokens, &self.device)?)?)?;
        let anchor = head.rows(anchor, self.config.norm_epsilon as f32, self.padding, &self.device)?;
        let (states, anchor) = (numbers(states.clone())?, numbers(anchor)?);
        let block =
            Block { candidates: &candidates, embeddings: &embeddings, states: &states, anchor: &anchor };
        let multiply = &mut |weights: &Stack, rows: &[f32], count: usize| {
            let rows = Tensor::from_slice(rows, (count, rows.len() / count), &self.device)?;
            Ok(numbers(weights.forward(&rows, self.padding)?)?)
        };
        lilicorr.scores(&block, multiply).map(Some)
    }

    fn next_state(&mut self, state: &BlockState, token: TokenId) -> Result<BlockState> {
        let domino = self.head.as_ref().and_then(Head::block).and_then(BlockHead::domino);
        let recurrent = match (domino, &self.embedding) {
            (Some(domino), Some(embedding)) => {
                let embedding = embedding.embedding(&Tensor::new(&[token], &self.device)?)?;
                domino.step(state.recurrent(), &embedding, self.padding)?
            }
            _ => Vec::new(),
        };
        Ok(state.after(token, recurrent))
    }

    fn row_after(&mut self, row: usize, before: &BlockState) -> Result<(Row<'_>, Option<f32>)> {
        let (mut scores, mut confidence) = (None, None);
        let head = self.head.as_ref().and_then(Head::block);
        if let Some((head, states)) = head.zip(self.scored_states.as_ref()) {
            let state = states.narrow(0, row, 1)?;
            (scores, confidence) = head.rescore(before, self.logits().row(row), &state, self.padding)?;
        }
        let Some(scores) = scores else { return Ok((self.logits().row(row), confidence)) };
        self.after = scores;
        Ok((Row::of(&self.after), confidence))
    }

    fn features(&self) -> Option<Features<'_>> {
        (self.tapped > 0).then(|| Features::new(&self.features, self.tapped))
    }

    fn copy(&mut self, moves: &[(usize, usize)]) -> Result<()> {
        let from: Vec<u32> = moves.iter().map(|&(from, _)| from as u32).collect();
        let from = Tensor::new(from, &self.device)?;
        // The destinations are consecutive.
        let to = moves.first().map_or(0, |&(_, to)| to);
        Ok(self.layers.iter_mut().try_for_each(|layer| layer.gather(&from, to))?)
    }
}
