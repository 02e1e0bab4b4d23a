//! Sizes of multi-head latent attention (MLA, DeepSeek-AI 2024): the keys and values of all heads
//! are computed from one cached vector per token, the latent.

use std::path::Path;

use super::key_heads::{KeyHeads, MAX_HEAD_SIZE};
use crate::error::{Error, Result};

/// Granularity of latents and values; kernels write in steps of this size.
const WHOLE: usize = 16;

/// Sizes of latent attention. Each head has matrices that compute the unrotated part of its key and
/// its value from a token's normalised latent. The rotated part of the key is shared by all heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latent {
    /// Size of a latent (`kv_lora_rank`).
    pub size: usize,
    /// Size of the rotated part of a head's query and key, which comes last (`qk_rope_head_dim`).
    /// Even.
    pub turned: usize,
    /// Size of the unrotated part of a head's query and key (`qk_nope_head_dim`).
    pub plain: usize,
    /// Size of a head's value (`v_head_dim`).
    pub value: usize,
    /// Size of the normalised vector that queries are computed from (`q_lora_rank`); `None` where
    /// they are computed from the hidden state.
    pub queries: Option<usize>,
}

impl Latent {
    /// Epsilon of the norms of latents and of the low-rank queries, fixed regardless of the file.
    pub const EPSILON: f32 = 1e-6;

    /// Size of a head's query before it is projected onto latents.
    pub fn query(&self) -> usize {
        self.plain + self.turned
    }

    /// Shape of the cache: one head with the latent, which is the value, and the rotated part of
    /// the key.
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
