// The multiply-add of a device whose own rounds twice, by f64.
//
// a * b + c with one rounding, where the device's own has two: the product is exact in f64, and the sum is
// rounded to odd, so that rounding it again to f32 cannot go wrong.
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let product = f64(a) * f64(b);
    let addend = f64(c);
    let sum = product + addend;
    let shifted = sum - product;
    let rest = (product - (sum - shifted)) + (addend - shifted);
    var bits = bitcast<u64>(sum);
    if rest != 0lf && (bits & 1lu) == 0lu {
        if (rest > 0lf) == (sum > 0lf) { bits += 1lu; } else { bits -= 1lu; }
    }
    return f32(bitcast<f64>(bits));
}
