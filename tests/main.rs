//! One binary for all tests that cross crates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod e2e;
mod exact;
mod families;
mod invariance;
mod lossless;
mod safetensors;
mod seeing;
mod statistics;
mod trial;
