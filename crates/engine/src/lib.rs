//! Foretoken's engine: speculative decoding of language models. Knows no window, network or database.
//!
//! A map, from the bottom up:
//! - [`token`], [`drafter_kind`], [`context`]: the words all others have in common, and a text that grows
//! - [`format`]: how weights are stored, and what the bits of a block become
//! - [`model`]: what a model is on disk: configuration, weights, tokenizer, chat template
//! - [`device`], [`forward`]: running it over a [`tree`] of tokens, with a cache that can be rewound
//! - [`sampling`], [`penalties`], [`distribution`], [`random`], [`sampler`]: from logits to a token
//! - [`recommended`]: what a model's makers say about sampling
//! - [`speculation`]: what may be set about drafting
//! - [`draft`]: who guesses ahead
//! - [`governor`]: how far ahead, by what it costs and what it brings
//! - [`accept`]: which guesses the target keeps
//! - [`decoder`]: the loop of rounds that puts these together
//! - [`session`]: a loaded target and who drafts for it, as the window, the terminal and a server use them
//! - [`trace`]: what happened, round by round
//! - [`compat`], [`check`], [`arena`]: whether a pair fits, the proof that drafts change nothing, and what
//!   they gain

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
