//! KV cache of one layer in half precision. It consists of pages, so that growing copies nothing
//! and truncating is free.
//!
//! The numbers of a position's value are contiguous. Keys are interleaved by sixteen positions like
//! the weights of a panel, so that a query is multiplied with sixteen positions at once. In an MLA
//! layer the value is the first part of the key, and one row holds both.

use std::collections::TryReserveError;

use half::f16;

use super::buffer::Buffer;
use super::simd::LANES;

/// Positions in a page.
pub const PAGE: usize = 256;

#[derive(Debug)]
pub struct KvCache {
    kv_heads: usize,
    /// Numbers of a key; 0 where the value's row holds it.
    head_size: usize,
    /// Numbers of a value, padded to whole vectors.
    width: usize,
    pages: Vec<Page>,
}

#[derive(Debug, Default)]
struct Page {
    keys: Buffer<u16>,   // [kv_heads, PAGE / LANES, head_size, LANES]
    values: Buffer<u16>, // [kv_heads, PAGE, width]
}

impl KvCache {
    pub fn new(kv_heads: usize, head_size: usize) -> Self {
        Self { kv_heads, head_size, width: head_size.next_multiple_of(LANES), pages: Vec::new() }
    }

    /// Creates a cache whose rows hold both key and value (MLA).
    pub fn with_joint_rows(kv_heads: usize, size: usize) -> Self {
        Self { head_size: 0, ..Self::new(kv_heads, size) }
    }

    /// Returns whether rows hold both key and value.
    pub fn has_joint_rows(&self) -> bool {
        self.head_size == 0
    }

    /// Distance from one position's value to the next, padding included.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Bytes per position.
    pub fn bytes_per_position(&self) -> usize {
        self.kv_heads * (self.head_size + self.width) * size_of::<u16>()
    }

    /// Bytes to allocate for `positions`.
    pub fn bytes_to_reserve(&self, positions: usize) -> usize {
        positions.div_ceil(PAGE).saturating_sub(self.pages.len()) * PAGE * self.bytes_per_position()
    }

    /// Allocates pages for `positions`.
    ///
    /// # Errors
    /// Fails if the system cannot allocate; cached positions stay.
    pub fn reserve(&mut self, positions: usize) -> Result<(), TryReserveError> {
        while self.pages.len() * PAGE < positions {
            let mut page = Page::default();
            page.keys.try_reserve(self.kv_heads * PAGE * self.head_size)?;
            page.values.try_reserve(self.kv_heads * PAGE * self.width)?;
            self.pages.push(page);
        }
        Ok(())
    }

    /// Frees the pages behind `positions`, except one, since texts grow again.
    pub fn release(&mut self, positions: usize) {
        self.pages.truncate(positions.div_ceil(PAGE) + 1);
    }

    /// Block of keys with `position` in it, `[head_size, LANES]`.
    pub fn keys(&self, kv_head: usize, position: usize) -> *mut u16 {
        let block = kv_head * PAGE / LANES + position % PAGE / LANES;
        self.pages[position / PAGE].keys.at(block * self.head_size * LANES)
    }

    /// Value of `position`, `[width]`, zeros after `head_size`.
    pub fn value(&self, kv_head: usize, position: usize) -> *mut u16 {
        self.pages[position / PAGE].values.at((kv_head * PAGE + position % PAGE) * self.width)
    }

    /// Number of positions from `position` on with contiguous values.
    pub fn contiguous(position: usize) -> usize {
        PAGE - position % PAGE
    }

    /// Reads the keys of all heads at `position`, then the values: `[2 * kv_heads * head_size]`
    /// numbers.
    ///
    /// # Safety
    /// The position must be within what was reserved, and nothing may write to it meanwhile.
    pub unsafe fn load(&self, position: usize, to: &mut [f32]) {
        let (keys, values) = to.split_at_mut(self.kv_heads * self.head_size);
        let heads = keys.chunks_mut(self.head_size).zip(values.chunks_mut(self.head_size));
        for (kv_head, (key, value)) in heads.enumerate() {
            let keys = self.keys(kv_head, position).wrapping_add(position % LANES);
            let values = self.value(kv_head, position);
            for (number, (key, value)) in key.iter_mut().zip(value).enumerate() {
                // SAFETY: guaranteed by the caller; a head has as many numbers.
                unsafe {
                    *key = f16::from_bits(*keys.add(number * LANES)).to_f32();
                    *value = f16::from_bits(*values.add(number)).to_f32();
                }
            }
        }
    }

    /// Copies the keys and values of one position to another.
    pub fn copy(&mut self, from: usize, to: usize) {
        for kv_head in 0..self.kv_heads {
            // SAFETY: positions are within what was reserved, and `&mut` excludes other access.
            unsafe {
                let (old, new) = (self.keys(kv_head, from), self.keys(kv_head, to));
                for number in 0..self.head_size {
                    *new.add(number * LANES + to % LANES) = *old.add(number * LANES + from % LANES);
                }
                let (old, new) = (self.value(kv_head, from), self.value(kv_head, to));
                std::ptr::copy(old, new, self.width);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_unused_pages_but_one_are_freed() {
        let mut cache = KvCache::new(3, 20);
        assert_eq!(cache.bytes_to_reserve(PAGE + 1), 2 * PAGE * cache.bytes_per_position());
        cache.reserve(10 * PAGE).unwrap();
        let pages = |cache: &mut KvCache, positions| {
            cache.release(positions);
            cache.pages.len()
        };
        assert_eq!(
            [9 * PAGE, 3 * PAGE + 1, 1, 0].map(|positions| pages(&mut cache, positions)),
            [10, 5, 2, 1]
        );
        assert_eq!(cache.bytes_to_reserve(PAGE), 0);
    }

    #[test]
    fn reserving_more_memory_than_the_system_has_is_an_error() {
        let mut cache = KvCache::new(usize::MAX >> 24, 64);
        cache.reserve(1).unwrap_err();
        assert!(cache.pages.is_empty());
    }

    #[test]
    fn copying_a_position_copies_every_head() {
        let mut cache = KvCache::new(3, 20);
        cache.reserve(600).unwrap();
        for (kv_head, position) in (0..3).flat_map(|head| (0..600).map(move |position| (head, position))) {
            let number = (kv_head * 600 + position) as u16;
            // SAFETY: the position is below what was reserved, and each of the 20 numbers is the
            // head's.
            unsafe {
                for index in 0..20 {
                    *cache.keys(kv_head, position).add(index * LANES + position % LANES) = number;
                    *cache.value(kv_head, position).add(index) = number;
                }
            }
        }
        cache.copy(599, 250);
        for kv_head in 0..3 {
            for (position, expected) in [(249, 249), (250, 599), (251, 251), (256, 256)] {
                let expected = (kv_head * 600 + expected) as u16;
                for index in [0, 19] {
                    // SAFETY: as above.
                    unsafe {
                        let key = *cache.keys(kv_head, position).add(index * LANES + position % LANES);
                        assert_eq!((key, *cache.value(kv_head, position).add(index)), (expected, expected));
                    }
                }
            }
        }
    }
}
