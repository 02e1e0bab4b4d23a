//! Models beside language models, on candle tensors: pictures, [read](picture) from files in a child
//! process, and [`vision`] models, whose embeddings `foretoken-engine` puts into prompts;
//! [`embedding`] models of texts, for search.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod embedding;
pub mod picture;
pub mod resample;
pub mod vision;
