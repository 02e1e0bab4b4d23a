// Quantises a block of a row of `plain` to `quants` and `scales`. Rows have `blocks` blocks.
fn round_block(row: u32, block: u32, blocks: u32) {
    let at = row * blocks + block;
    let to = tiled(row, block, blocks);
    var largest = 0.0;
    for (var i = 0u; i < 32u; i++) {
        largest = max(largest, abs(plain[32u * at + i]));
    }
    let inverse = inverse_of(largest);
    var sum = 0;
    for (var j = 0u; j < 8u; j++) {
        var four = vec4<i32>();
        for (var i = 0u; i < 4u; i++) {
            four[i] = quant_of(plain[32u * at + 4u * j + i], inverse);
        }
        sum += four.x + four.y + four.z + four.w;
        quants[8u * to + j] = packed(four);
    }
    let scale = scale_of(largest);
    scales[to] = vec2(scale, scale * f32(sum));
}
