//! KV cache of one layer in half precision. It consists of pages, so that growing copies nothing
//! and truncating is free. Caches of texts with the same beginning share pages; a shared page is
//! copied before it is written.
//!
//! The numbers of a position's value are contiguous. Keys are interleaved by sixteen positions like
//! the weights of a panel, so that a query is multiplied with sixteen positions at once. In an MLA
//! layer the value is the first part of the key, and one row holds both.

use std::collections::TryReserveError;
use std::ops::Range;

use half::f16;

use super::buffer::SharedBuffer;
use super::simd::LANES;

/// Positions in a page.
pub const PAGE: usize = 256;

#[derive(Debug, Clone)]
pub struct KvCache {
    kv_heads: usize,
    /// Numbers of a key; 0 where the value's row holds it.
    head_size: usize,
    /// Numbers of a value, padded to whole vectors.
    width: usize,
    pages: Vec<Page>,
}

#[derive(Debug, Clone)]
struct Page {
    keys: SharedBuffer<u16>,   // [kv_heads, PAGE / LANES, head_size, LANES]
    values: SharedBuffer<u16>, // [kv_heads, PAGE, width]
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

    /// Bytes to allocate before `positions` are written.
    pub fn bytes_to_reserve(&self, positions: Range<usize>) -> usize {
        let needed = pages(&positions).filter(|&page| self.pages.get(page).is_none_or(Page::is_shared));
        needed.count() * PAGE * self.bytes_per_position()
    }

    /// Allocates pages for `positions`, which are about to be written: new ones, and copies of
    /// shared ones.
    ///
    /// # Errors
    /// Fails if the system cannot allocate; cached positions stay.
    pub fn reserve(&mut self, positions: Range<usize>) -> Result<(), TryReserveError> {
        let first = positions.start;
        for number in pages(&positions) {
            match self.pages.get_mut(number) {
                Some(page) => page.try_own(number * PAGE < first)?,
                None => self.pages.push(self.new_page()?),
            }
        }
        Ok(())
    }

    fn new_page(&self) -> Result<Page, TryReserveError> {
        Ok(Page {
            keys: SharedBuffer::try_zeros(self.kv_heads * PAGE * self.head_size)?,
            values: SharedBuffer::try_zeros(self.kv_heads * PAGE * self.width)?,
        })
    }

    /// The first `positions`, whose pages are shared with this cache.
    pub fn share(&self, positions: usize) -> Self {
        Self { pages: self.pages[..positions.div_ceil(PAGE)].to_vec(), ..*self }
    }

    /// Returns true if `other` has the same sizes.
    pub fn is_like(&self, other: &Self) -> bool {
        let sizes = |cache: &Self| (cache.kv_heads, cache.head_size, cache.width);
        sizes(self) == sizes(other)
    }

    /// Numbers of a page: the keys and values at its first `positions`, and zeros at the others.
    pub fn page(&mut self, number: usize, positions: usize) -> Vec<u16> {
        let (head_size, width) = (self.head_size, self.width);
        let page = &mut self.pages[number];
        let (mut keys, mut values) = (page.keys.numbers().to_vec(), page.values.numbers().to_vec());
        for position in positions..PAGE {
            // The heads of keys have a block for sixteen positions, those of values a row for each.
            for head in keys.chunks_mut((PAGE * head_size).max(1)) {
                let block = &mut head[position / LANES * head_size * LANES..][..head_size * LANES];
                block.iter_mut().skip(position % LANES).step_by(LANES).for_each(|number| *number = 0);
            }
            for head in values.chunks_mut((PAGE * width).max(1)) {
                head[position * width..][..width].fill(0);
            }
        }
        keys.append(&mut values);
        keys
    }

    /// Numbers of a page.
    pub fn page_length(&self) -> usize {
        self.kv_heads * PAGE * (self.head_size + self.width)
    }

    /// Adds a page with the numbers that [`Self::page`] returned.
    pub fn push_page(&mut self, numbers: &[u16]) {
        let (keys, values) = numbers.split_at(self.kv_heads * PAGE * self.head_size);
        self.pages.push(Page { keys: keys.to_vec().into(), values: values.to_vec().into() });
    }

    /// Address and bytes of each buffer.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        let buffers = self.pages.iter().flat_map(|page| [&page.keys, &page.values]);
        buffers.map(|buffer| (buffer.address(), buffer.len() * size_of::<u16>()))
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

/// Numbers of the pages that have any of these positions.
fn pages(positions: &Range<usize>) -> Range<usize> {
    positions.start / PAGE..positions.end.div_ceil(PAGE)
}

impl Page {
    fn is_shared(&self) -> bool {
        self.keys.is_shared() || self.values.is_shared()
    }

    /// Prepares to be written, see [`SharedBuffer::try_own`].
    fn try_own(&mut self, content: bool) -> Result<(), TryReserveError> {
        self.keys.try_own(content)?;
        self.values.try_own(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_unused_pages_but_one_are_freed() {
        let mut cache = KvCache::new(3, 20);
        assert_eq!(cache.bytes_to_reserve(0..PAGE + 1), 2 * PAGE * cache.bytes_per_position());
        cache.reserve(0..10 * PAGE).unwrap();
        let pages = |cache: &mut KvCache, positions| {
            cache.release(positions);
            cache.pages.len()
        };
        assert_eq!(
            [9 * PAGE, 3 * PAGE + 1, 1, 0].map(|positions| pages(&mut cache, positions)),
            [10, 5, 2, 1]
        );
        assert_eq!(cache.bytes_to_reserve(0..PAGE), 0);
    }

    #[test]
    fn reserving_more_memory_than_the_system_has_is_an_error() {
        let mut cache = KvCache::new(usize::MAX >> 24, 64);
        cache.reserve(0..1).unwrap_err();
        assert!(cache.pages.is_empty());
    }

    #[test]
    fn copying_a_position_copies_every_head() {
        let mut cache = KvCache::new(3, 20);
        cache.reserve(0..600).unwrap();
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
