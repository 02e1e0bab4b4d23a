// A block of 32 numbers of `plain` in eight bits, as the CPU engine's `Activations` rounds it: to `quants` and `scales`.
fn round_block(at: u32) {
    var largest = 0.0;
    for (var i = 0u; i < 32u; i++) {
        largest = max(largest, abs(plain[32u * at + i]));
    }
    let zero = largest < 1e-36;
    let scale = select(divide(largest, 127.0), 0.0, zero);
    let inverse = select(divide(127.0, largest), 0.0, zero);
    var sum = 0;
    for (var j = 0u; j < 8u; j++) {
        var word = 0u;
        for (var i = 0u; i < 4u; i++) {
            let quant = i32(round(plain[32u * at + 4u * j + i] * inverse)); // ties to even
            sum += quant;
            word |= (u32(quant) & 255u) << (8u * i);
        }
        quants[at * 8u + j] = word;
    }
    scales[at] = vec2(scale, scale * f32(sum));
}
