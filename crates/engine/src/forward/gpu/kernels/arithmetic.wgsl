// Arithmetic that has the CPU engine's bits on every device that has `fused`, a multiply-add of one rounding.
// No bare `a * b + c` may stand in any kernel: a driver may fuse it or not. Where a rounded product has to be
// added, it goes through `opaque`.

// `number`, if `zero` is 0, which no compiler knows.
fn opaque(number: f32, zero: u32) -> f32 {
    return bitcast<f32>(bitcast<u32>(number) ^ zero);
}

// a / b to the nearest, where the device's own is only nearly so: the remainder is exact.
fn divide(a: f32, b: f32) -> f32 {
    let near = a / b;
    let rest = fused(-near, b, a);
    return fused(rest, 1.0 / b, near);
}

// The square root to the nearest, in the same way.
fn root(a: f32) -> f32 {
    let near = sqrt(a);
    let rest = fused(-near, near, a);
    return fused(rest, 0.5 / near, near);
}

// e^x as the CPU engine's `exp` makes it: 2^n e^r with n the nearest integer to x / ln 2, and the Taylor series of e^r.
fn exponential(x: f32) -> f32 {
    let a = min(max(x, -87.0), 88.0);
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

// Half precision to single, exactly; not left to the device, which may take tiny ones for zero.
fn half(bits: u32) -> f32 {
    let exponent = (bits >> 10u) & 31u;
    let mantissa = bits & 1023u;
    let normal = bitcast<f32>(((exponent + 112u) << 23u) | (mantissa << 13u));
    let size = select(normal, f32(mantissa) * 5.9604645e-8, exponent == 0u);
    return select(size, -size, (bits & 0x8000u) != 0u);
}

// Single precision to half, to the nearest, ties to even; too large ones to infinity.
fn to_half(number: f32) -> u32 {
    let bits = bitcast<u32>(number);
    let sign = (bits >> 16u) & 0x8000u;
    let size = bits & 0x7fffffffu;
    var rounded = 0x7c00u;
    if size > 0x7f800000u {
        rounded = 0x7e00u;
    } else if size < 0x38800000u {
        // Below 2^-14: in steps of 2^-24, which are those of numbers from 1/2 on.
        rounded = bitcast<u32>(bitcast<f32>(size) + 0.5) - 0x3f000000u;
    } else if size < 0x47800000u {
        rounded = (size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u;
    }
    return sign | rounded;
}
