//! Foretoken's engine: speculative decoding of language models.
//!
//! Independent of windows, network and database. The modules, from the bottom up:
//! - [`token`], [`drafter_kind`], [`context`]: types that all others share, and the growing text
//! - [`format`]: storage formats of weights and their blocks
//! - [`model`]: a model on disk: configuration, weights, tokenizer, chat template
//! - [`device`], [`forward`]: runs a model over a [`tree`] of tokens, with a cache that can be
//!   rewound
//! - [`sampling`], [`penalties`], [`distribution`], [`random`], [`sampler`]: from logits to a token
//! - [`recommended`]: sampling settings that a model's makers recommend
//! - [`speculation`]: settings of speculative decoding
//! - [`draft`]: drafters: models, heads, n-grams, token recycling
//! - [`governor`]: chooses draft lengths by measured costs and acceptance
//! - [`accept`]: decides which draft tokens the target keeps
//! - [`decoder`]: the loop of rounds
//! - [`session`]: a loaded target and its drafters, as the window, the terminal and the server use
//!   them
//! - [`trace`]: a record of every round
//! - [`compat`], [`check`], [`arena`]: whether a pair fits, the proof that drafts change nothing,
//!   and benchmarks of draft settings

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod accept;
pub mod arena;
pub mod check;
pub mod compat;
pub mod context;
pub mod decoder;
pub mod device;
pub mod distribution;
pub mod draft;
pub mod drafter_kind;
pub mod error;
pub mod format;
pub mod forward;
pub mod governor;
pub mod model;
pub mod penalties;
pub mod random;
pub mod recommended;
pub mod sampler;
pub mod sampling;
pub mod session;
pub mod speculation;
pub mod token;
pub mod trace;
pub mod tree;

pub use error::{Error, Result};
