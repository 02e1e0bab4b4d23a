//! Models of real shapes with random weights, for measurements: the text is nonsense, the
//! arithmetic is that of the models.

mod builder;
pub mod file;
mod gguf;
mod latent;
pub mod mixture;
mod model;
pub mod shape;
mod tensor;

use std::env;
use std::path::PathBuf;

pub use model::RandomModel;

/// Folder of generated models.
#[derive(Debug, clap::Args)]
pub struct FolderArgs {
    /// Folder of the files with random weights [default: foretoken-bench in the system's temporary
    /// folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl FolderArgs {
    /// The chosen folder, or the default one.
    pub fn path(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| env::temp_dir().join("foretoken-bench"))
    }
}
