//! The sizes of attention to latents: the one vector of a token that the keys and values of all heads are made of
//! (DeepSeek-AI 2024).

use std::path::Path;

use super::key_heads::{KeyHeads, MAX_HEAD_SIZE};
use crate::error::{Error, Result};

/// A latent is a whole number of these, and so is a head's value: what is written of one does not reach into the next.
const WHOLE: usize = 16;

/// Of a token's normed latent come, by matrices of each head, the part of its key that does not turn and its value. The part
/// that turns is the same for all heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latent {
    /// Numbers of a latent.
    pub size: usize,
    /// Of the part of a head's query and key that turns, after the other. Even.
    pub turned: usize,
    /// Of the part that does not.
    pub plain: usize,
    /// Of a head's value.
    pub value: usize,
    /// Of the normed vector that the queries of all heads are made of, if they are not made of the state.
    pub queries: Option<usize>,
}

impl Latent {
    /// Of the norms of latents and of what queries are made of, whatever a file says of other norms.
    pub const EPSILON: f32 = 1e-6;

    /// A head's numbers of a query, before it sees latents.
    pub fn query(&self) -> usize {
        self.plain + self.turned
    }

    /// What is cached of a token: the latent, which is all heads' value, and the part of the key that turns.
    pub fn keys(&self) -> KeyHeads {
        KeyHeads { count: 1, size: self.size + self.turned, are_values: false, hold_values: Some(self.size) }
    }

    /// # Errors
    /// `Error::BadModel` for sizes that are not run.
    pub(super) fn validated(self, path: &Path) -> Result<Self> {
        let wrong = |expected: String, found: usize| {
            let (path, found) = (path.to_owned(), found.to_string());
            Err(Error::BadModel { path, expected, found, hint: "Choose another model." })
        };
        if !self.size.is_multiple_of(WHOLE) {
            return wrong(format!("latents of a multiple of {WHOLE} numbers"), self.size);
        }
        if !self.value.is_multiple_of(WHOLE) {
            return wrong(format!("values of a multiple of {WHOLE} numbers"), self.value);
        }
        if let Some(found) =
            [self.keys().size, self.query(), self.value].into_iter().find(|&size| size > MAX_HEAD_SIZE)
        {
            return wrong(format!("a head size of at most {MAX_HEAD_SIZE}"), found);
        }
        if !self.turned.is_multiple_of(2) {
            return wrong("an even part of keys that turns".into(), self.turned);
        }
        Ok(self)
    }
}
