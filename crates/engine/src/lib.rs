//! Speculative decoding: drafters, acceptance rules, the loop of rounds and sessions.
//!
//! Independent of windows, network and database. `foretoken-model` reads models and
//! `foretoken-forward` runs them. The modules, from the bottom up:
//! - [`drafter_kind`], [`context`]: the kinds of drafters, and the growing text
//! - [`penalties`], [`distribution`], [`random`], [`sampler`]: from logits to a token
//! - [`constraint`]: a grammar that a reply follows
//! - [`speculation`]: settings of speculative decoding
//! - [`draft`]: drafters: models, heads, n-grams, token recycling
//! - [`governor`]: chooses draft lengths by measured costs and acceptance
//! - [`accept`]: decides which draft tokens the target keeps
//! - [`logprobs`]: the target's log probabilities of written tokens
//! - [`decoder`]: the loop of rounds
//! - [`vision`]: pictures in prompts
//! - [`session`]: a loaded target and its drafters, as the window, the terminal and the server use
//!   them
//! - [`trace`]: a record of every round
//! - [`replay`]: drafting policies on recorded drafts, without a model
//! - [`inspection`]: reads model files for lists, in a child process
//! - [`compat`], [`check`], [`arena`]: whether a pair fits, the proof that drafts change nothing,
//!   and benchmarks of draft settings

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod accept;
pub mod arena;
pub mod check;
pub mod compat;
pub mod constraint;
pub mod context;
pub mod decoder;
pub mod distribution;
pub mod draft;
pub mod drafter_kind;
pub mod governor;
pub mod inspection;
pub mod logprobs;
pub mod owner;
pub mod penalties;
pub mod random;
pub mod replay;
pub mod sampler;
pub mod session;
pub mod speculation;
pub mod trace;
pub mod vision;
