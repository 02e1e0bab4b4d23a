//! Rotation of keys and queries before they are rounded to 8 bits. In many models a few components
//! of keys are far larger than the others and would decide the scale of all. A Hadamard matrix
//! spreads such a component over a block, and keeps the products of keys and queries (QuaRot,
//! Ashkboos et al. 2024).

/// Numbers that a Hadamard matrix mixes in a head of `size` numbers: a power of two.
fn block(size: usize) -> usize {
    size & size.wrapping_neg()
}

/// Factors by which keys and queries are multiplied after the matrix: powers of two whose product
/// is the inverse of the block's size.
pub fn factors(size: usize) -> [f32; 2] {
    let bits = block(size).trailing_zeros();
    [bits / 2, bits - bits / 2].map(|bits| 1.0 / (1u32 << bits) as f32)
}

/// Multiplies blocks of a head by a Hadamard matrix, and all numbers by `factor`.
#[inline(always)]
pub fn rotate(head: &mut [f32], factor: f32) {
    let mut half = 1;
    while half < block(head.len()) {
        for pair in head.chunks_exact_mut(2 * half) {
            let (first, second) = pair.split_at_mut(half);
            for (a, b) in first.iter_mut().zip(second) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    head.iter_mut().for_each(|number| *number *= factor);
}
