//! Fuzzing with damaged files, responses and arguments: each input is accepted or refused with a
//! message, never with a panic and never with more memory or time than its size justifies.
//!
//! - [`targets`]: code under test and its invariants
//! - [`mutate`]: mutations; [`coverage`]: new coverage of an input
//! - [`run`]: the loop over one target
//! - [`memory`], [`cpu_time`], [`random`]: as named
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::missing_panics_doc)]

pub mod coverage;
pub mod cpu_time;
pub mod memory;
pub mod mutate;
pub mod random;
pub mod run;
pub mod targets;
