//! All tests that cross crates, in one binary, except those of the window (desktop.rs).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

mod engine;
mod repository;
