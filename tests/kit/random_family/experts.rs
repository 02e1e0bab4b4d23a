//! gpt-oss with experts in MXFP4 blocks, so that every format of files can hold the same values.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::Value;
use candle_core::{Device, Tensor};
use foretoken_model::ModelSource;
use foretoken_model::format::Format;
use serde_json::json;

use super::{HEADS, HIDDEN, KV_HEADS, RandomFamily, random};
use crate::gguf_file::{self, Stored};
use crate::head_files::made_up;

/// Weights of a block.
const BLOCK: usize = 32;

/// Twice the values of the 4-bit codes.
const TWICE: [f32; 16] = [0., 1., 2., 3., 4., 6., 8., 12., -0., -1., -2., -3., -4., -6., -8., -12.];

pub fn gpt_oss() -> RandomFamily {
    random(
        "gpt-oss",
        "gpt-oss",
        json!({
            "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "num_hidden_layers": 3,
            "head_dim": 64, "sliding_window": 9, "rms_norm_eps": 1e-5, "attention_bias": true,
            "num_local_experts": 6, "num_experts_per_tok": 3, "intermediate_size": 96,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "truncate": false,
                "original_max_position_embeddings": 16, "beta_fast": 4.0, "beta_slow": 0.5,
            },
        }),
    )
}

/// A stack of expert matrices: codes, and an exponent per block, `[experts, rows, columns]`.
struct Codes {
    shape: [usize; 3],
    codes: Vec<u8>,
    exponents: Vec<u8>,
}

impl Codes {
    fn made_up(name: &str, shape: [usize; 3]) -> Self {
        let count: usize = shape.iter().product();
        let of = |name: &str, count: usize, from: f32, choices: f32| -> Vec<u8> {
            let choose = |number: f32| (from + (choices * (number + 1.0) / 2.0).min(choices - 1.0)) as u8;
            made_up(name, count).into_iter().map(choose).collect()
        };
        let codes = of(name, count, 0.0, 16.0);
        Self { shape, codes, exponents: of(&format!("{name} exponents"), count / BLOCK, 120.0, 3.0) }
    }

    fn numbers(&self) -> Tensor {
        let number = |(at, &code): (usize, &u8)| {
            TWICE[usize::from(code)] * f32::powi(2.0, i32::from(self.exponents[at / BLOCK]) - 128)
        };
        let numbers: Vec<f32> = self.codes.iter().enumerate().map(number).collect();
        Tensor::from_vec(numbers, &self.shape, &Device::Cpu).unwrap()
    }

    /// Packs as Hugging Face does: neighbours share a byte, and exponents are separate.
    fn in_two(&self) -> [Tensor; 2] {
        let [experts, rows, columns] = self.shape;
        let nibbles: Vec<u8> = self.codes.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect();
        let blocks = Tensor::from_vec(nibbles, (experts, rows, columns / BLOCK, BLOCK / 2), &Device::Cpu);
        let exponents =
            Tensor::from_vec(self.exponents.clone(), (experts, rows, columns / BLOCK), &Device::Cpu);
        [blocks.unwrap(), exponents.unwrap()]
    }

    /// Packs every `step`-th row from number `first` on, as GGUF does.
    fn packed(&self, name: String, first: usize, step: usize) -> Stored {
        let [experts, rows, columns] = self.shape;
        let blocks = columns / BLOCK;
        let mut bytes = Vec::new();
        for row in (0..experts * rows).filter(|row| row % step == first) {
            for block in row * blocks..(row + 1) * blocks {
                let codes = &self.codes[block * BLOCK..][..BLOCK];
                bytes.push(self.exponents[block]);
                bytes.extend((0..BLOCK / 2).map(|at| codes[at] | codes[at + BLOCK / 2] << 4));
            }
        }
        Stored { name, shape: vec![experts, rows / step, columns], format: Format::Mxfp4, bytes }
    }
}

impl RandomFamily {
    fn codes(&self, layer: &str, part: &str) -> Codes {
        let (experts, inside) = (self.size("num_local_experts"), self.size("intermediate_size"));
        let shape =
            if part == "down_proj" { [experts, HIDDEN, inside] } else { [experts, 2 * inside, HIDDEN] };
        Codes::made_up(&format!("{}/{layer}.{part}", self.label), shape)
    }

    pub(super) fn draw_gpt_oss(&mut self, layer: &str) {
        let name = |part: &str| format!("{layer}.{part}");
        let (experts, inside) = (self.size("num_local_experts"), self.size("intermediate_size"));
        for (part, rows) in [("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)] {
            self.insert(name(&format!("self_attn.{part}_proj.bias")), &[rows * self.head_size()], 0.0, 0.5);
        }
        self.insert(name("self_attn.o_proj.bias"), &[HIDDEN], 0.0, 0.5);
        self.insert(name("self_attn.sinks"), &[HEADS], 1.0, 1.0);
        // Scores are far apart, so that rounding seldom decides the routing.
        self.insert(name("mlp.router.weight"), &[experts, HIDDEN], 0.0, 0.3);
        self.insert(name("mlp.router.bias"), &[experts], 0.0, 3.0);
        self.insert(name("mlp.experts.gate_up_proj_bias"), &[experts, 2 * inside], 0.0, 4.0);
        self.insert(name("mlp.experts.down_proj_bias"), &[experts, HIDDEN], 0.0, 0.5);
        for part in ["gate_up_proj", "down_proj"] {
            // Inputs come before outputs.
            let numbers = self.codes(layer, part).numbers().transpose(1, 2).unwrap().contiguous().unwrap();
            self.tensors.insert(name(&format!("mlp.experts.{part}")), numbers);
        }
    }

    pub(super) fn gpt_oss_keys(&self) -> Vec<(&'static str, Value)> {
        let number = |key: &str| Value::U32(self.size(key) as u32);
        vec![
            ("expert_count", number("num_local_experts")),
            ("expert_used_count", number("num_experts_per_tok")),
            ("expert_feed_forward_length", number("intermediate_size")),
        ]
    }

    /// Stacks of a layer's experts as the converter writes them.
    pub(super) fn gpt_oss_experts(&self, layer: usize) -> Vec<(String, Tensor)> {
        let of = |part: &str| &self.tensors[&format!("model.layers.{layer}.mlp.experts.{part}")];
        let every = |tensor: &Tensor, dimension: usize, first: u32| {
            let count = tensor.dim(dimension).unwrap() as u32;
            let own: Vec<u32> = (first..count).step_by(2).collect();
            tensor.index_select(&Tensor::new(own, &Device::Cpu).unwrap(), dimension).unwrap()
        };
        let turned = |tensor: Tensor| tensor.transpose(1, 2).unwrap().contiguous().unwrap();
        let name = |part: &str, ending: &str| format!("blk.{layer}.ffn_{part}_exps.{ending}");
        let mut stacks = vec![
            (name("down", "weight"), turned(of("down_proj").clone())),
            (name("down", "bias"), of("down_proj_bias").clone()),
        ];
        for (part, first) in [("gate", 0), ("up", 1)] {
            stacks.push((name(part, "weight"), turned(every(of("gate_up_proj"), 2, first))));
            stacks.push((name(part, "bias"), every(of("gate_up_proj_bias"), 1, first)));
        }
        stacks
    }

    /// Writes a folder whose experts are in MXFP4 blocks.
    pub fn folder_in_blocks(&self, path: &Path) -> ModelSource {
        ModelSource::open(&self.write_blocks(path, |_| ())).unwrap()
    }

    /// Writes that folder after a `change` of its tensors.
    pub fn write_blocks(&self, path: &Path, change: impl Fn(&mut HashMap<String, Tensor>)) -> PathBuf {
        let folder = path.join(format!("{} in blocks", self.label));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), self.config.to_string()).unwrap();
        let mut tensors: HashMap<String, Tensor> = self.tensors.clone().into_iter().collect();
        for layer in (0..self.size("num_hidden_layers")).map(|layer| format!("model.layers.{layer}")) {
            for part in ["gate_up_proj", "down_proj"] {
                let name = format!("{layer}.mlp.experts.{part}");
                let [blocks, exponents] = self.codes(&layer, part).in_two();
                tensors.remove(&name);
                tensors.insert(format!("{name}_blocks"), blocks);
                tensors.insert(format!("{name}_scales"), exponents);
            }
        }
        change(&mut tensors);
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        folder
    }

    /// Writes a GGUF file whose experts are in MXFP4, and everything else in 32 bits.
    pub fn gguf_in_blocks(&self, path: &Path) -> ModelSource {
        let path = path.join(format!("{} in blocks.gguf", self.label));
        let plain = |(name, tensor): (String, Tensor)| Stored::of(name, &tensor, Format::F32);
        let of_experts = |name: &str| name.contains("_exps.weight");
        let mut tensors: Vec<Stored> =
            self.converted_tensors().into_iter().filter(|(name, _)| !of_experts(name)).map(plain).collect();
        for layer in 0..self.size("num_hidden_layers") {
            let codes = |part| self.codes(&format!("model.layers.{layer}"), part);
            let name = |part: &str| format!("blk.{layer}.ffn_{part}_exps.weight");
            let gate_and_up = codes("gate_up_proj");
            tensors.push(gate_and_up.packed(name("gate"), 0, 2));
            tensors.push(gate_and_up.packed(name("up"), 1, 2));
            tensors.push(codes("down_proj").packed(name("down"), 0, 1));
        }
        let metadata = self.metadata();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        gguf_file::write(&path, &metadata, &tensors);
        ModelSource::open(&path).unwrap()
    }
}
