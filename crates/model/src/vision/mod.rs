//! Vision models that turn pictures into embeddings for a language model: settings and tensors of a
//! llama.cpp mmproj file, or of the vision part of a Hugging Face folder. Computes nothing.
//!
//! - [`VisionConfig`]: settings, read by `gguf` and `json`
//! - `names`: tensors with their shapes, and their names in both formats

mod config;
mod gguf;
mod json;
mod names;

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};

pub use config::{Projector, VisionConfig};

use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::gguf as file;
use crate::tensors::Tensors;

/// An opened vision model. The headers are checked; no weights are loaded.
pub struct VisionSource {
    path: PathBuf,
    config: VisionConfig,
    tensors: Tensors,
}

impl VisionSource {
    /// Opens an mmproj file, or the vision part of a folder with config.json and safetensors.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` for what is no vision model, is cut short or contradicts
    /// itself; `Error::Architecture` for a projector that Foretoken does not run.
    pub fn open(path: &Path) -> Result<Self> {
        let (config, tensors) = if path.is_dir() {
            let folder = Folder::open(path)?;
            let config = json::config(&folder)?;
            let tensors = folder.named_tensors(&|name| names::canonical(name, config.projector))?;
            (config, tensors)
        } else {
            let (header, tensors) = file::open(path)?;
            (gguf::config(&header)?, tensors)
        };
        let source = Self { path: path.to_owned(), config, tensors };
        source.check()?;
        Ok(source)
    }

    /// Returns true if the folder at `path` holds a vision model beside its language model.
    pub fn is_in_folder(path: &Path) -> bool {
        path.is_dir() && Folder::open(path).is_ok_and(|folder| folder.config["vision_config"].is_object())
    }

    /// Checks that every tensor is there with the shape that the settings imply.
    fn check(&self) -> Result<()> {
        for (name, shape) in names::tensors(&self.config) {
            let stored = self.tensors.find(&name)?;
            let size: usize = shape.iter().product();
            if stored.elements() != size as u64 || stored.shape.last() != shape.last() {
                return Err(Error::BadModel {
                    path: self.path.clone(),
                    expected: format!("{name} of the shape {shape:?}"),
                    found: format!("{:?}", stored.shape),
                    hint: "Choose another file of this model.",
                });
            }
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn config(&self) -> &VisionConfig {
        &self.config
    }

    /// Text that is another one for every other vision model on this computer: versions of the
    /// files as they are open, and the settings.
    pub fn version(&self) -> String {
        let files: Vec<&str> = self.tensors.files.iter().map(|file| file.version()).collect();
        format!("{}; {:?}", files.join(", "), self.config)
    }

    /// Bytes of all weights in 32 bits.
    pub fn bytes(&self) -> u64 {
        self.tensors.stored.values().map(|stored| stored.elements() * size_of::<f32>() as u64).sum()
    }

    /// Returns whether there is a tensor of this canonical name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.stored.contains_key(name)
    }

    /// Reads a tensor in 32 bits, by its name in llama.cpp's files.
    ///
    /// # Errors
    /// `Error::BadModel` if there is no such tensor; errors of reading the file.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        Ok(self.tensors.load(name, &Device::Cpu)?.dequantize(&Device::Cpu)?)
    }
}
