// Quantisation to 8 bits with the bits of the CPU engine's `Activations`: 32 numbers share a scale.

// Below this 127 / largest would be infinite.
const SMALLEST = 1e-36;

// 1 / 127, rounded.
const PART = 0.007874016;

// largest / 127, correctly rounded, without a division: NVIDIA's driver multiplies by the inverse
// of a constant and takes the remainder that `divide` adds for 0.
fn scale_of(largest: f32) -> f32 {
    let near = largest * PART;
    let rest = fused(-near, 127.0, largest);
    return select(fused(rest, PART, near), 0.0, largest < SMALLEST);
}

fn inverse_of(largest: f32) -> f32 {
    return select(divide(127.0, largest), 0.0, largest < SMALLEST);
}

fn quant_of(number: f32, inverse: f32) -> i32 {
    return i32(round(number * inverse)); // ties to even
}

fn packed(four: vec4<i32>) -> u32 {
    let bytes = (vec4<u32>(four) & vec4(255u)) << vec4(0u, 8u, 16u, 24u);
    return bytes.x | bytes.y | bytes.z | bytes.w;
}
