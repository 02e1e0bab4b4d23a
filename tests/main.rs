//! All tests that cross crates, in one binary, except those of the window (desktop.rs).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod assistants;
mod bad_heads;
mod block_heads;
mod broken_models;
mod circles;
mod docs;
mod drafted_distribution;
mod evaluation;
mod exact;
mod families;
mod goldens;
mod head_features;
mod heads;
mod hybrids;
mod icons;
mod invariance;
mod language;
mod libraries;
mod lossless;
mod mock_drafter;
mod model_script;
mod mtp;
mod passes;
mod recurrent;
mod replay;
mod safetensors;
mod shaders;
mod statistics;
mod supply_chain;
mod support;
mod tensors;
mod traces;
mod unsafe_blocks;
