//! The engine.
pub mod error;
pub mod model;
pub mod sampling;
pub mod trace;
