// The multiply-add a * b + c with one rounding, by f64, for devices whose own `fma` rounds twice.
// The product is exact in f64. The sum is rounded to odd, so that rounding it again to f32 is
// correct.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64(a) * f64(b);
    let addend = f64(c);
    // A zero that the driver cannot see through; it would simplify (p + c) - p to c, and the error
    // term to 0.
    let zero = u64(countOneBits(bitcast<u32>(c)) >> 6u);
    let sum = bitcast<f64>(bitcast<u64>(product + addend) ^ zero);
    let shifted = bitcast<f64>(bitcast<u64>(sum - product) ^ zero);
    let rest = (product - (sum - shifted)) + (addend - shifted);
    var bits = bitcast<u64>(sum);
    if rest != 0lf && (bits & 1lu) == 0lu {
        if (rest > 0lf) == (sum > 0lf) { bits += 1lu; } else { bits -= 1lu; }
    }
    return f32(bitcast<f64>(bits));
}
