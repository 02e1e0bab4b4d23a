//! Files of an engine: its statistics and its contexts, kept by the library for window and terminal
//! alike.
//!
//! - [`StatsFile`]: statistics of drafts, and times per device
//! - [`ModelFiles`]: contexts of one model; [`ContextWriter`]: writes and removes contexts on a
//!   thread of its own

mod context_writer;
mod model_files;
mod stats_file;

pub use context_writer::ContextWriter;
pub use model_files::ModelFiles;
pub use stats_file::StatsFile;
