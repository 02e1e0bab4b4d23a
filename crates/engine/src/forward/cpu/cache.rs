//! Keys and values of one layer in half precision, in pages, so that growing moves nothing and
//! forgetting is free.
//!
//! Values lie as they are used: a position's numbers next to each other. Keys lie sixteen positions
//! side by side, number by number, like the weights of a panel: a query is multiplied with sixteen
//! positions at once.

use super::buffer::Buffer;
use super::simd::LANES;

/// Positions of a page.
const PAGE: usize = 256;

#[derive(Debug)]
pub struct Cache {
    kv_heads: usize,
    head_size: usize,
    /// `head_size` in whole vectors.
    width: usize,
    pages: Vec<Page>,
}

#[derive(Debug, Default)]
struct Page {
    keys: Buffer<u16>,   // [kv_heads, PAGE / LANES, head_size, LANES]
    values: Buffer<u16>, // [kv_heads, PAGE, width]
}

impl Cache {
    pub fn new(kv_heads: usize, head_size: usize) -> Self {
        Self { kv_heads, head_size, width: head_size.next_multiple_of(LANES), pages: Vec::new() }
    }

    /// Bytes a position takes.
    pub fn bytes_per_position(&self) -> usize {
        self.kv_heads * (self.head_size + self.width) * size_of::<u16>()
    }

    /// Makes room for `positions` of them.
    pub fn reserve(&mut self, positions: usize) {
        while self.pages.len() * PAGE < positions {
            let mut page = Page::default();
            page.keys.reserve(self.kv_heads * PAGE * self.head_size);
            page.values.reserve(self.kv_heads * PAGE * self.width);
            self.pages.push(page);
        }
    }

    /// The block of keys that `position` is in, `[head_size, LANES]`.
    pub fn keys(&self, kv_head: usize, position: usize) -> *mut u16 {
        let block = kv_head * PAGE / LANES + position % PAGE / LANES;
        self.pages[position / PAGE].keys.at(block * self.head_size * LANES)
    }

    /// The value of `position`, `[width]`, zeros after `head_size`.
    pub fn value(&self, kv_head: usize, position: usize) -> *mut u16 {
        self.pages[position / PAGE].values.at((kv_head * PAGE + position % PAGE) * self.width)
    }

    /// Positions from `position` on whose values lie behind each other.
    pub fn run(position: usize) -> usize {
        PAGE - position % PAGE
    }

    /// Copies a position over another.
    pub fn copy(&mut self, from: usize, to: usize) {
        for kv_head in 0..self.kv_heads {
            // SAFETY: positions are within what was reserved, and `&mut` keeps everybody else away.
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
    fn a_copied_position_is_the_same_in_every_head() {
        let mut cache = Cache::new(3, 20);
        cache.reserve(600);
        for (kv_head, position) in (0..3).flat_map(|head| (0..600).map(move |position| (head, position))) {
            let number = (kv_head * 600 + position) as u16;
            // SAFETY: the position is below what was reserved, and each of the 20 numbers is the head's.
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
