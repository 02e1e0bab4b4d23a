//! KV cache of one layer. It consists of pages, so that growing copies nothing and truncating is
//! free. Caches of texts with the same beginning share pages; a shared page is copied before it is
//! written.
//!
//! In half precision, the numbers of a position's value are contiguous. Keys are interleaved by
//! sixteen positions like the weights of a panel, so that a query is multiplied with sixteen
//! positions at once. In an MLA layer the value is the first part of the key, and one row holds
//! both.
//!
//! In 8 bits, keys lie in groups of four numbers of sixteen positions, each number plus 128, and
//! values in pairs of positions: see `int8_attention.rs`. Each key and each value has a scale.

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;

use foretoken_model::KvDtype;
use half::f16;

use super::buffer::SharedBuffer;
use super::hadamard;
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
    dtype: KvDtype,
    /// Constant that is subtracted from keys in 8 bits, see `int8_attention.rs`; or empty.
    key_offsets: Arc<[f32]>, // [kv_heads, head_size]
    pages: Vec<Page>,
}

/// Words of a page. In 8 bits, a word holds two bytes.
#[derive(Debug, Clone)]
struct Page {
    keys: SharedBuffer<u16>,   // [kv_heads, PAGE / LANES, head_size, LANES]
    values: SharedBuffer<u16>, // [kv_heads, PAGE, width]
    /// Scales of keys and values in 8 bits.
    scales: SharedBuffer<u16>, // [kv_heads, 2, PAGE]
}

impl KvCache {
    pub fn new(kv_heads: usize, head_size: usize) -> Self {
        let width = head_size.next_multiple_of(LANES);
        let key_offsets = Arc::default();
        Self { kv_heads, head_size, width, dtype: KvDtype::F16, key_offsets, pages: Vec::new() }
    }

    /// Creates a cache of 8-bit numbers. The head size is a multiple of four. `key_offsets` are
    /// subtracted from keys, `[kv_heads, head_size]`, or empty.
    pub fn in_int8(kv_heads: usize, head_size: usize, key_offsets: Vec<f32>) -> Self {
        Self { dtype: KvDtype::Int8, key_offsets: key_offsets.into(), ..Self::new(kv_heads, head_size) }
    }

    /// Creates a cache whose rows hold both key and value (MLA).
    pub fn with_joint_rows(kv_heads: usize, size: usize) -> Self {
        Self { head_size: 0, ..Self::new(kv_heads, size) }
    }

    /// Returns whether rows hold both key and value.
    pub fn has_joint_rows(&self) -> bool {
        self.head_size == 0
    }

    pub fn dtype(&self) -> KvDtype {
        self.dtype
    }

    /// Numbers of a value, padding included.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Words of a page's keys, values and scales.
    fn page_lengths(&self) -> [usize; 3] {
        let positions = self.kv_heads * PAGE;
        let [keys, values] = [self.head_size, self.width].map(|numbers| positions * numbers);
        match self.dtype {
            KvDtype::F16 => [keys, values, 0],
            KvDtype::Int8 => [keys / 2, values / 2, 2 * positions],
        }
    }

    /// Words of a page.
    pub fn page_length(&self) -> usize {
        self.page_lengths().iter().sum()
    }

    /// Bytes to allocate before `positions` are written.
    pub fn bytes_to_reserve(&self, positions: Range<usize>) -> usize {
        let needed = pages(&positions).filter(|&page| self.pages.get(page).is_none_or(Page::is_shared));
        needed.count() * self.page_length() * size_of::<u16>()
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
        let [keys, values, scales] = self.page_lengths().map(SharedBuffer::try_zeros);
        Ok(Page { keys: keys?, values: values?, scales: scales? })
    }

    /// The first `positions`, whose pages are shared with this cache.
    pub fn share(&self, positions: usize) -> Self {
        Self { pages: self.pages[..positions.div_ceil(PAGE)].to_vec(), ..self.emptied() }
    }

    /// A cache of the same layout without pages.
    fn emptied(&self) -> Self {
        Self { pages: Vec::new(), key_offsets: Arc::clone(&self.key_offsets), ..*self }
    }

    /// Constant that is subtracted from a head's keys in 8 bits; or empty.
    pub fn key_offsets(&self, kv_head: usize) -> &[f32] {
        self.key_offsets.chunks(self.head_size).nth(kv_head).unwrap_or_default()
    }

    /// Returns true if `other` has the same sizes and format.
    pub fn is_like(&self, other: &Self) -> bool {
        let layout = |cache: &Self| (cache.kv_heads, cache.head_size, cache.width, cache.dtype);
        layout(self) == layout(other)
    }

    /// Words of a page: the keys and values at its first `positions`, and zeros at the others.
    pub fn page(&mut self, number: usize, positions: usize) -> Vec<u16> {
        let mut words = Vec::with_capacity(self.page_length());
        for buffer in self.pages[number].buffers_mut() {
            words.extend_from_slice(buffer.numbers());
        }
        if positions < PAGE {
            let mut copy = self.emptied();
            copy.push_page(&words);
            (positions..PAGE).for_each(|position| copy.erase(position));
            words = copy.page(0, PAGE);
        }
        words
    }

    /// Adds a page with the words that [`Self::page`] returned.
    pub fn push_page(&mut self, words: &[u16]) {
        let [keys, values, _] = self.page_lengths();
        let (keys, rest) = words.split_at(keys);
        let (values, scales) = rest.split_at(values);
        let [keys, values, scales] = [keys, values, scales].map(|words| words.to_vec().into());
        self.pages.push(Page { keys, values, scales });
    }

    /// Address and bytes of each buffer.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, usize)> {
        let buffers = self.pages.iter().flat_map(|page| [&page.keys, &page.values, &page.scales]);
        let buffers = buffers.filter(|buffer| buffer.len() > 0);
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

    /// Block of keys in 8 bits with `position` in it, `[head_size / 4, LANES, 4]`.
    pub fn int8_keys(&self, kv_head: usize, position: usize) -> *mut u8 {
        let block = kv_head * PAGE / LANES + position % PAGE / LANES;
        self.pages[position / PAGE].keys.at(block * self.head_size * LANES / 2).cast()
    }

    /// Values in 8 bits of `position` and its neighbour, `[width, 2]`.
    pub fn int8_values(&self, kv_head: usize, position: usize) -> *mut i8 {
        let pair = (kv_head * PAGE + position % PAGE) / 2;
        self.pages[position / PAGE].values.at(pair * self.width).cast()
    }

    /// Scales of the key and the value of `position` in 8 bits, and of the positions after it in
    /// its page.
    pub fn scales(&self, kv_head: usize, position: usize) -> [*mut u16; 2] {
        let scales = &self.pages[position / PAGE].scales;
        [0, 1].map(|value| scales.at((2 * kv_head + value) * PAGE + position % PAGE))
    }

    /// Addresses of number `number` of a position's key and value in 8 bits.
    pub fn int8_number(&self, kv_head: usize, position: usize, number: usize) -> (*mut u8, *mut i8) {
        let key = (number / 4 * LANES + position % LANES) * 4 + number % 4;
        let keys = self.int8_keys(kv_head, position).wrapping_add(key);
        let value = 2 * number + position % 2;
        (keys, self.int8_values(kv_head, position).wrapping_add(value))
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
            for (number, (key, value)) in key.iter_mut().zip(value).enumerate() {
                // SAFETY: guaranteed by the caller; a head has as many numbers.
                (*key, *value) = unsafe { self.number(kv_head, position, number) };
            }
            if self.dtype == KvDtype::Int8 {
                // The matrix is its own inverse, up to a factor.
                hadamard::rotate(key, hadamard::factors(self.head_size)[1]);
                key.iter_mut().zip(self.key_offsets(kv_head)).for_each(|(key, offset)| *key += offset);
            }
        }
    }

    /// Number `number` of a position's key and value.
    ///
    /// # Safety
    /// As [`Self::load`]; the head has the number.
    unsafe fn number(&self, kv_head: usize, position: usize, number: usize) -> (f32, f32) {
        let half = |word| f16::from_bits(word).to_f32();
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.dtype {
                KvDtype::F16 => {
                    let keys = self.keys(kv_head, position).wrapping_add(position % LANES);
                    (half(*keys.add(number * LANES)), half(*self.value(kv_head, position).add(number)))
                }
                KvDtype::Int8 => {
                    let (key, value) = self.int8_number(kv_head, position, number);
                    let [of_key, of_value] = self.scales(kv_head, position).map(|scale| half(*scale));
                    ((f32::from(*key) - 128.0) * of_key, f32::from(*value) * of_value)
                }
            }
        }
    }

    /// Copies the keys and values of one position to another.
    pub fn copy(&mut self, from: usize, to: usize) {
        for kv_head in 0..self.kv_heads {
            // SAFETY: positions are within what was reserved, and `&mut` excludes other access.
            unsafe {
                if self.dtype == KvDtype::Int8 {
                    self.copy_int8(kv_head, from, to);
                    continue;
                }
                let (old, new) = (self.keys(kv_head, from), self.keys(kv_head, to));
                for number in 0..self.head_size {
                    *new.add(number * LANES + to % LANES) = *old.add(number * LANES + from % LANES);
                }
                let (old, new) = (self.value(kv_head, from), self.value(kv_head, to));
                std::ptr::copy(old, new, self.width);
            }
        }
    }

    /// Copies a head's key and value of one position to another.
    ///
    /// # Safety
    /// The positions must be within what was reserved.
    unsafe fn copy_int8(&mut self, kv_head: usize, from: usize, to: usize) {
        let (old, new) = (self.scales(kv_head, from), self.scales(kv_head, to));
        // SAFETY: guaranteed by the caller; `&mut` excludes other access.
        unsafe {
            old.into_iter().zip(new).for_each(|(old, new)| *new = *old);
            for number in 0..self.head_size {
                let (old, new) =
                    (self.int8_number(kv_head, from, number), self.int8_number(kv_head, to, number));
                (*new.0, *new.1) = (*old.0, *old.1);
            }
        }
    }

    /// Sets the key and value of a position to zero bytes.
    fn erase(&mut self, position: usize) {
        for kv_head in 0..self.kv_heads {
            // SAFETY: the position is within what was reserved, and `&mut` excludes other access.
            unsafe {
                match self.dtype {
                    KvDtype::F16 => {
                        let keys = self.keys(kv_head, position).wrapping_add(position % LANES);
                        (0..self.head_size).for_each(|number| *keys.add(number * LANES) = 0);
                        self.value(kv_head, position).write_bytes(0, self.width);
                    }
                    KvDtype::Int8 => {
                        self.scales(kv_head, position).into_iter().for_each(|scale| *scale = 0);
                        for number in 0..self.head_size {
                            let (key, value) = self.int8_number(kv_head, position, number);
                            (*key, *value) = (0, 0);
                        }
                    }
                }
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
        [&self.keys, &self.values, &self.scales].into_iter().any(SharedBuffer::is_shared)
    }

    fn buffers_mut(&mut self) -> impl Iterator<Item = &mut SharedBuffer<u16>> {
        [&mut self.keys, &mut self.values, &mut self.scales].into_iter()
    }

    /// Prepares to be written, see [`SharedBuffer::try_own`].
    fn try_own(&mut self, content: bool) -> Result<(), TryReserveError> {
        self.buffers_mut().try_for_each(|buffer| buffer.try_own(content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_unused_pages_but_one_are_freed() {
        let mut cache = KvCache::new(3, 20);
        assert_eq!(cache.bytes_to_reserve(0..PAGE + 1), 2 * cache.page_length() * size_of::<u16>());
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
    fn a_position_in_8_bits_is_copied_read_and_erased_in_every_head() {
        let offsets: Vec<f32> = (0..60).map(|number| (number % 7) as f32).collect();
        let mut cache = KvCache::in_int8(3, 20, offsets.clone());
        cache.reserve(0..600).unwrap();
        let rows = |position: usize| {
            let row = move |head: usize, sign: i32| {
                (0..20).map(move |number| sign * ((position * 3 + head + number) % 127) as i32)
            };
            (0..3).map(move |head| (row(head, 1), row(head, -1)))
        };
        for position in 0..600 {
            for (head, (keys, values)) in rows(position).enumerate() {
                for (number, (key, value)) in keys.zip(values).enumerate() {
                    // SAFETY: the position is below what was reserved, and the head has the number.
                    unsafe {
                        let (to_key, to_value) = cache.int8_number(head, position, number);
                        (*to_key, *to_value) = ((key + 128) as u8, value as i8);
                        let scales = cache.scales(head, position);
                        *scales[0] = f16::from_f32(0.5).to_bits();
                        *scales[1] = f16::from_f32(0.25).to_bits();
                    }
                }
            }
        }
        cache.copy(599, 251);
        let mut found = vec![0.0; 2 * 3 * 20];
        for (position, from) in [(250, 250), (251, 599), (252, 252), (256, 256)] {
            // SAFETY: as above.
            unsafe { cache.load(position, &mut found) };
            let mut keys: Vec<f32> =
                rows(from).flat_map(|(keys, _)| keys).map(|key| key as f32 * 0.5).collect();
            keys.chunks_mut(20).for_each(|key| hadamard::rotate(key, 0.5));
            keys.iter_mut().zip(&offsets).for_each(|(key, offset)| *key += offset);
            let values = rows(from).flat_map(|(_, values)| values).map(|value| value as f32 * 0.25);
            assert_eq!(found, keys.into_iter().chain(values).collect::<Vec<_>>(), "{position}");
        }
        let words = cache.page(2, 599 - 2 * PAGE);
        assert_eq!(words.len(), cache.page_length());
        let mut other = KvCache::in_int8(3, 20, offsets.clone());
        other.push_page(&words);
        let mut expected = found.clone();
        // SAFETY: as above.
        unsafe {
            cache.load(598, &mut expected);
            other.load(598 - 2 * PAGE, &mut found);
            assert_eq!(found, expected);
            other.load(599 - 2 * PAGE, &mut found);
        }
        assert_eq!(found, [offsets, vec![0.0; 60]].concat());
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
