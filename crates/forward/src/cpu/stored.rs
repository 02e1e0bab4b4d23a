//! Everything that a text has cached on the CPU.

use super::cache::KvCache;
use super::memory::Memory;
use crate::state_history::{SlotCounts, UsedSlots};

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

    /// Layers of the same sizes without any position, state or log.
    pub(super) fn emptied(&self) -> Self {
        self.share(0, &UsedSlots::default())
    }

    /// Bytes of a page of all layers: the first `positions`, and zeros for the others.
    pub(crate) fn page(&mut self, number: usize, positions: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.page_bytes());
        for cache in &mut self.caches {
            append(&mut bytes, &cache.page(number, positions), u16::to_le_bytes);
        }
        bytes
    }

    /// Length of [`Self::page`] in bytes.
    pub(crate) fn page_bytes(&self) -> usize {
        self.caches.iter().map(KvCache::page_length).sum::<usize>() * size_of::<u16>()
    }

    /// Bytes of all states and logs.
    pub(crate) fn states(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for numbers in self.memories.iter_mut().flat_map(Memory::numbers) {
            append(&mut bytes, numbers, f32::to_le_bytes);
        }
        bytes
    }

    /// Like this one, with `pages` that [`Self::page`] returned and `states` that [`Self::states`]
    /// returned for as many slots as `counts`. `None` if a length is wrong.
    pub(crate) fn read(&self, pages: &[Vec<u8>], counts: SlotCounts, states: &[u8]) -> Option<Self> {
        let mut read = self.emptied();
        for page in pages {
            let numbers = numbers(page, u16::from_le_bytes);
            let mut rest = &numbers[..];
            for cache in &mut read.caches {
                cache.push_page(rest.split_off(..cache.page_length())?);
            }
            rest.is_empty().then_some(())?;
        }
        let numbers = numbers(states, f32::from_le_bytes);
        let mut rest = &numbers[..];
        for memory in &mut read.memories {
            memory.push(counts, rest.split_off(..memory.bytes(counts) / size_of::<f32>())?);
        }
        rest.is_empty().then_some(read)
    }

    /// Address and bytes of each buffer.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        let caches = self.caches.iter().flat_map(KvCache::buffers);
        caches.chain(self.memories.iter().flat_map(Memory::buffers))
    }
}

/// Appends numbers as words. An iterator over single bytes would take most of a page's time.
fn append<T: Copy, const SIZE: usize>(bytes: &mut Vec<u8>, numbers: &[T], word: impl Fn(T) -> [u8; SIZE]) {
    let at = bytes.len();
    bytes.resize(at + SIZE * numbers.len(), 0);
    for (to, &number) in bytes[at..].as_chunks_mut().0.iter_mut().zip(numbers) {
        *to = word(number);
    }
}

/// Numbers in whole words of `bytes`.
fn numbers<T, const SIZE: usize>(bytes: &[u8], number: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|&word| number(word)).collect()
}
