//! One binary for all tests that cross crates, but those of the window (desktop.rs).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod exact;
mod families;
mod invariance;
mod lossless;
mod model_script;
mod safetensors;
mod statistics;
mod tensors;
mod trial;
