//! Everything that a text has cached on the CPU.

use super::cache::KvCache;
use super::memory::Memory;
use crate::state_history::UsedSlots;

/// Caches of all layers.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Keys and values by layer; empty for recurrent layers.
    pub(super) caches: Vec<KvCache>,
    /// States by layer; empty for attention layers.
    pub(super) memories: Vec<Memory>,
}

impl Stored {
    /// The first `positions` and the states and logs in `slots`, in memory shared with this one.
    pub(super) fn share(&self, positions: usize, slots: &UsedSlots) -> Self {
        Self {
            caches: self.caches.iter().map(|cache| cache.share(positions)).collect(),
            memories: self.memories.iter().map(|memory| memory.share(slots)).collect(),
        }
    }

    /// Returns true if `other` has layers of the same sizes.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let caches = self.caches.iter().zip(&other.caches);
        let memories = self.memories.iter().zip(&other.memories);
        self.caches.len() == other.caches.len()
            && caches.into_iter().all(|(cache, other)| cache.is_like(other))
            && memories.into_iter().all(|(memory, other)| memory.is_like(other))
    }

    /// Address and bytes of each buffer.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        let caches = self.caches.iter().flat_map(KvCache::buffers);
        caches.chain(self.memories.iter().flat_map(Memory::buffers))
    }
}
