//! Damaged files, answers and arguments by the million: each is used or refused in a sentence, never with a panic
//! and never with more memory than its size justifies.
//!
//! - [`targets`]: what is fed, and what must hold
//! - [`mutate`]: damage; [`coverage`]: which damage did something new
//! - [`run`]: one target, over and over
//! - [`memory`], [`random`]: what their names say
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::missing_panics_doc)]

pub mod coverage;
pub mod memory;
pub mod mutate;
pub mod random;
pub mod run;
pub mod targets;
