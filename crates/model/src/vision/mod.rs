//! Vision models that turn pictures into embeddings for a language model: settings and tensors of a
//! llama.cpp mmproj file, or of the vision part of a Hugging Face folder. Computes nothing.
//!
//! - [`VisionConfig`]: settings, read by `gguf` and `json`
//! - [`VitOptions`]: in what the transformers of the families differ
//! - `names`: tensors with their shapes, and their names in both formats

mod config;
mod gguf;
mod json;
mod names;
mod options;

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};

pub use config::{GEMMA_EMBEDDINGS, Projector, VisionConfig};
pub use options::{LearnedPositions, Rotation, RotationLayout, VisionActivation, VitOptions};

use crate::config::ModelConfig;
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
            let tensors = folder.named_tensors(&|name| names::canonical(name, &config))?;
            (config, tensors)
        } else {
            let (header, tensors) = file::open(path)?;
            (gguf::config(&header, &tensors)?, tensors)
        };
        let source = Self { path: path.to_owned(), config, tensors };
        source.check()?;
        Ok(source)
    }

    /// Returns the path of the vision model that belongs to the language model at `model`: its own
    /// folder, or the only mmproj file beside it that fits `language`. Files of one revision in the
    /// hub's cache are of one model, so that the first of several is taken.
    pub fn beside(model: &Path, language: &ModelConfig) -> Option<PathBuf> {
        if Self::is_in_folder(model) {
            return Some(model.to_owned());
        }
        let snapshot = model.ancestors().skip(1).take(MAX_DEPTH).find(|folder| is_snapshot(folder));
        let fits = |path: &PathBuf| Self::open(path).is_ok_and(|source| source.config().fits(language));
        let fitting = |folder: &Path| vision_files(folder).into_iter().filter(fits).collect::<Vec<_>>();
        match (&fitting(model.parent()?)[..], snapshot) {
            ([only], _) => Some(only.clone()),
            (_, Some(snapshot)) => fitting(snapshot).first().cloned(),
            _ => None,
        }
    }

    /// Returns whether a file beside the GGUF model at `model` has the name of a vision file. Reads
    /// no file.
    pub fn may_be_beside(model: &Path) -> bool {
        model
            .ancestors()
            .skip(1)
            .take(MAX_DEPTH)
            .enumerate()
            .any(|(above, folder)| (above == 0 || is_snapshot(folder)) && !vision_files(folder).is_empty())
    }

    /// Returns true if the folder at `path` holds a vision model beside its language model.
    fn is_in_folder(path: &Path) -> bool {
        path.is_dir() && Folder::open(path).is_ok_and(|folder| folder.config["vision_config"].is_object())
    }

    /// Checks that every tensor is there with the shape that the settings imply.
    fn check(&self) -> Result<()> {
        for (name, shape) in names::tensors(&self.config, self.path.is_dir()) {
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

/// Most files of a folder that are looked at, and most folders from a revision to its models.
const MAX_FILES: usize = 1000;
const MAX_DEPTH: usize = 4;

/// Returns the mmproj files of a folder by their names, in order.
fn vision_files(folder: &Path) -> Vec<PathBuf> {
    let is_vision_file = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        name.contains("mmproj") && name.ends_with(".gguf")
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(is_vision_file).collect();
    files.sort();
    files
}

/// Returns whether a folder is a revision in the hub's cache: `…/snapshots/REVISION`.
fn is_snapshot(folder: &Path) -> bool {
    folder.parent().and_then(Path::file_name).is_some_and(|name| name == "snapshots")
}
