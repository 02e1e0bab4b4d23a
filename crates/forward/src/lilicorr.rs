//! LiLiCorr: a small transformer over the top candidates of all positions of a block, which scores
//! pairs of neighbouring candidates. Products with matrices are the engine's, whose type of matrix
//! is `M`; everything else is computed here, in 32 bits.

use foretoken_model::LiliCorr as Sizes;
use foretoken_model::error::Result;
use foretoken_model::tables::lilicorr::FEATURES;
use foretoken_model::token::TokenId;

use crate::Row;
use crate::cpu::exp;
use crate::pair_scores::PairScores;

/// Epsilon of the norm of a candidate's features, which no file states.
const FEATURE_EPSILON: f32 = 1e-5;

/// Candidates of a position and the logarithms of their probabilities, likeliest first.
pub type Candidates = Vec<(TokenId, f32)>;

/// Multiplies a matrix with a number of rows, one after the other; the products have no padding.
pub type Multiply<'a, M> = dyn FnMut(&M, &[f32], usize) -> Result<Vec<f32>> + 'a;

/// Reads a matrix by its name.
pub type ReadMatrix<'a, M> = dyn Fn(&str) -> Result<M> + 'a;

/// Reads a vector of a length by its name.
pub type ReadVector<'a> = dyn Fn(&str, usize) -> Result<Vec<f32>> + 'a;

/// Weights of LiLiCorr.
#[derive(Debug)]
pub struct LiliCorr<M> {
    sizes: Sizes,
    /// Rows of a block, as trained.
    rows: usize,
    /// Epsilon of RMS norms.
    epsilon: f32,
    /// Projection of a candidate's embedding; `None` if the widths agree.
    token: Option<Linear<M>>,
    /// Projection of a position's state.
    position: Linear<M>,
    features: Features<M>,
    slots: Vec<f32>,    // [rows - 1, hidden]
    ranks: Vec<f32>,    // [candidates, hidden]
    relative: Vec<f32>, // [heads, 2 * rows - 1]
    same: Vec<f32>,     // [heads]
    layers: Vec<Layer<M>>,
    output_norm: Vec<f32>,
    /// Projection of the target's state before the block.
    context: Linear<M>,
    anchor_norm: Vec<f32>,
    factor: Linear<M>,
    out: Linear<M>,
    into: Linear<M>,
    anchor_out: Linear<M>,
}

/// A network over a candidate's probability and rank.
#[derive(Debug)]
struct Features<M> {
    norm: [Vec<f32>; 2], // weight and bias, [FEATURES]
    up: [Vec<f32>; 2],   // weight, [hidden, FEATURES], and bias
    down: Linear<M>,
}

#[derive(Debug)]
struct Layer<M> {
    attention_norm: Vec<f32>,
    qkv: Linear<M>,
    output: Linear<M>,
    feed_forward_norm: Vec<f32>,
    up: Linear<M>,
    down: Linear<M>,
}

/// A matrix with a bias.
#[derive(Debug)]
struct Linear<M> {
    weight: M,
    bias: Vec<f32>,
}

/// Inputs of LiLiCorr for a block.
pub struct Block<'a> {
    /// Candidates of each position.
    pub candidates: &'a [Candidates],
    /// Embeddings of the candidates, `[positions, candidates, width]`.
    pub embeddings: &'a [f32],
    /// Normed states of the positions, `[positions, width]`.
    pub states: &'a [f32],
    /// Fused and normed state of the target before the block, `[width]`.
    pub anchor: &'a [f32],
}

/// Returns the `count` candidates of each row; `None` if a row has fewer, because scores are NaN.
///
/// # Errors
/// Errors of fetching the scores.
pub fn candidates<'a>(rows: impl Iterator<Item = Row<'a>>, count: usize) -> Result<Option<Vec<Candidates>>> {
    let mut found = Vec::new();
    for row in rows {
        let sum = libm::logf(row.sum_exp(1.0)?);
        let mut top = row.top(count)?;
        top.iter_mut().for_each(|(_, score)| *score -= row.largest() + sum);
        if top.len() < count || top.iter().any(|(_, log)| log.is_nan()) {
            return Ok(None);
        }
        found.push(top);
    }
    Ok(Some(found))
}

impl<M> LiliCorr<M> {
    /// Loads the weights for a head with blocks of `rows` rows, states of `width` numbers and
    /// `epsilon` in its norms.
    ///
    /// # Errors
    /// As `matrix` and `vector`.
    pub fn load(
        sizes: Sizes,
        rows: usize,
        width: usize,
        epsilon: f32,
        matrix: &ReadMatrix<'_, M>,
        vector: &ReadVector<'_>,
    ) -> Result<Self> {
        let Sizes { hidden, heads, factors, candidates, .. } = sizes;
        let vector = |name: &str, length| vector(&format!("lilicorr.{name}"), length);
        let joined = |weight: &str, bias: &str, out| -> Result<Linear<M>> {
            Ok(Linear { weight: matrix(&format!("lilicorr.{weight}"))?, bias: vector(bias, out)? })
        };
        let linear = |name: &str, out| joined(&format!("{name}.weight"), &format!("{name}.bias"), out);
        let layer = |layer: usize| -> Result<Layer<M>> {
            let name = |part: &str| format!("layers.{layer}.{part}");
            Ok(Layer {
                attention_norm: vector(&name("attn_norm.weight"), hidden)?,
                qkv: joined(&name("attn.in_proj_weight"), &name("attn.in_proj_bias"), 3 * hidden)?,
                output: linear(&name("attn.out_proj"), hidden)?,
                feed_forward_norm: vector(&name("mlp_norm.weight"), hidden)?,
                up: linear(&name("mlp.0"), sizes.intermediate)?,
                down: linear(&name("mlp.2"), hidden)?,
            })
        };
        Ok(Self {
            sizes,
            rows,
            epsilon,
            token: (hidden != width).then(|| linear("token_proj", hidden)).transpose()?,
            position: linear("pass_hidden_proj", hidden)?,
            features: Features {
                norm: [vector("feature_mlp.0.weight", FEATURES)?, vector("feature_mlp.0.bias", FEATURES)?],
                up: [
                    vector("feature_mlp.1.weight", hidden * FEATURES)?,
                    vector("feature_mlp.1.bias", hidden)?,
                ],
                down: linear("feature_mlp.3", hidden)?,
            },
            slots: vector("slot_embedding", (rows - 1) * hidden)?,
            ranks: vector("rank_embedding", candidates * hidden)?,
            relative: vector("relative_slot_bias", heads * (2 * rows - 1))?,
            same: vector("same_slot_bias", heads)?,
            layers: (0..sizes.layers).map(layer).collect::<Result<_>>()?,
            output_norm: vector("output_norm.weight", hidden)?,
            context: linear("context_proj", hidden)?,
            anchor_norm: vector("anchor_norm.weight", hidden)?,
            factor: linear("factor_input_proj", hidden)?,
            out: linear("out_head", factors)?,
            into: linear("in_head", factors)?,
            anchor_out: linear("anchor_out_head", factors)?,
        })
    }

    /// Number of candidates at a position.
    pub fn candidates(&self) -> usize {
        self.sizes.candidates
    }

    /// Scores the neighbours of a block.
    ///
    /// # Errors
    /// As `multiply`.
    pub fn scores(&self, block: &Block<'_>, multiply: &mut Multiply<'_, M>) -> Result<PairScores> {
        let hidden = self.sizes.hidden;
        let nodes = block.candidates.len() * self.sizes.candidates;
        let mut x = self.nodes(block, multiply)?;
        for layer in &self.layers {
            let normed = rms_norms(&x, &layer.attention_norm, self.epsilon);
            let qkv = layer.qkv.apply(&normed, nodes, multiply)?;
            add(&mut x, &layer.output.apply(&self.attend(&qkv, nodes), nodes, multiply)?);
            let normed = rms_norms(&x, &layer.feed_forward_norm, self.epsilon);
            let mut inner = layer.up.apply(&normed, nodes, multiply)?;
            inner.iter_mut().for_each(silu);
            add(&mut x, &layer.down.apply(&inner, nodes, multiply)?);
        }
        let x = rms_norms(&x, &self.output_norm, self.epsilon);
        let anchor = self.context.apply(block.anchor, 1, multiply)?;
        let anchor = rms_norms(&anchor, &self.anchor_norm, self.epsilon);
        let mut inputs = Vec::with_capacity(3 * x.len());
        for node in x.chunks_exact(hidden) {
            inputs.extend_from_slice(node);
            inputs.extend_from_slice(&anchor);
            inputs.extend(node.iter().zip(&anchor).map(|(node, anchor)| node * anchor));
        }
        let mut factor = self.factor.apply(&inputs, nodes, multiply)?;
        factor.iter_mut().for_each(silu);
        let out = self.units(self.out.apply(&factor, nodes, multiply)?);
        let into = self.units(self.into.apply(&factor, nodes, multiply)?);
        let start = self.units(self.anchor_out.apply(&anchor, 1, multiply)?);
        Ok(self.pairs(block.candidates, &start, &out, &into))
    }

    /// Initial states of the candidates, `[positions, candidates, hidden]`.
    fn nodes(&self, block: &Block<'_>, multiply: &mut Multiply<'_, M>) -> Result<Vec<f32>> {
        let Sizes { hidden, candidates, .. } = self.sizes;
        let (positions, nodes) = (block.candidates.len(), block.candidates.len() * candidates);
        let mut x = match &self.token {
            Some(token) => token.apply(block.embeddings, nodes, multiply)?,
            None => block.embeddings.to_vec(),
        };
        let states = self.position.apply(block.states, positions, multiply)?;
        let inner: Vec<f32> = block.candidates.iter().flat_map(|of| self.features.inner(of)).collect();
        add(&mut x, &self.features.down.apply(&inner, nodes, multiply)?);
        for (node, x) in x.chunks_exact_mut(hidden).enumerate() {
            let (slot, rank) = (node / candidates, node % candidates);
            add(x, &states[slot * hidden..][..hidden]);
            add(x, &self.slots[slot * hidden..][..hidden]);
            add(x, &self.ranks[rank * hidden..][..hidden]);
        }
        Ok(x)
    }

    /// Attention of all nodes to each other, with a bias by the distance of their positions.
    /// `qkv`: queries, keys and values of each node, `[nodes, 3 * hidden]`.
    fn attend(&self, qkv: &[f32], nodes: usize) -> Vec<f32> {
        let Sizes { hidden, heads, .. } = self.sizes;
        let size = hidden / heads;
        let part = |node: usize, part: usize, head: usize| {
            &qkv[node * 3 * hidden + part * hidden + head * size..][..size]
        };
        let mut mixed = vec![0.0; nodes * hidden];
        for (query, head) in (0..nodes).flat_map(|node| (0..heads).map(move |head| (node, head))) {
            let score = |key: usize| {
                let product = dot(part(query, 0, head), part(key, 1, head));
                product / (size as f32).sqrt() + self.bias(query, key, head)
            };
            let mut scores: Vec<f32> = (0..nodes).map(score).collect();
            let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
            scores.iter_mut().for_each(|score| *score = exp(*score - largest));
            let sum: f32 = scores.iter().sum();
            let out = &mut mixed[query * hidden + head * size..][..size];
            for (key, score) in scores.into_iter().enumerate() {
                let weight = score / sum;
                out.iter_mut().zip(part(key, 2, head)).for_each(|(out, value)| *out += weight * value);
            }
        }
        mixed
    }

    fn bias(&self, query: usize, key: usize, head: usize) -> f32 {
        let [query, key] = [query, key].map(|node| node / self.sizes.candidates);
        let relative = self.relative[head * (2 * self.rows - 1) + query + self.rows - 1 - key];
        if query == key { relative + self.same[head] } else { relative }
    }

    /// Rows of factors, divided by their norms.
    fn units(&self, mut rows: Vec<f32>) -> Vec<f32> {
        for row in rows.chunks_exact_mut(self.sizes.factors) {
            let norm = dot(row, row).sqrt().max(self.sizes.epsilon);
            row.iter_mut().for_each(|number| *number /= norm);
        }
        rows
    }

    /// Scores of the first position's candidates after `start`, and of each candidate after each of
    /// the position before.
    fn pairs(&self, candidates: &[Candidates], start: &[f32], out: &[f32], into: &[f32]) -> PairScores {
        let Sizes { factors, candidates: count, scale, .. } = self.sizes;
        let of = |rows: &[f32], node: usize| rows[node * factors..][..factors].to_vec();
        let after = |before: &[f32], position: usize| -> Vec<f32> {
            let nodes = position * count..(position + 1) * count;
            nodes.map(|node| scale * dot(before, &of(into, node))).collect()
        };
        let from = |position: usize| {
            let nodes = position * count..(position + 1) * count;
            nodes.map(|node| after(&of(out, node), position + 1)).collect()
        };
        PairScores {
            candidates: candidates.iter().map(|of| of.iter().map(|&(token, _)| token).collect()).collect(),
            start: after(start, 0),
            pairs: (0..candidates.len() - 1).map(from).collect(),
        }
    }
}

impl<M> Features<M> {
    /// Hidden layer of the network for the candidates of a position, `[candidates, hidden]`.
    fn inner(&self, candidates: &Candidates) -> Vec<f32> {
        let last = (candidates.len() - 1).max(1) as f32;
        let largest = candidates[0].1;
        let features = candidates.iter().enumerate().map(|(rank, &(_, log))| {
            [log, exp(log), log - largest, rank as f32 / last, f32::from(u8::from(rank == 0))]
        });
        features.flat_map(|features| self.up(self.layer_norm(features))).collect()
    }

    fn layer_norm(&self, features: [f32; FEATURES]) -> [f32; FEATURES] {
        let mean = features.iter().sum::<f32>() / FEATURES as f32;
        let variance = features.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / FEATURES as f32;
        let [weight, bias] = &self.norm;
        std::array::from_fn(|at| {
            (features[at] - mean) / (variance + FEATURE_EPSILON).sqrt() * weight[at] + bias[at]
        })
    }

    fn up(&self, features: [f32; FEATURES]) -> Vec<f32> {
        let [weight, bias] = &self.up;
        let rows = weight.chunks_exact(FEATURES).zip(bias);
        let mut inner: Vec<f32> = rows.map(|(row, bias)| dot(row, &features) + bias).collect();
        inner.iter_mut().for_each(silu);
        inner
    }
}

impl<M> Linear<M> {
    fn apply(&self, rows: &[f32], count: usize, multiply: &mut Multiply<'_, M>) -> Result<Vec<f32>> {
        let mut products = multiply(&self.weight, rows, count)?;
        products.chunks_exact_mut(self.bias.len()).for_each(|row| add(row, &self.bias));
        Ok(products)
    }
}

fn rms_norms(rows: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let mut normed = rows.to_vec();
    for row in normed.chunks_exact_mut(weight.len()) {
        let factor = 1.0 / (dot(row, row) / weight.len() as f32 + epsilon).sqrt();
        row.iter_mut().zip(weight).for_each(|(number, weight)| *number *= factor * weight);
    }
    normed
}

fn silu(number: &mut f32) {
    *number /= 1.0 + exp(-*number);
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}
