// The multiply-add a * b + c with one rounding, by f64, for devices whose own `fma` rounds twice.
// The product is exact in f64. The sum is rounded to odd, so that rounding it again to f32 is
// correct.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64(a) * f64(b);
    let addend = f64(c);
    // A zero that the driver cannot see through, unless all three numbers are constants. It would
    // simplify (p + c) - p to c, the error term to 0, and the f64 of a result to the sum before it
    // was rounded to f32.
    let zero = countOneBits(bitcast<u32>(a) ^ bitcast<u32>(b) ^ bitcast<u32>(c)) >> 6u;
    let sum = bitcast<f64>(bitcast<u64>(product + addend) ^ u64(zero));
    let shifted = bitcast<f64>(bitcast<u64>(sum - product) ^ u64(zero));
    let rest = (product - (sum - shifted)) + (addend - shifted);
    var bits = bitcast<u64>(sum);
    if rest != 0lf && (bits & 1lu) == 0lu {
        if (rest > 0lf) == (sum > 0lf) { bits += 1lu; } else { bits -= 1lu; }
    }
    return bitcast<f32>(bitcast<u32>(f32(bitcast<f64>(bits))) ^ zero);
}
