//! `bench --random`: generates models of real shapes with random weights and measures them, beside
//! llama.cpp if it is there. The text is nonsense; the arithmetic is that of the models.

mod builder;
pub mod file;
mod gguf;
mod latent;
pub mod llama_cpp;
mod measure;
pub mod mixture;
mod model;
mod report;
pub mod shape;
mod tensor;

use std::env;
use std::path::PathBuf;

use super::args::Args;
use crate::error::Result;
use crate::output;
use llama_cpp::LlamaCpp;
pub use model::RandomModel;

/// Measures one model after the other and prints each report as soon as it is done.
pub fn run(args: &Args) -> Result<()> {
    let folder = args.folder.clone().unwrap_or_else(default_folder);
    let mut llama_cpp = LlamaCpp::find()?;
    for (index, &model) in args.random.iter().enumerate() {
        let pair = file::make(model, &folder)?;
        let report = measure::measure(model, &pair, args, llama_cpp.as_mut())?;
        if args.json {
            output::json(&report)?;
        } else {
            output::text(&format!("{}{}", if index > 0 { "\n" } else { "" }, report.table()))?;
        }
    }
    Ok(())
}

/// The default folder of the files.
pub fn default_folder() -> PathBuf {
    env::temp_dir().join("foretoken-bench")
}
