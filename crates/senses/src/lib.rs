//! What a model perceives beside text: pictures, [read](picture) from files in a child process, and
//! [`vision`] models on candle tensors. `foretoken-engine` puts their embeddings into prompts.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod picture;
pub mod resample;
pub mod vision;
