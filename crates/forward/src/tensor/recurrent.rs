//! Layers that keep a state in place of keys and values: gated short convolutions (LFM2), Gated
//! DeltaNet and Mamba-2.

use candle_core::{DType, Result, Tensor};
use candle_nn::ops::silu;
use foretoken_model::error::Result as Loaded;
use foretoken_model::{Heads, ModelConfig, Recurrence, RecurrentKind};

use super::delta::Delta;
use super::mamba::Mamba;
use super::memory::{RecurrentMemory, RecurrentPass, State, StepRecord, Update};
use super::origin::Origin;
use super::row::Row;
use super::stack::{Padding, Stack};

pub struct Recurrent {
    recurrence: Recurrence,
    /// Projection to the convolution's inputs. In a gated convolution it gives b, c and v: b * v is
    /// convolved, then multiplied by c.
    projection: Stack,
    kernel: Tensor,       // [taps, channels], the oldest row first
    bias: Option<Tensor>, // [channels]
    kind: Kind,
    output: Stack,
    memory: RecurrentMemory,
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
    pub fn load(origin: Origin<'_>, recurrence: &Recurrence) -> Loaded<Self> {
        let names = match recurrence.kind {
            RecurrentKind::ShortConv => ["shortconv.in_proj", "shortconv.conv.weight", "shortconv.out_proj"],
            RecurrentKind::Mamba => ["ssm_inputs", "ssm_conv1d.weight", "ssm_out"],
            _ => ["attn_qkv", "ssm_conv1d.weight", "ssm_out"],
        };
        let device = origin.weights.device();
        let Heads { values, key_size, value_size, .. } = recurrence.heads;
        let empty = State {
            tail: Tensor::zeros((recurrence.taps - 1, recurrence.channels), DType::F32, device)?,
            matrices: Tensor::zeros((values, key_size, value_size), DType::F32, device)?,
        };
        let kind = match recurrence.kind {
            RecurrentKind::Delta => Kind::Delta(Delta::load(origin, &recurrence.heads)?),
            RecurrentKind::Mamba => Kind::Mamba(Mamba::load(origin, recurrence)?),
            _ => Kind::Convolution,
        };
        Ok(Self {
            projection: origin.stack(&names[..1])?,
            kernel: origin
                .vector(names[1])?
                .reshape((recurrence.channels, recurrence.taps))?
                .t()?
                .contiguous()?,
            bias: recurrence.biased.then(|| origin.vector("ssm_conv1d.bias")).transpose()?,
            kind,
            output: origin.stack(&names[2..])?,
            memory: RecurrentMemory::new(empty),
            recurrence: recurrence.clone(),
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
        pass: &RecurrentPass<'_>,
        padding: Padding,
    ) -> Result<Tensor> {
        let (projected, width) = (self.projection.forward(x, padding)?, self.recurrence.channels);
        let inputs = match self.kind {
            Kind::Convolution => (projected.narrow(1, 0, width)? * projected.narrow(1, 2 * width, width)?)?,
            _ => projected.clone(),
        };
        let (state, before) = self.memory.initial(&pass.plan)?;
        let (conv_rows, text_rows) = self.conv_rows(&state, &before, &inputs, pass)?;
        let convolved = self.convolve(&conv_rows, text_rows, pass)?;
        let mut end_states = (state.matrices.clone(), state.matrices.clone());
        let mut updates = vec![None; x.dim(0)?];
        let mixed = match &self.kind {
            Kind::Convolution => (projected.narrow(1, width, width)? * convolved)?,
            Kind::Delta(delta) => {
                let rows = delta.rows(x, &silu(&convolved)?, &self.recurrence.heads, padding)?;
                let read;
                (read, updates, end_states) = self.walk(state.matrices, &before, &rows, pass)?;
                delta.gated(x, &read, config.norm_epsilon as f32, padding)?
            }
            Kind::Mamba(mamba) => {
                let convolved = silu(&convolved)?;
                let rows = mamba.rows(x, &convolved, padding)?;
                let read;
                (read, updates, end_states) = self.walk(state.matrices, &before, &rows, pass)?;
                mamba.gated(x, &read, &convolved, config.inner_epsilon() as f32, padding)?
            }
        };
        let tail = |end: usize| conv_rows.narrow(0, end + 1 - self.recurrence.taps, self.recurrence.taps - 1);
        if let Some(to) = pass.plan.to {
            self.memory.write_state(to, State { tail: tail(text_rows)?, matrices: end_states.0 });
        }
        if let Some(end) = pass.plan.end {
            self.memory
                .write_state(end, State { tail: tail(text_rows + pass.skipped())?, matrices: end_states.1 });
        }
        for (row, update) in updates.into_iter().enumerate() {
            if let Some(slot) = pass.plan.logs[pass.first + row] {
                self.memory.write_record(slot, StepRecord { inputs: inputs.narrow(0, row, 1)?, update });
            }
        }
        self.output.forward(&mixed, padding)
    }

    /// Rows that convolutions read, `[text + nodes, channels]`: the end of the text, then all nodes
    /// of the tree. Also returns the number of rows that are text.
    fn conv_rows(
        &self,
        state: &State,
        before: &[StepRecord],
        inputs: &Tensor,
        pass: &RecurrentPass<'_>,
    ) -> Result<(Tensor, usize)> {
        let mut all = vec![state.tail.clone()];
        all.extend(before.iter().map(|record| record.inputs.clone()));
        for slot in pass.plan.logs[..pass.first].iter().flatten() {
            all.push(self.memory.record(*slot)?.inputs);
        }
        all.push(inputs.clone());
        Ok((Tensor::cat(&all, 0)?, self.recurrence.taps - 1 + before.len()))
    }

    /// Convolves every node with its ancestors, `[nodes, channels]`.
    fn convolve(&self, conv_rows: &Tensor, text_rows: usize, pass: &RecurrentPass<'_>) -> Result<Tensor> {
        let taps = self.recurrence.taps;
        let mut from = Vec::new();
        for node in pass.first..pass.tree.len() {
            let mut rows = vec![0u32; taps];
            let mut at = text_rows + node;
            for row in rows.iter_mut().rev() {
                *row = at as u32;
                // The first node of a path follows the end of the text.
                let node = at.checked_sub(text_rows);
                let parent = node.and_then(|node| pass.tree.parent(node));
                at = parent.map_or(at.min(text_rows).saturating_sub(1), |parent| text_rows + parent);
            }
            from.extend(rows);
        }
        let nodes = pass.tree.len() - pass.first;
        let from = Tensor::new(from, conv_rows.device())?;
        let rows = conv_rows.index_select(&from, 0)?.reshape((nodes, taps, self.recurrence.channels))?;
        let convolved = rows.broadcast_mul(&self.kernel)?.sum(1)?;
        self.bias.as_ref().map_or(Ok(convolved.clone()), |bias| convolved.broadcast_add(bias))
    }

    /// Updates the matrices along the tree. Returns the outputs, `[nodes, values * value_size]`,
    /// each row's update, and the matrices before the tree and after the nodes without step logs.
    #[allow(clippy::type_complexity, reason = "named where it is taken apart")]
    fn walk(
        &self,
        begin: Tensor,
        before: &[StepRecord],
        rows: &[Row],
        pass: &RecurrentPass<'_>,
    ) -> Result<(Tensor, Vec<Option<Update>>, (Tensor, Tensor))> {
        let applied = |matrices: Tensor, update: &Option<Update>| match update {
            Some(update) => update.apply(&matrices),
            None => Ok(matrices),
        };
        let begin = before.iter().try_fold(begin, |matrices, record| applied(matrices, &record.update))?;
        let mut end = begin.clone();
        // Matrices after each node, as long as it has children to come.
        let mut after: Vec<Option<Tensor>> = vec![None; pass.tree.len()];
        let mut children = vec![0; pass.tree.len()];
        let parents = (0..pass.tree.len()).filter_map(|node| pass.tree.parent(node));
        parents.for_each(|parent| children[parent] += 1);
        let (mut read, mut updates) = (Vec::new(), Vec::new());
        for node in 0..pass.tree.len() {
            let parent = pass.tree.parent(node);
            let matrices = match parent {
                None => begin.clone(),
                Some(parent) => after[parent].clone().unwrap_or_else(|| begin.clone()),
            };
            let update = match (node.checked_sub(pass.first), pass.plan.logs[node]) {
                (Some(row), _) => {
                    let (found, update) = rows[row].read(&matrices)?;
                    read.push(found);
                    updates.push(Some(update.clone()));
                    Some(update)
                }
                (None, Some(slot)) => self.memory.record(slot)?.update,
                (None, None) => None,
            };
            if children[node] > 0 {
                after[node] = Some(applied(matrices, &update)?);
            }
            if node + 1 == pass.skipped() {
                end = after[node].clone().unwrap_or(end);
            }
            if let Some(parent) = parent {
                children[parent] -= 1;
                if children[parent] == 0 {
                    after[parent] = None;
                }
            }
        }
        Ok((Tensor::stack(&read, 0)?, updates, (begin, end)))
    }
}
