//! Vision files (mmproj) of any size.

use std::collections::BTreeMap;

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

use crate::{Gguf, text};

/// Sizes of a vision model.
#[derive(Debug, Clone, Copy)]
pub struct VisionSizes {
    pub width: usize,
    pub intermediate: usize,
    pub layers: usize,
    pub heads: usize,
    /// Pixels per side of a patch.
    pub patch: usize,
    /// Patches per side of a tile.
    pub grid: usize,
    /// Patches per side that become one embedding.
    pub merge: usize,
    /// Width of an embedding, that of the language model.
    pub output: usize,
}

impl VisionSizes {
    /// SmolVLM 256M's: SigLIP base with tiles of 512 pixels.
    pub fn smolvlm(output: usize) -> Self {
        Self { width: 768, intermediate: 3072, layers: 12, heads: 12, patch: 16, grid: 32, merge: 4, output }
    }
}

impl Gguf {
    /// Vision file with the projector `kind`, `idefics3` or `qwen3vl_merger`.
    pub fn vision(kind: &str, sizes: VisionSizes) -> Self {
        let mut gguf = Self { values: vision_keys(kind, sizes), ..Self::default() };
        let VisionSizes { width, intermediate, layers, patch, grid, merge, output, .. } = sizes;
        let merged = merge * merge * width;
        let is_qwen = kind == "qwen3vl_merger";
        for layer in 0..layers {
            let name = |part: &str| format!("v.blk.{layer}.{part}");
            match is_qwen {
                true => gguf.linear(&name("attn_qkv"), 3 * width, width),
                false => {
                    ["attn_q", "attn_k", "attn_v"]
                        .iter()
                        .for_each(|part| gguf.linear(&name(part), width, width));
                }
            }
            gguf.linear(&name("attn_out"), width, width);
            gguf.linear(&name("ffn_up"), intermediate, width);
            gguf.linear(&name("ffn_down"), width, intermediate);
            gguf.vectors(&name("ln1"), width);
            gguf.vectors(&name("ln2"), width);
        }
        gguf.vectors("v.post_ln", width);
        gguf.noise("v.patch_embd.bias", &[width], width);
        gguf.noise("v.patch_embd.weight", &[width, 3, patch, patch], 3 * patch * patch);
        gguf.noise("v.position_embd.weight", &[grid * grid, width], width);
        if is_qwen {
            gguf.noise("v.patch_embd.weight.1", &[width, 3, patch, patch], 3 * patch * patch);
            gguf.linear("mm.0", merged, merged);
            gguf.linear("mm.2", output, merged);
        } else {
            gguf.noise("mm.model.fc.weight", &[output, merged], merged);
        }
        gguf
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.noise(&format!("{name}.weight"), &[outputs, inputs], inputs);
        self.noise(&format!("{name}.bias"), &[outputs], inputs);
    }

    fn vectors(&mut self, name: &str, width: usize) {
        self.noise(&format!("{name}.weight"), &[width], 1);
        self.noise(&format!("{name}.bias"), &[width], width);
    }

    /// Adds a tensor of made-up values whose variance is that of trained weights over `inputs`.
    fn noise(&mut self, name: &str, shape: &[usize], inputs: usize) {
        let bound = (3.0 / inputs as f32).sqrt();
        let mut state = name.bytes().fold(1u32, |state, byte| state.wrapping_mul(31) ^ u32::from(byte)) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            bound * (state as f32 / u32::MAX as f32 * 2.0 - 1.0)
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
        let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        self.tensors.insert(name.to_owned(), QTensor::quantize(&tensor, GgmlDType::F32).unwrap());
    }
}

fn vision_keys(kind: &str, sizes: VisionSizes) -> BTreeMap<String, Value> {
    let VisionSizes { width, intermediate, layers, heads, patch, grid, merge, output } = sizes;
    let numbers = [
        ("image_size", patch * grid),
        ("patch_size", patch),
        ("embedding_length", width),
        ("feed_forward_length", intermediate),
        ("block_count", layers),
        ("projection_dim", output),
        ("attention.head_count", heads),
        ("preproc_image_size", 4 * patch * grid),
        ("projector.scale_factor", merge),
        ("spatial_merge_size", merge),
    ];
    let numbers = numbers.map(|(key, number)| (key, Value::U32(number as u32)));
    let halves = || Value::Array(vec![Value::F32(0.5); 3]);
    let others = [
        ("attention.layer_norm_epsilon", Value::F32(1e-6)),
        ("image_mean", halves()),
        ("image_std", halves()),
    ];
    let vision = numbers.into_iter().chain(others);
    let vision = vision.map(|(key, value)| (format!("clip.vision.{key}"), value));
    let general = [("general.architecture", text("clip")), ("clip.projector_type", text(kind))];
    vision.chain(general.map(|(key, value)| (key.to_owned(), value))).collect()
}
