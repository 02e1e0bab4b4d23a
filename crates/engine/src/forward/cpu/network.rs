//! A model's weights in the form the kernels take, and how they are brought into it.

use std::sync::Arc;

use candle_core::quantized::GgmlDType;

use super::panels::{Format, Panels, Unfit};
use super::simd::LANES;
use crate::error::Result;
use crate::model::weights::{EMBEDDING, OUTPUT};
use crate::model::{ModelConfig, Weights};

/// All weights of a model.
#[derive(Debug)]
pub struct Network {
    pub embedding: Arc<Panels>, // [vocabulary, hidden]
    pub layers: Vec<Layer>,
    pub output_norm: Vec<f32>, // [hidden]
    pub output: Arc<Panels>,   // [vocabulary, hidden]
}

/// Those of a layer. Norms are filled up with zeros to whole vectors.
#[derive(Debug)]
pub struct Layer {
    pub attention_norm: Vec<f32>,
    pub query: Panels, // [heads * head_size, hidden]
    pub key: Panels,   // [kv_heads * head_size, hidden]
    pub value: Panels, // [kv_heads * head_size, hidden]
    pub attention_output: Panels,
    pub feed_forward_norm: Vec<f32>,
    pub gate: Panels, // [intermediate, hidden]
    pub up: Panels,   // [intermediate, hidden]
    pub down: Panels, // [hidden, intermediate]
}

impl Network {
    /// # Errors
    /// `Error::BadModel` for a tensor that is missing, holds numbers that are not finite, or finds no
    /// memory.
    pub fn load(weights: &Weights, config: &ModelConfig) -> Result<Self> {
        let layers = (0..config.layers).map(|index| Layer::load(weights, index)).collect::<Result<_>>()?;
        let embedding = Arc::new(panels(weights, EMBEDDING)?);
        let output =
            if config.tied_embeddings { Arc::clone(&embedding) } else { Arc::new(panels(weights, OUTPUT)?) };
        Ok(Self { layers, output_norm: norm(weights, "output_norm.weight")?, embedding, output })
    }

    /// What a pass reads.
    pub fn matrices(&self) -> impl Iterator<Item = &Panels> {
        self.layers.iter().flat_map(Layer::matrices).chain([self.output.as_ref()])
    }
}

impl Layer {
    fn load(weights: &Weights, index: usize) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let panels = |part| panels(weights, &name(part));
        Ok(Self {
            attention_norm: norm(weights, &name("attn_norm"))?,
            query: panels("attn_q")?,
            key: panels("attn_k")?,
            value: panels("attn_v")?,
            attention_output: panels("attn_output")?,
            feed_forward_norm: norm(weights, &name("ffn_norm"))?,
            gate: panels("ffn_gate")?,
            up: panels("ffn_up")?,
            down: panels("ffn_down")?,
        })
    }

    fn matrices(&self) -> [&Panels; 7] {
        let Self { query, key, value, attention_output, gate, up, down, .. } = self;
        [query, key, value, attention_output, gate, up, down]
    }
}

/// The format of a type of weights, where there is one that loses nothing.
fn format(dtype: GgmlDType) -> Option<Format> {
    Some(match dtype {
        GgmlDType::Q8_0 => Format::Q8_0,
        GgmlDType::Q4_0 => Format::Q4_0,
        GgmlDType::Q4_1 => Format::Q4_1,
        GgmlDType::Q5_0 => Format::Q5_0,
        GgmlDType::Q5_1 => Format::Q5_1,
        GgmlDType::Q4K => Format::Q4K,
        GgmlDType::Q5K => Format::Q5K,
        GgmlDType::Q6K => Format::Q6K,
        GgmlDType::F16 => Format::F16,
        GgmlDType::BF16 => Format::Bf16,
        GgmlDType::F32 => Format::F32,
        _ => return None,
    })
}

fn panels(weights: &Weights, name: &str) -> Result<Panels> {
    let stored = weights.stored(name)?;
    let [rows, inputs] = stored.shape[..] else {
        return Err(weights.bad(format!("{name} as a matrix"), format!("the shape {:?}", stored.shape)));
    };
    let packed = match format(stored.dtype).filter(|_| !weights.rounds(stored)) {
        Some(format) => Panels::pack(format, rows, inputs, stored.bytes),
        None => Panels::pack(Format::Q8_0, rows, inputs, &weights.in_eight_bits(name)?.data()?),
    };
    weights.release(name);
    packed.map_err(|unfit| {
        weights.bad(format!("{rows} times {inputs} finite numbers in {name}"), describe(&unfit))
    })
}

fn describe(unfit: &Unfit) -> String {
    match unfit {
        Unfit::Size { expected, found } => format!("{found} bytes where {expected} are needed"),
        Unfit::NotFinite { row } => format!("infinity or NaN in row {row}"),
        Unfit::Memory { bytes } => format!("no memory: the system did not give {bytes} bytes"),
    }
}

/// A vector, filled up with zeros to whole vectors.
fn norm(weights: &Weights, name: &str) -> Result<Vec<f32>> {
    let mut numbers: Vec<f32> = weights.vector(name)?.to_vec1()?;
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(weights.bad(format!("finite numbers in {name}"), "infinity or NaN".to_owned()));
    }
    numbers.resize(numbers.len().next_multiple_of(LANES), 0.0);
    Ok(numbers)
}
