//! Embedding models: from a text to a vector, such that texts of similar meaning have similar
//! vectors. Settings, tensors and tokenizer of a Hugging Face folder or a GGUF file. Computes
//! nothing; `foretoken-senses` implements [`TextEmbedder`].
//!
//! - [`EmbeddingConfig`]: settings, read by `gguf` and `json`
//! - `names`: names of the tensors in both formats
//! - `tokenizer`: tokenizers of both formats

mod config;
mod embedder;
mod gguf;
mod json;
mod names;
mod tokenizer;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use tokenizers::Tokenizer;

pub use config::{EmbeddingConfig, Encoder, HiddenActivation, Pooling, Prefixes};
pub use embedder::{TextEmbedder, TextEmbedding, TextUse};

use crate::error::Result;
use crate::folder::Folder;
use crate::gguf as file;
use crate::gguf::Header;
use crate::tensors::Tensors;

/// An opened embedding model. The headers are checked; no weights are loaded.
pub struct EmbeddingSource {
    path: PathBuf,
    form: Form,
    config: EmbeddingConfig,
    tensors: Tensors,
}

enum Form {
    Gguf(Header),
    Folder,
}

impl EmbeddingSource {
    /// Opens a `.gguf` file, or a folder with config.json and safetensors.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` for what is no model, is cut short or contradicts itself;
    /// `Error::NoEmbeddings` for a model of another kind.
    pub fn open(path: &Path) -> Result<Self> {
        let (form, config, tensors) = if path.is_dir() {
            let folder = Folder::open(path)?;
            let config = json::config(&folder)?;
            let tensors = folder.named_tensors(&|name| names::of_folder(name, config.encoder))?;
            (Form::Folder, config, tensors)
        } else {
            let (header, tensors) = file::open(path)?;
            let config = gguf::config(&header)?;
            let tensors = tensors.renamed(|name| names::of_gguf(name, config.encoder));
            (Form::Gguf(header), config, tensors)
        };
        Ok(Self { path: path.to_owned(), form, config, tensors })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn config(&self) -> &EmbeddingConfig {
        &self.config
    }

    /// Bytes of all weights in 32 bits.
    pub fn bytes(&self) -> u64 {
        self.tensors.stored.values().map(|stored| stored.elements() * size_of::<f32>() as u64).sum()
    }

    /// Reads all tensors in 32 bits, by their names in transformers.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn tensors(&self) -> Result<HashMap<String, Tensor>> {
        let read = |name: &String| {
            let tensor = self.tensors.load(name, &Device::Cpu)?.dequantize(&Device::Cpu)?;
            Ok((name.clone(), tensor))
        };
        self.tensors.stored.keys().map(read).collect()
    }

    /// Reads the tokenizer.
    ///
    /// # Errors
    /// `Error::Tokenizer` if it is missing, damaged or of a kind that Foretoken does not read.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match &self.form {
            Form::Gguf(header) => tokenizer::of_gguf(header),
            Form::Folder => tokenizer::of_folder(&self.path),
        }
    }
}
