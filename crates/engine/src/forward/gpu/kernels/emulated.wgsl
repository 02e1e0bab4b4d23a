// The multiply-add of a device whose own rounds twice, by f64.
//
// a * b + c with one rounding, where the device's own has two: the product is exact in f64, and the sum is
// rounded to odd, so that rounding it again to f32 cannot go wrong.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64(a) * f64(b);
    let addend = f64(c);
    // A zero that the driver does not see through, since it would take (p + c) - p for c, and what is lost for nothing.
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
