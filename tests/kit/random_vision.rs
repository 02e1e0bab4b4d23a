//! A small random language model with a vision model, written as a Hugging Face folder and as a
//! GGUF file with its mmproj file.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use candle_core::Tensor;
use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use foretoken_model::Picture;
use serde_json::{Value as Json, json};

use crate::head_files::{made_up, made_up_tensor};
use crate::random_family::{RandomFamily, family};

const WIDTH: usize = 64;
const INTERMEDIATE: usize = 96;
const LAYERS: usize = 2;
const HEADS: usize = 4;
const PATCH: usize = 4;
/// Learned positions per side.
const GRID: usize = 8;
const MERGE: usize = 2;
/// Pixels per side of a tile, and of a picture's longest edge.
const TILE: usize = PATCH * GRID;
const LONGEST: usize = 96;
/// Pixels of the smallest and the largest picture of Qwen.
const PIXELS: (usize, usize) = (64 * 64, 100 * 64);

/// Language model with a vision model before it is written.
#[derive(Clone)]
pub struct RandomVision {
    /// `model_type` in config.json.
    pub label: &'static str,
    pub text: RandomFamily,
    /// Tensors of the vision model under their Hugging Face names.
    tensors: BTreeMap<String, Tensor>,
}

/// A picture of numbers that follow from a name.
pub fn made_up_picture(name: &str, width: usize, height: usize) -> Picture {
    let bytes = made_up(name, width * height * 3).into_iter().map(|number| ((number + 1.0) * 127.5) as u8);
    Picture::new(width, height, bytes.collect()).unwrap()
}

impl RandomVision {
    /// Every kind of vision model.
    pub fn all() -> Vec<Self> {
        vec![Self::new("smolvlm", "llama"), Self::new("qwen3_5", "qwen35")]
    }

    /// SmolVLM's kind.
    pub fn smolvlm() -> Self {
        Self::new("smolvlm", "llama")
    }

    fn new(label: &'static str, text: &str) -> Self {
        let mut vision = Self { label, text: family(text), tensors: BTreeMap::new() };
        vision.text.config["special_tokens"] = match label {
            "smolvlm" => json!([
                "<image>",
                "<fake_token_around_image>",
                "<global-img>",
                "<row_1_col_1>",
                "<row_1_col_2>",
                "<row_1_col_3>",
                "<row_2_col_1>",
                "<row_2_col_2>",
                "<row_2_col_3>",
                "<|im_start|>",
                "<|im_end|>"
            ]),
            _ => {
                json!(["<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|im_start|>", "<|im_end|>"])
            }
        };
        vision.text.config["max_position_embeddings"] = json!(1024);
        vision.draw();
        vision
    }

    fn is_qwen(&self) -> bool {
        self.label == "qwen3_5"
    }

    fn draw(&mut self) {
        let hidden = self.text.size("hidden_size");
        let merged = MERGE * MERGE * WIDTH;
        for (_, theirs, outputs, inputs) in self.matrices(hidden, merged) {
            let weight = made_up_tensor(&theirs, &[outputs, inputs], 0.0, 0.2);
            self.tensors.insert(format!("{theirs}.weight"), weight);
            if !theirs.ends_with("modality_projection.proj") {
                let bias = made_up_tensor(&format!("{theirs} bias"), &[outputs], 0.0, 0.3);
                self.tensors.insert(format!("{theirs}.bias"), bias);
            }
        }
        for (_, theirs) in self.norms() {
            let (weight, bias) = (format!("{theirs}.weight"), format!("{theirs}.bias"));
            self.tensors.insert(weight.clone(), made_up_tensor(&weight, &[WIDTH], 1.0, 0.3));
            self.tensors.insert(bias.clone(), made_up_tensor(&bias, &[WIDTH], 0.0, 0.3));
        }
        let [positions, patches] = self.outer();
        self.tensors.insert(
            format!("{positions}.weight"),
            made_up_tensor(positions, &[GRID * GRID, WIDTH], 0.0, 0.5),
        );
        let shape: &[usize] =
            if self.is_qwen() { &[WIDTH, 3, 2, PATCH, PATCH] } else { &[WIDTH, 3, PATCH, PATCH] };
        self.tensors.insert(format!("{patches}.weight"), made_up_tensor(patches, shape, 0.0, 0.2));
        let bias = format!("{patches}.bias");
        self.tensors.insert(bias.clone(), made_up_tensor(&bias, &[WIDTH], 0.0, 0.3));
    }

    /// Names of the learned positions and of the embedding of patches.
    fn outer(&self) -> [&'static str; 2] {
        match self.is_qwen() {
            true => ["model.visual.pos_embed", "model.visual.patch_embed.proj"],
            false => [
                "model.vision_model.embeddings.position_embedding",
                "model.vision_model.embeddings.patch_embedding",
            ],
        }
    }

    /// GGUF name, Hugging Face name and shape of each matrix.
    fn matrices(&self, hidden: usize, merged: usize) -> Vec<(String, String, usize, usize)> {
        let mut matrices = Vec::new();
        for layer in 0..LAYERS {
            let parts: &[(&str, &str, usize, usize)] = match self.is_qwen() {
                true => &[
                    ("attn_qkv", "attn.qkv", 3 * WIDTH, WIDTH),
                    ("attn_out", "attn.proj", WIDTH, WIDTH),
                    ("ffn_up", "mlp.linear_fc1", INTERMEDIATE, WIDTH),
                    ("ffn_down", "mlp.linear_fc2", WIDTH, INTERMEDIATE),
                ],
                false => &[
                    ("attn_q", "self_attn.q_proj", WIDTH, WIDTH),
                    ("attn_k", "self_attn.k_proj", WIDTH, WIDTH),
                    ("attn_v", "self_attn.v_proj", WIDTH, WIDTH),
                    ("attn_out", "self_attn.out_proj", WIDTH, WIDTH),
                    ("ffn_up", "mlp.fc1", INTERMEDIATE, WIDTH),
                    ("ffn_down", "mlp.fc2", WIDTH, INTERMEDIATE),
                ],
            };
            let names = parts.iter().map(|(ours, theirs, outputs, inputs)| {
                (format!("v.blk.{layer}.{ours}"), format!("{}{theirs}", self.layer(layer)), *outputs, *inputs)
            });
            matrices.extend(names);
        }
        let named = |ours: &str, theirs: &str, outputs| (ours.to_owned(), theirs.to_owned(), outputs, merged);
        match self.is_qwen() {
            true => {
                matrices.push(named("mm.0", "model.visual.merger.linear_fc1", merged));
                matrices.push(named("mm.2", "model.visual.merger.linear_fc2", hidden));
            }
            false => matrices.push(named("mm.model.fc", "model.connector.modality_projection.proj", hidden)),
        }
        matrices
    }

    /// GGUF name and Hugging Face name of each norm.
    fn norms(&self) -> Vec<(String, String)> {
        let (first, second, last) = match self.is_qwen() {
            true => ("norm1", "norm2", "model.visual.merger.norm"),
            false => ("layer_norm1", "layer_norm2", "model.vision_model.post_layernorm"),
        };
        let of_layer = |layer: usize| {
            let name = self.layer(layer);
            [
                (format!("v.blk.{layer}.ln1"), format!("{name}{first}")),
                (format!("v.blk.{layer}.ln2"), format!("{name}{second}")),
            ]
        };
        (0..LAYERS).flat_map(of_layer).chain([("v.post_ln".to_owned(), last.to_owned())]).collect()
    }

    /// Beginning of the names of a layer's tensors.
    fn layer(&self, layer: usize) -> String {
        match self.is_qwen() {
            true => format!("model.visual.blocks.{layer}."),
            false => format!("model.vision_model.encoder.layers.{layer}."),
        }
    }

    /// Writes a Hugging Face folder and returns its path.
    pub fn write_folder(&self, path: &Path) -> PathBuf {
        let folder = path.join(self.label);
        fs::create_dir_all(&folder).unwrap();
        let mut language = self.text.config.clone();
        let keys = language.as_object_mut().unwrap();
        keys.remove("architectures");
        keys.remove("special_tokens");
        if self.is_qwen() {
            language["model_type"] = json!("qwen3_5_text");
        } else {
            language["model_type"] = json!("llama");
        }
        let prefix = if self.is_qwen() { "model.language_model." } else { "model.text_model." };
        let config = json!({
            "architectures": [if self.is_qwen() { "Qwen3_5ForConditionalGeneration" } else { "SmolVLMForConditionalGeneration" }],
            "model_type": self.label, "text_config": language, "vision_config": self.vision_config(),
            "scale_factor": MERGE, "tie_word_embeddings": self.text.ties_embeddings(),
            "image_token_id": self.image_token(),
        });
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        let (least, most) = PIXELS;
        let processor = match self.is_qwen() {
            true => json!({
                "size": {"shortest_edge": least, "longest_edge": most}, "patch_size": PATCH,
                "merge_size": MERGE, "temporal_patch_size": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
            }),
            false => json!({
                "size": {"longest_edge": LONGEST}, "max_image_size": {"longest_edge": TILE},
                "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
            }),
        };
        fs::write(folder.join("preprocessor_config.json"), processor.to_string()).unwrap();
        let of_text = self.text.tensors.iter().map(|(name, tensor)| match name.strip_prefix("model.") {
            Some(rest) => (format!("{prefix}{rest}"), tensor.clone()),
            None => (name.clone(), tensor.clone()),
        });
        let of_vision = self.tensors.iter().map(|(name, tensor)| (name.clone(), tensor.clone()));
        let tensors: HashMap<String, Tensor> = of_text.chain(of_vision).collect();
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        folder
    }

    fn image_token(&self) -> usize {
        let special = self.text.config["special_tokens"].as_array().unwrap();
        self.text.size("vocab_size") - special.len()
    }

    fn vision_config(&self) -> Json {
        match self.is_qwen() {
            true => json!({
                "model_type": "qwen3_5_vision", "depth": LAYERS, "hidden_size": WIDTH, "intermediate_size": INTERMEDIATE,
                "num_heads": HEADS, "patch_size": PATCH, "spatial_merge_size": MERGE, "temporal_patch_size": 2,
                "out_hidden_size": self.text.size("hidden_size"), "num_position_embeddings": GRID * GRID,
                "hidden_act": "gelu_pytorch_tanh", "in_channels": 3,
            }),
            false => json!({
                "model_type": "smolvlm_vision", "num_hidden_layers": LAYERS, "hidden_size": WIDTH,
                "intermediate_size": INTERMEDIATE, "num_attention_heads": HEADS, "patch_size": PATCH,
                "image_size": TILE, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
            }),
        }
    }

    /// Writes a GGUF file of the language model, with the mmproj file beside it. Returns both
    /// paths.
    pub fn write_gguf(&self, path: &Path, quantisation: GgmlDType) -> (PathBuf, PathBuf) {
        let model = path.join(format!("{}.gguf", self.label));
        self.text.write_gguf(&model, quantisation, |_| true);
        let mmproj = path.join(format!("mmproj-{}.gguf", self.label));
        let tensors = self.mmproj_tensors();
        let tensors: Vec<(String, QTensor)> = tensors
            .into_iter()
            .map(|(name, tensor)| (name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap()))
            .collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let metadata = self.mmproj_keys();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
        gguf_file::write(&mut File::create(&mmproj).unwrap(), &metadata, &tensors).unwrap();
        (model, mmproj)
    }

    fn mmproj_tensors(&self) -> Vec<(String, Tensor)> {
        let parts = ["weight", "bias"];
        let matrices = self.matrices(1, 1).into_iter().map(|(ours, theirs, ..)| (ours, theirs));
        let [positions, patches] = self.outer();
        let all = matrices.chain(self.norms()).chain([
            ("v.position_embd".to_owned(), positions.to_owned()),
            ("v.patch_embd".to_owned(), patches.to_owned()),
        ]);
        let named = all.flat_map(|(ours, theirs)| {
            parts.map(|part| {
                Some((format!("{ours}.{part}"), self.tensors.get(&format!("{theirs}.{part}"))?.clone()))
            })
        });
        let mut tensors: Vec<(String, Tensor)> = named.flatten().collect();
        if self.is_qwen() {
            // llama.cpp's converter writes the kernels of the two frames apart.
            let frames = tensors.iter().position(|(name, _)| name == "v.patch_embd.weight").unwrap();
            let (_, both) = tensors.remove(frames);
            for (frame, name) in ["v.patch_embd.weight", "v.patch_embd.weight.1"].into_iter().enumerate() {
                let kernel = both.narrow(2, frame, 1).unwrap().squeeze(2).unwrap().contiguous().unwrap();
                tensors.push((name.to_owned(), kernel));
            }
        }
        tensors
    }

    fn mmproj_keys(&self) -> Vec<(String, Value)> {
        let text = |text: &str| Value::String(text.into());
        let size = |size: usize| Value::U32(size as u32);
        let halves = || Value::Array(vec![Value::F32(0.5); 3]);
        let kind = if self.is_qwen() { "qwen3vl_merger" } else { "idefics3" };
        let own = [
            ("image_size", size(TILE)),
            ("patch_size", size(PATCH)),
            ("embedding_length", size(WIDTH)),
            ("feed_forward_length", size(INTERMEDIATE)),
            ("block_count", size(LAYERS)),
            ("projection_dim", size(self.text.size("hidden_size"))),
            ("attention.head_count", size(HEADS)),
            ("attention.layer_norm_epsilon", Value::F32(1e-6)),
            ("image_mean", halves()),
            ("image_std", halves()),
            ("preproc_image_size", size(LONGEST)),
            ("projector.scale_factor", size(MERGE)),
            ("spatial_merge_size", size(MERGE)),
        ];
        let own = own.map(|(key, value)| (format!("clip.vision.{key}"), value));
        let general = [
            ("general.architecture", text("clip")),
            ("general.type", text("mmproj")),
            ("clip.projector_type", text(kind)),
            ("clip.has_vision_encoder", Value::Bool(true)),
            ("clip.use_gelu", Value::Bool(true)),
        ];
        general.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(own).collect()
    }
}
