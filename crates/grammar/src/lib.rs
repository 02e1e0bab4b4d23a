//! Grammars that replies follow: JSON, JSON schemas, regular expressions and Lark grammars. Each
//! position of a text has a mask, the tokens that may come next. Knows nothing of models that
//! predict tokens.
//!
//! A grammar may come from an untrusted client, and llguidance, which compiles it, may recurse too
//! deeply or take hours for a bad one. So it runs in a [child process](foretoken_model::child) with
//! limits.
//!
//! - [`Grammar`]: its source; [`Calls`]: that of replies that call tools; [`Mask`]: a set of tokens
//! - [`Grammars`], [`Cursor`]: compile grammars and follow texts, in a child that offers [`TASK`]
//! - `calls`: grammars of calls in each form; `gbnf`: llama.cpp's grammars, converted
//! - `vocabulary`, `matching`: the child's side, an adapter of llguidance

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod ask;
mod calls;
mod gbnf;
mod grammar;
mod grammars;
mod mask;
mod masker;
mod matching;
#[cfg(test)]
mod tests;
mod vocabulary;

pub use ask::TASK;
pub use calls::Calls;
pub use grammar::Grammar;
pub use grammars::{Cursor, Grammars};
pub use mask::Mask;
