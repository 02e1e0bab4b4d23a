// Arithmetic with the CPU engine's bits on every device that has `fused`, a multiply-add with one
// rounding. No kernel may contain a bare `a * b + c`: a driver may fuse it or not. A rounded
// product that is added goes through `opaque`.

// Returns `number` if `zero` is 0, which no compiler can know.
fn opaque(number: f32, zero: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(number) ^ zero);
}

// a / b, correctly rounded: a device's own division may be off, but the remainder is exact. For
// constants `b` see `scale_of`.
fn divide(a: f32, b: f32) -> f32 {
    let near = a / b;
    let rest = fused(-near, b, a);
    return fused(rest, 1.0 / b, near);
}

// Correctly rounded square root, computed in the same way.
fn root(a: f32) -> f32 {
    let near = sqrt(a);
    let rest = fused(-near, near, a);
    return fused(rest, 0.5 / near, near);
}

// e^x with the bits of the CPU engine's `exp`: 2^n e^r, with n the nearest integer to x / ln 2 and
// the Taylor series of e^r.
fn exponential(x: f32) -> f32 {
    let a = min(max(x, -69.0), 69.0);
    let n = round(a * 1.44269504);
    var r = fused(n, -0.693359375, a);
    r = fused(n, 2.1219444e-4, r);
    var series = 1.0 / 5040.0;
    series = fused(series, r, 1.0 / 720.0);
    series = fused(series, r, 1.0 / 120.0);
    series = fused(series, r, 1.0 / 24.0);
    series = fused(series, r, 1.0 / 6.0);
    series = fused(series, r, 0.5);
    series = fused(series, r, 1.0);
    series = fused(series, r, 1.0);
    return series * bitcast<f32>((i32(n) + 127) << 23u);
}

fn sigmoid(x: f32) -> f32 {
    return divide(1.0, 1.0 + exponential(0.0 - x));
}

// Exact conversion from f16. The device's own may flush subnormal numbers to zero.
fn half(bits: u32) -> f32 {
    let size = (bits & 0x7fffu) << 13u;
    let normal = bitcast<f32>(size + 0x38000000u);
    // A subnormal number is the distance to 2^-14 after that was added, which is exact.
    let subnormal = bitcast<f32>(size + 0x38800000u) - 6.103515625e-5;
    let number = select(normal, subnormal, size < 0x00800000u);
    return bitcast<f32>(bitcast<u32>(number) | ((bits & 0x8000u) << 16u));
}

// Conversion to f16, to nearest, ties to even; overflow becomes infinity.
fn to_half(number: f32) -> u32 {
    let bits = bitcast<u32>(number);
    let sign = (bits >> 16u) & 0x8000u;
    let size = bits & 0x7fffffffu;
    var rounded = 0x7c00u;
    if size > 0x7f800000u {
        rounded = 0x7e00u;
    } else if size < 0x38800000u {
        // Below 2^-14 the spacing is 2^-24, as that of f32 from 1/2 on.
        rounded = bitcast<u32>(bitcast<f32>(size) + 0.5) - 0x3f000000u;
    } else if size < 0x47800000u {
        rounded = (size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u;
    }
    return sign | rounded;
}
