//! One binary for all tests that cross crates, but those of the window (desktop.rs).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod assistants;
mod bad_heads;
mod block_heads;
mod circles;
mod docs;
mod exact;
mod families;
mod goldens;
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
mod statistics;
mod supply_chain;
mod support;
mod tensors;
mod told_head;
mod traces;
mod translations;
mod trial;
mod unsafe_blocks;
