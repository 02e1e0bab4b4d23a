//! A small random language model with a vision model of every family, written as a Hugging Face
//! folder and as a GGUF file with its mmproj file. Has its own list of the names in both formats,
//! so that it does not repeat an error of the engine.

mod settings;
mod tensors;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use candle_core::Tensor;
use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use foretoken_model::Picture;
use serde_json::json;

use self::tensors::Part;
use crate::head_files::made_up;
use crate::random_family::{RandomFamily, family};

const WIDTH: usize = 64;
const INTERMEDIATE: usize = 96;
const HEADS: usize = 4;
const PATCH: usize = 4;
/// Learned positions per side.
const GRID: usize = 8;
/// Learned positions per axis in Gemma 4's tables.
const TABLE: usize = 1536;
/// Pixels per side of a tile, and of a picture's longest edge.
const TILE: usize = PATCH * GRID;
const LONGEST: usize = 96;
/// Layers whose states Qwen3-VL's language model adds.
const DEEPSTACK: [usize; 2] = [0, 2];

/// Language model with a vision model before it is written.
#[derive(Clone)]
pub struct RandomVision {
    /// `model_type` in config.json.
    pub label: &'static str,
    pub text: RandomFamily,
    /// Tensors of the vision model.
    parts: Vec<Part>,
}

/// A picture of numbers that follow from a name.
pub fn made_up_picture(name: &str, width: usize, height: usize) -> Picture {
    let bytes = made_up(name, width * height * 3).into_iter().map(|number| ((number + 1.0) * 127.5) as u8);
    Picture::new(width, height, bytes.collect()).unwrap()
}

impl RandomVision {
    /// Every kind of vision model.
    pub fn all() -> Vec<Self> {
        let kinds = [
            ("smolvlm", "llama"),
            ("qwen3_5", "qwen35"),
            ("qwen3_vl", "qwen3vl"),
            ("gemma4", "gemma4"),
            ("mistral3", "mistral3"),
        ];
        kinds.map(|(label, text)| Self::new(label, text)).to_vec()
    }

    /// SmolVLM's kind.
    pub fn smolvlm() -> Self {
        Self::new("smolvlm", "llama")
    }

    /// The kind with this label.
    pub fn named(label: &str) -> Self {
        Self::all().into_iter().find(|vision| vision.label == label).unwrap()
    }

    fn new(label: &'static str, text: &str) -> Self {
        let mut vision = Self { label, text: family(text), parts: Vec::new() };
        let special = vision.special_tokens();
        vision.text.config["special_tokens"] = json!(special);
        vision.text.config["max_position_embeddings"] = json!(1024);
        if label == "gemma4" {
            vision.text.config["pad_token_id"] = json!(vision.special_token("<pad>"));
        }
        if label == "mistral3" {
            // The epsilon of its vision model.
            vision.text.config["rms_norm_eps"] = json!(1e-5);
        }
        vision.parts = vision.drawn();
        vision
    }

    /// Special tokens, which are the last of the vocabulary; that of pictures is the first of them.
    fn special_tokens(&self) -> Vec<&'static str> {
        let own: &[_] = match self.label {
            "smolvlm" => &[
                "<image>",
                "<fake_token_around_image>",
                "<global-img>",
                "<row_1_col_1>",
                "<row_1_col_2>",
                "<row_1_col_3>",
                "<row_2_col_1>",
                "<row_2_col_2>",
                "<row_2_col_3>",
            ],
            "gemma4" => &["<|image|>", "<|image>", "<image|>", "<pad>"],
            "mistral3" => &["[IMG]", "[IMG_BREAK]", "[IMG_END]"],
            _ => &["<|image_pad|>", "<|vision_start|>", "<|vision_end|>"],
        };
        own.iter().copied().chain(["<|im_start|>", "<|im_end|>"]).collect()
    }

    fn special_token(&self, token: &str) -> usize {
        let special = self.special_tokens();
        let index = special.iter().position(|special| *special == token).unwrap();
        self.text.size("vocab_size") - special.len() + index
    }

    /// Token that stands for an embedding of a picture.
    pub fn picture_token(&self) -> &'static str {
        self.special_tokens()[0]
    }

    /// Text that the chat template writes for a picture.
    pub fn placeholder(&self) -> &'static str {
        match self.label {
            "qwen3_5" | "qwen3_vl" => "<|vision_start|><|image_pad|><|vision_end|>",
            _ => self.picture_token(),
        }
    }

    /// Layers of the vision model.
    fn layers(&self) -> usize {
        if self.label == "qwen3_vl" { DEEPSTACK[1] + 1 } else { 2 }
    }

    /// Patches per side that become one embedding.
    fn merge(&self) -> usize {
        if self.label == "gemma4" { 3 } else { 2 }
    }

    /// Removes a tensor of the vision model, by its name in mmproj files.
    pub fn remove(&mut self, ours: &str) {
        let before = self.parts.len();
        self.parts.retain(|part| part.ours != ours);
        assert!(self.parts.len() < before, "no tensor {ours}");
    }

    /// Names of the vision model's tensors in mmproj files.
    pub fn tensor_names(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.ours.clone()).collect()
    }

    /// Writes a Hugging Face folder and returns its path.
    pub fn write_folder(&self, path: &Path) -> PathBuf {
        let folder = path.join(self.label);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), self.config().to_string()).unwrap();
        fs::write(folder.join("preprocessor_config.json"), self.processor().to_string()).unwrap();
        let of_text = self.text.tensors.iter().map(|(name, tensor)| (self.text_name(name), tensor.clone()));
        let of_vision = self.parts.iter().map(|part| (part.theirs.clone(), part.tensor.clone()));
        let tensors: HashMap<String, Tensor> = of_text.chain(of_vision).collect();
        candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
        folder
    }

    /// Writes a GGUF file of the language model, with the mmproj file beside it. Returns both
    /// paths.
    pub fn write_gguf(&self, path: &Path, quantisation: GgmlDType) -> (PathBuf, PathBuf) {
        let model = path.join(format!("{}.gguf", self.label));
        self.text.write_gguf(&model, quantisation, |_| true);
        (model, self.write_mmproj(path, &[]))
    }

    /// Writes the mmproj file with other values of some keys, and returns its path.
    pub fn write_mmproj(&self, path: &Path, changes: &[(&str, Value)]) -> PathBuf {
        let mmproj = path.join(format!("mmproj-{}.gguf", self.label));
        let tensors: Vec<(String, QTensor)> = self
            .converted()
            .into_iter()
            .map(|(name, tensor)| (name, QTensor::quantize(&tensor, GgmlDType::F32).unwrap()))
            .collect();
        let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let mut metadata = self.mmproj_keys();
        metadata.retain(|(key, _)| changes.iter().all(|(changed, _)| key != changed));
        let changes = changes.iter().map(|(key, value)| (*key, value));
        let metadata = metadata.iter().map(|(key, value)| (key.as_str(), value)).chain(changes);
        let metadata: Vec<_> = metadata.collect();
        gguf_file::write(&mut File::create(&mmproj).unwrap(), &metadata, &tensors).unwrap();
        mmproj
    }
}
