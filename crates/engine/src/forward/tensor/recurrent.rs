//! Layers that keep a state in place of keys and values: gated short convolutions (LFM2), Gated
//! DeltaNet and Mamba-2.

use candle_core::{DType, Result, Tensor};
use candle_nn::ops::silu;

use super::delta::Delta;
use super::mamba::Mamba;
use super::memory::{Course, Memory, Record, State, Update};
use super::origin::Origin;
use super::row::Row;
use super::stack::{Padding, Stack};
use crate::error::Result as Loaded;
use crate::model::{Heads, Mixer, ModelConfig, Recurrence};

pub struct Recurrent {
    of: Recurrence,
    /// Projection to the convolution's inputs. In a gated convolution it gives b, c and v: b * v is
    /// convolved, then multiplied by c.
    projection: Stack,
    kernel: Tensor,       // [taps, channels], the oldest row first
    bias: Option<Tensor>, // [channels]
    kind: Kind,
    output: Stack,
    memory: Memory,
}

/// Part of a layer after its convolution.
enum Kind {
    /// Nothing: a gated convolution is the whole layer.
    Convolution,
    Delta(Delta),
    Mamba(Mamba),
}

impl Recurrent {
    /// # Errors
    /// Those of [`super::layer::Layer::load`].
    pub fn load(origin: Origin<'_>, of: &Recurrence) -> Loaded<Self> {
        let names = match of.mixer {
            Mixer::ShortConv => ["shortconv.in_proj", "shortconv.conv.weight", "shortconv.out_proj"],
            Mixer::Mamba => ["ssm_inputs", "ssm_conv1d.weight", "ssm_out"],
            _ => ["attn_qkv", "ssm_conv1d.weight", "ssm_out"],
        };
        let device = origin.weights.device();
        let Heads { values, key_size, value_size, .. } = of.heads;
        let nothing = State {
            tail: Tensor::zeros((of.taps - 1, of.channels), DType::F32, device)?,
            matrices: Tensor::zeros((values, key_size, value_size), DType::F32, device)?,
        };
        let kind = match of.mixer {
            Mixer::Delta => Kind::Delta(Delta::load(origin, &of.heads)?),
            Mixer::Mamba => Kind::Mamba(Mamba::load(origin, of)?),
            _ => Kind::Convolution,
        };
        Ok(Self {
            projection: origin.stack(&names[..1])?,
            kernel: origin.vector(names[1])?.reshape((of.channels, of.taps))?.t()?.contiguous()?,
            bias: of.biased.then(|| origin.vector("ssm_conv1d.bias")).transpose()?,
            kind,
            output: origin.stack(&names[2..])?,
            memory: Memory::new(nothing),
            of: of.clone(),
        })
    }

    /// The largest matrix.
    pub fn largest(&self) -> &Stack {
        &self.projection
    }

    /// Maps `[nodes, hidden]` to `[nodes, hidden]`.
    pub fn forward(
        &mut self,
        x: &Tensor,
        config: &ModelConfig,
        course: &Course<'_>,
        padding: Padding,
    ) -> Result<Tensor> {
        let (projected, width) = (self.projection.forward(x, padding)?, self.of.channels);
        let inputs = match self.kind {
            Kind::Convolution => (projected.narrow(1, 0, width)? * projected.narrow(1, 2 * width, width)?)?,
            _ => projected.clone(),
        };
        let (state, before) = self.memory.begin(&course.plan)?;
        let (seen, text) = self.seen(&state, &before, &inputs, course)?;
        let convolved = self.convolve(&seen, text, course)?;
        let mut left = (state.matrices.clone(), state.matrices.clone());
        let mut updates = vec![None; x.dim(0)?];
        let mixed = match &self.kind {
            Kind::Convolution => (projected.narrow(1, width, width)? * convolved)?,
            Kind::Delta(delta) => {
                let rows = delta.rows(x, &silu(&convolved)?, &self.of.heads, padding)?;
                let read;
                (read, updates, left) = self.walk(state.matrices, &before, &rows, course)?;
                delta.gated(x, &read, config.norm_epsilon as f32, padding)?
            }
            Kind::Mamba(mamba) => {
                let convolved = silu(&convolved)?;
                let rows = mamba.rows(x, &convolved, padding)?;
                let read;
                (read, updates, left) = self.walk(state.matrices, &before, &rows, course)?;
                mamba.gated(x, &read, &convolved, config.inner_epsilon() as f32, padding)?
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
            if let Some(place) = course.plan.logs[course.first + row] {
                self.memory.write(place, Record { inputs: inputs.narrow(0, row, 1)?, update });
            }
        }
        self.output.forward(&mixed, padding)
    }

    /// Rows that convolutions read, `[text + nodes, channels]`: the end of the text, then all nodes
    /// of the tree. Also returns the number of rows that are text.
    fn seen(
        &self,
        state: &State,
        before: &[Record],
        inputs: &Tensor,
        course: &Course<'_>,
    ) -> Result<(Tensor, usize)> {
        let mut all = vec![state.tail.clone()];
        all.extend(before.iter().map(|record| record.inputs.clone()));
        for place in course.plan.logs[..course.first].iter().flatten() {
            all.push(self.memory.record(*place)?.inputs);
        }
        all.push(inputs.clone());
        Ok((Tensor::cat(&all, 0)?, self.of.taps - 1 + before.len()))
    }

    /// Convolves every node with its ancestors, `[nodes, channels]`.
    fn convolve(&self, seen: &Tensor, text: usize, course: &Course<'_>) -> Result<Tensor> {
        let taps = self.of.taps;
        let mut from = Vec::new();
        for node in course.first..course.tree.len() {
            let mut rows = vec![0u32; taps];
            let mut at = text + node;
            for row in rows.iter_mut().rev() {
                *row = at as u32;
                // The first node of a path follows the end of the text.
                let node = at.checked_sub(text);
                let parent = node.and_then(|node| course.tree.parent(node));
                at = parent.map_or(at.min(text).saturating_sub(1), |parent| text + parent);
            }
            from.extend(rows);
        }
        let nodes = course.tree.len() - course.first;
        let from = Tensor::new(from, seen.device())?;
        let rows = seen.index_select(&from, 0)?.reshape((nodes, taps, self.of.channels))?;
        let convolved = rows.broadcast_mul(&self.kernel)?.sum(1)?;
        self.bias.as_ref().map_or(Ok(convolved.clone()), |bias| convolved.broadcast_add(bias))
    }

    /// Updates the matrices along the tree. Returns the outputs, `[nodes, values * value_size]`,
    /// each row's update, and the matrices before the tree and after the nodes without step logs.
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
        // Matrices after each node, as long as it has children to come.
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
            let update = match (node.checked_sub(course.first), course.plan.logs[node]) {
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
