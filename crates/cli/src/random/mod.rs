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

/// The default folder of the files.
pub fn default_folder() -> PathBuf {
    env::temp_dir().join("foretoken-bench")
}
