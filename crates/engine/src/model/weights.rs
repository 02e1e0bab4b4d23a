//! A model's weights under canonical names (GGUF's), whatever the format: the table of tensors a
//! model must have, their shapes, and handing them out. Keeps nothing in memory itself.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use super::config::ModelConfig;
use super::mapped::Tensors;
use crate::error::{Error, Result};

/// The name of the embedding, `[vocabulary, hidden]`.
pub const EMBEDDING: &str = "token_embd.weight";
/// The name of the output matrix, `[vocabulary, hidden]`; absent when the embedding is tied to it.
pub const OUTPUT: &str = "output.weight";
/// GGUF's divisors of the rotary frequencies, `[head_size / 2]`.
pub(super) const ROPE_FACTORS: &str = "rope_freqs.weight";

/// A dimension of a tensor, by what it counts.
#[derive(Clone, Copy)]
enum Dimension {
    Vocabulary,
    Hidden,
    Intermediate,
    /// heads * head_size
    Queries,
    /// kv_heads * head_size
    KeyValues,
}

/// A tensor of the Llama family: canonical name, Hugging Face name, shape.
struct Part {
    name: &'static str,
    hugging_face: &'static str,
    shape: &'static [Dimension],
}

const fn part(name: &'static str, hugging_face: &'static str, shape: &'static [Dimension]) -> Part {
    Part { name, hugging_face, shape }
}

use Dimension::{Hidden, Intermediate, KeyValues, Queries, Vocabulary};

const OUTER: [Part; 3] = [
    part(EMBEDDING, "model.embed_tokens.weight", &[Vocabulary, Hidden]),
    part("output_norm.weight", "model.norm.weight", &[Hidden]),
    part(OUTPUT, "lm_head.weight", &[Vocabulary, Hidden]),
];

/// Those of every layer, after `blk.{i}.` and `model.layers.{i}.`.
const LAYER: [Part; 9] = [
    part("attn_norm.weight", "input_layernorm.weight", &[Hidden]),
    part("attn_q.weight", "self_attn.q_proj.weight", &[Queries, Hidden]),
    part("attn_k.weight", "self_attn.k_proj.weight", &[KeyValues, Hidden]),
    part("attn_v.weight", "self_attn.v_proj.weight", &[KeyValues, Hidden]),
    part("attn_output.weight", "self_attn.o_proj.weight", &[Hidden, Queries]),
    part("ffn_norm.weight", "post_attention_layernorm.weight", &[Hidden]),
    part("ffn_gate.weight", "mlp.gate_proj.weight", &[Intermediate, Hidden]),
    part("ffn_up.weight", "mlp.up_proj.weight", &[Intermediate, Hidden]),
    part("ffn_down.weight", "mlp.down_proj.weight", &[Hidden, Intermediate]),
];

/// The canonical name of a Hugging Face tensor; `None` for one the family does not have.
pub(super) fn canonical(hugging_face: &str) -> Option<String> {
    if let Some(part) = OUTER.iter().find(|p| p.hugging_face == hugging_face) {
        return Some(part.name.into());
    }
    let (layer, rest) = hugging_face.strip_prefix("model.layers.")?.split_once('.')?;
    let layer: usize = layer.parse().ok()?;
    let part = LAYER.iter().find(|p| p.hugging_face == rest)?;
    Some(format!("blk.{layer}.{}", part.name))
}

/// Checks that exactly the family's tensors are there, in the shapes the config asks for. A tensor
/// that would be left out (a bias, an adapter) means another computation than ours.
///
/// # Errors
/// `Error::BadModel` naming the first tensor that is missing, unknown or of another shape.
pub(super) fn check(tensors: &Tensors, config: &ModelConfig) -> Result<()> {
    let mut expected = 0;
    for (name, shape) in expected_tensors(config) {
        let stored = tensors.stored.get(&name).ok_or_else(|| tensors.missing(&name))?;
        if stored.shape != shape {
            return Err(Error::BadModel {
                path: tensors.path.clone(),
                expected: format!("{name} of shape {shape:?}"),
                found: format!("{:?}", stored.shape),
                hint: "Choose another file of this model.",
            });
        }
        expected += 1;
    }
    let known = tensors.stored.keys().filter(|name| *name != ROPE_FACTORS).count();
    if known == expected {
        return Ok(());
    }
    let wanted: std::collections::BTreeSet<String> = expected_tensors(config).map(|(name, _)| name).collect();
    let unknown = tensors.stored.keys().find(|n| *n != ROPE_FACTORS && !wanted.contains(*n));
    Err(Error::BadModel {
        path: tensors.path.clone(),
        expected: format!("the tensors of {} alone", config.architecture),
        found: unknown.map_or_else(String::new, |name| format!("{name} beside them")),
        hint: "Choose another model.",
    })
}

fn expected_tensors(config: &ModelConfig) -> impl Iterator<Item = (String, Vec<usize>)> {
    let outer = OUTER
        .iter()
        .filter(|p| p.name != OUTPUT || !config.tied_embeddings)
        .map(|p| (p.name.to_owned(), shape(p, config)));
    let layers = (0..config.layers).flat_map(move |layer| {
        LAYER.iter().map(move |p| (format!("blk.{layer}.{}", p.name), shape(p, config)))
    });
    outer.chain(layers)
}

fn shape(part: &Part, config: &ModelConfig) -> Vec<usize> {
    let size = |dimension: &Dimension| match dimension {
        Vocabulary => config.vocabulary,
        Hidden => config.hidden,
        Intermediate => config.intermediate,
        Queries => config.heads * config.head_size,
        KeyValues => config.kv_heads * config.head_size,
    };
    part.shape.iter().map(size).collect()
}

/// A tensor in the mapped file.
#[derive(Debug, Clone, Copy)]
pub struct StoredTensor<'a> {
    pub dtype: GgmlDType,
    /// Outermost dimension first: `[out, in]` for a matrix.
    pub shape: &'a [usize],
    pub bytes: &'a [u8],
}

/// Hears how many bytes of weights were handed out, of all; `Break` ends the loading.
pub type Watcher = Arc<dyn Fn(u64, u64) -> ControlFlow<()> + Send + Sync>;

/// Weights on their way to a device: every call copies one tensor out of the mapped file.
pub struct Weights {
    tensors: Arc<Tensors>,
    device: Device,
    eight_bits: bool,
    watcher: Option<Watcher>,
    /// Bytes handed out so far.
    done: AtomicU64,
}

impl Weights {
    pub(super) fn new(
        tensors: Arc<Tensors>,
        device: &Device,
        eight_bits: bool,
        watcher: Option<Watcher>,
    ) -> Self {
        Self { tensors, device: device.clone(), eight_bits, watcher, done: AtomicU64::new(0) }
    }

    /// Tells the watcher that a tensor of so many bytes is about to be handed out.
    fn tell(&self, bytes: usize) -> Result<()> {
        let done = self.done.fetch_add(bytes as u64, Ordering::Relaxed);
        match &self.watcher {
            Some(watcher) if watcher(done, self.tensors.bytes()).is_break() => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// A matrix `[out, in]` in the type it is stored in, or rounded as was asked for.
    ///
    /// # Errors
    /// `Error::BadModel` when there is no such tensor; `Error::Compute` from the device; `Error::Cancelled`
    /// when the watcher wants no more.
    pub fn matrix(&self, name: &str) -> Result<Arc<QTensor>> {
        let matrix = if self.rounds(self.stored(name)?) {
            self.in_eight_bits(name)?
        } else {
            self.tensors.load(name, &self.device)?
        };
        Ok(Arc::new(matrix))
    }

    /// Whether a tensor is to be rounded to Q8_0: asked for, of 16 or 32 bits, and whole blocks.
    pub fn rounds(&self, tensor: StoredTensor<'_>) -> bool {
        let plain = matches!(tensor.dtype, GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16);
        let row = tensor.shape.last().copied().unwrap_or(0);
        self.eight_bits && plain && row.is_multiple_of(GgmlDType::Q8_0.block_size())
    }

    /// A matrix as Q8_0, whatever it is stored as.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn in_eight_bits(&self, name: &str) -> Result<QTensor> {
        let stored = self.tensors.load(name, &Device::Cpu)?;
        tracing::info!("{name} is stored as {:?} and computed as Q8_0", stored.dtype());
        let numbers = stored.dequantize(&Device::Cpu)?;
        Ok(QTensor::quantize_onto(&numbers, GgmlDType::Q8_0, &self.device)?)
    }

    /// A vector as f32.
    ///
    /// # Errors
    /// As [`Self::matrix`].
    pub fn vector(&self, name: &str) -> Result<Tensor> {
        Ok(self.tensors.load(name, &self.device)?.dequantize(&self.device)?)
    }

    /// A tensor as it lies in the file.
    ///
    /// # Errors
    /// `Error::BadModel` when there is no such tensor; `Error::Cancelled` as [`Self::matrix`].
    pub fn stored(&self, name: &str) -> Result<StoredTensor<'_>> {
        let stored = self.tensors.stored.get(name).ok_or_else(|| self.tensors.missing(name))?;
        let bytes = &self.tensors.files[stored.file][stored.bytes.clone()];
        self.tell(bytes.len())?;
        Ok(StoredTensor { dtype: stored.dtype, shape: &stored.shape, bytes })
    }

    /// The system may take back the memory in which it holds this part of the file.
    pub fn release(&self, name: &str) {
        self.tensors.release(name);
    }

    /// That the model is not what it should be.
    pub fn bad(&self, expected: String, found: String) -> Error {
        Error::BadModel {
            path: self.tensors.path.clone(),
            expected,
            found,
            hint: "Choose another file of this model.",
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.stored.contains_key(name)
    }

    pub fn device(&self) -> &Device {
        &self.device
    }
}
