//! Layers that keep a state in place of keys and values: gated convolutions (LFM2), and Gated DeltaNet (Yang et al.
//! 2025) row by row.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::ops::{rms_norm, sigmoid, silu};

use super::memory::{Course, Memory, Record, State, Update};
use super::origin::Origin;
use super::stack::{Padding, Stack};
use crate::error::Result as Loaded;
use crate::model::{Heads, Mixer, ModelConfig, Recurrence};

/// Added to the squared length of keys and queries before they are divided by its root.
const EPSILON: f64 = 1e-6;

pub struct Recurrent {
    of: Recurrence,
    /// What is convolved; of a gated convolution b, c and v, of which b * v is convolved and multiplied with c.
    projection: Stack,
    kernel: Tensor, // [taps, channels], the oldest row's first
    /// `None` of a gated convolution.
    delta: Option<Delta>,
    output: Stack,
    memory: Memory,
}

/// What Gated DeltaNet has beside.
struct Delta {
    gate: Stack,       // [values * value_size, hidden]
    rates: Stack,      // [2 * values, hidden]
    bias: Tensor,      // [values]
    decay: Tensor,     // [values]
    norm: Tensor,      // [value_size]
    key_heads: Tensor, // of every value head
}

/// A row of all heads.
struct Row {
    query: Tensor, // [values, key_size, 1]
    key: Tensor,   // [values, key_size, 1]
    value: Tensor, // [values, 1, value_size]
    beta: Tensor,  // [values, 1, 1]
    decay: Tensor, // [values, 1, 1]
}

impl Recurrent {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>, of: &Recurrence) -> Loaded<Self> {
        let names = match of.mixer {
            Mixer::ShortConv => ["shortconv.in_proj", "shortconv.conv.weight", "shortconv.out_proj"],
            _ => ["attn_qkv", "ssm_conv1d.weight", "ssm_out"],
        };
        let device = origin.weights.device();
        let Heads { values, key_size, value_size, .. } = of.heads;
        let nothing = State {
            tail: Tensor::zeros((of.taps - 1, of.channels), DType::F32, device)?,
            matrices: Tensor::zeros((values, key_size, value_size), DType::F32, device)?,
        };
        let delta = (of.mixer == Mixer::Delta).then(|| Delta::load(origin, &of.heads));
        Ok(Self {
            projection: origin.stack(&names[..1])?,
            kernel: origin.vector(names[1])?.reshape((of.channels, of.taps))?.t()?.contiguous()?,
            delta: delta.transpose()?,
            output: origin.stack(&names[2..])?,
            memory: Memory::new(nothing),
            of: of.clone(),
        })
    }

    /// The largest of its matrices.
    pub fn largest(&self) -> &Stack {
        &self.projection
    }

    /// `[nodes, hidden]` to `[nodes, hidden]`
    pub fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        course: &Course<'_>,
        padding: Padding,
    ) -> Result<Tensor> {
        let (projected, width) = (self.projection.forward(x, padding)?, self.of.channels);
        let inputs = match self.delta {
            Some(_) => projected.clone(),
            None => (projected.narrow(1, 0, width)? * projected.narrow(1, 2 * width, width)?)?,
        };
        let (state, before) = self.memory.begin(&course.plan)?;
        let (seen, text) = self.seen(&state, &before, &inputs, course)?;
        let convolved = self.convolve(&seen, text, course)?;
        let mut left = (state.matrices.clone(), state.matrices.clone());
        let (mixed, updates) = match &self.delta {
            None => ((projected.narrow(1, width, width)? * convolved)?, vec![None; x.dim(0)?]),
            Some(delta) => {
                let rows = delta.rows(x, &silu(&convolved)?, &self.of.heads, padding)?;
                let read;
                let updates;
                (read, updates, left) = self.walk(state.matrices, &before, &rows, course)?;
                (delta.gated(x, &read, config.norm_epsilon as f32, padding)?, updates)
            }
        };
        let tail = |end: usize| seen.narrow(0, end + 1 - self.of.taps, self.of.taps - 1);
        if let Some(to) = course.plan.to {
            self.memory.leave(to, State { tail: tail(text)?, matrices: left.0 });
        }
        if let Some(end) = course.plan.end {
            self.memory.leave(end, State { tail: tail(text + course.skipped())?, matrices: left.1 });
        }
        for (row, update) in updates.into_iter().enumerate() {
            if let Some(place) = course.plan.rows[course.first + row] {
                self.memory.write(place, Record { inputs: inputs.narrow(0, row, 1)?, update });
            }
        }
        self.output.forward(&mixed, padding)
    }

    /// What convolutions see, `[text + nodes, channels]`: the end of the text, and all nodes of the tree; and how much of
    /// it is text.
    fn seen(
        &self,
        state: &State,
        before: &[Record],
        inputs: &Tensor,
        course: &Course<'_>,
    ) -> Result<(Tensor, usize)> {
        let mut all = vec![state.tail.clone()];
        all.extend(before.iter().map(|record| record.inputs.clone()));
        for place in course.plan.rows[..course.first].iter().flatten() {
            all.push(self.memory.record(*place)?.inputs);
        }
        all.push(inputs.clone());
        Ok((Tensor::cat(&all, 0)?, self.of.taps - 1 + before.len()))
    }

    /// `[nodes, channels]`
    fn convolve(&self, seen: &Tensor, text: usize, course: &Course<'_>) -> Result<Tensor> {
        let taps = self.of.taps;
        let mut from = Vec::new();
        for node in course.first..course.tree.len() {
            let mut rows = vec![0u32; taps];
            let mut at = text + node;
            for row in rows.iter_mut().rev() {
                *row = at as u32;
                // Before the first node of a path comes the end of the text.
                let node = at.checked_sub(text);
                let parent = node.and_then(|node| course.tree.parent(node));
                at = parent.map_or(at.min(text).saturating_sub(1), |parent| text + parent);
            }
            from.extend(rows);
        }
        let nodes = course.tree.len() - course.first;
        let from = Tensor::new(from, seen.device())?;
        let rows = seen.index_select(&from, 0)?.reshape((nodes, taps, self.of.channels))?;
        rows.broadcast_mul(&self.kernel)?.sum(1)
    }

    /// Takes the matrices through the tree: what is read of them, `[nodes, values * value_size]`, what each row does to
    /// them, and what they are before the tree and after the nodes whose records need not last.
    #[allow(clippy::type_complexity, reason = "named where it is taken apart")]
    fn walk(
        &self,
        begin: Tensor,
        before: &[Record],
        rows: &[Row],
        course: &Course<'_>,
    ) -> Result<(Tensor, Vec<Option<Update>>, (Tensor, Tensor))> {
        let applied = |matrices: Tensor, update: &Option<Update>| match update {
            Some(update) => update.apply(&matrices),
            None => Ok(matrices),
        };
        let begin = before.iter().try_fold(begin, |matrices, record| applied(matrices, &record.update))?;
        let mut end = begin.clone();
        // Of every node the matrices after it, as long as a node is to come that follows it.
        let mut after: Vec<Option<Tensor>> = vec![None; course.tree.len()];
        let mut to_come = vec![0; course.tree.len()];
        let parents = (0..course.tree.len()).filter_map(|node| course.tree.parent(node));
        parents.for_each(|parent| to_come[parent] += 1);
        let (mut read, mut updates) = (Vec::new(), Vec::new());
        for node in 0..course.tree.len() {
            let parent = course.tree.parent(node);
            let matrices = match parent {
                None => begin.clone(),
                Some(parent) => after[parent].clone().unwrap_or_else(|| begin.clone()),
            };
            let update = match (node.checked_sub(course.first), course.plan.rows[node]) {
                (Some(row), _) => {
                    let (found, update) = rows[row].read(&matrices)?;
                    read.push(found);
                    updates.push(Some(update.clone()));
                    Some(update)
                }
                (None, Some(place)) => self.memory.record(place)?.update,
                (None, None) => None,
            };
            if to_come[node] > 0 {
                after[node] = Some(applied(matrices, &update)?);
            }
            if node + 1 == course.skipped() {
                end = after[node].clone().unwrap_or(end);
            }
            if let Some(parent) = parent {
                to_come[parent] -= 1;
                if to_come[parent] == 0 {
                    after[parent] = None;
                }
            }
        }
        Ok((Tensor::stack(&read, 0)?, updates, (begin, end)))
    }
}

impl Delta {
    fn load(origin: Origin<'_>, heads: &Heads) -> Loaded<Self> {
        let key_heads: Vec<u32> = (0..heads.values).map(|head| heads.key_of(head) as u32).collect();
        Ok(Self {
            gate: origin.stack(&["attn_gate"])?,
            rates: origin.stack(&["ssm_beta", "ssm_alpha"])?,
            bias: origin.vector("ssm_dt.bias")?,
            decay: origin.vector("ssm_a")?,
            norm: origin.vector("ssm_norm.weight")?,
            key_heads: Tensor::new(key_heads, origin.weights.device())?,
        })
    }

    /// Of what was fed, `[nodes, hidden]`, and what was convolved of it, the rows.
    fn rows(&self, x: &Tensor, convolved: &Tensor, heads: &Heads, padding: Padding) -> Result<Vec<Row>> {
        let (nodes, width, values) = (x.dim(0)?, heads.key_width(), heads.values);
        let of_keys = |first: usize| -> Result<Tensor> {
            let all = convolved.narrow(1, first, width)?.reshape((nodes, heads.keys, heads.key_size))?;
            let length = (all.sqr()?.sum_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
            all.broadcast_div(&length)?.index_select(&self.key_heads, 1)
        };
        let queries = (of_keys(0)? / (heads.key_size as f64).sqrt())?;
        let keys = of_keys(width)?;
        let all_values = convolved.narrow(1, 2 * width, heads.value_width())?;
        let rates = self.rates.forward(x, padding)?;
        let betas = sigmoid(&rates.narrow(1, 0, values)?)?;
        let steps = softplus(&rates.narrow(1, values, values)?.broadcast_add(&self.bias)?)?;
        let decays = steps.broadcast_mul(&self.decay)?.exp()?;
        let row = |row: usize| -> Result<Row> {
            let of = |all: &Tensor, shape: (usize, usize, usize)| all.narrow(0, row, 1)?.reshape(shape);
            Ok(Row {
                query: of(&queries, (values, heads.key_size, 1))?,
                key: of(&keys, (values, heads.key_size, 1))?,
                value: of(&all_values, (values, 1, heads.value_size))?,
                beta: of(&betas, (values, 1, 1))?,
                decay: of(&decays, (values, 1, 1))?,
            })
        };
        (0..nodes).map(row).collect()
    }

    /// What was read, `[nodes, values, value_size]`, normed and gated by what was fed.
    fn gated(&self, x: &Tensor, read: &Tensor, epsilon: f32, padding: Padding) -> Result<Tensor> {
        let (nodes, values, size) = read.dims3()?;
        let normed = rms_norm(&read.contiguous()?, &self.norm, epsilon)?.reshape((nodes, values * size))?;
        normed * silu(&self.gate.forward(x, padding)?)?
    }
}

impl Row {
    /// What the row's query reads of the matrices after what it does to them, `[values, value_size]`.
    fn read(&self, matrices: &Tensor) -> Result<(Tensor, Update)> {
        let decayed = matrices.broadcast_mul(&self.decay)?;
        let known = decayed.broadcast_mul(&self.key)?.sum_keepdim(1)?;
        let correction = (&self.value - known)?.broadcast_mul(&self.beta)?;
        let update = Update { decay: self.decay.clone(), key: self.key.clone(), correction };
        Ok((update.apply(matrices)?.broadcast_mul(&self.query)?.sum(1)?, update))
    }
}

/// ln(1 + e^x), as max(x, 0) + ln(1 + e^-|x|)
fn softplus(x: &Tensor) -> Result<Tensor> {
    x.relu()? + (x.abs()?.neg()?.exp()? + 1.0)?.log()?
}
