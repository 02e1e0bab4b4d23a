// Dequantises one block of 32 quants of a row.
fn unpack(panel: u32, index: u32, lane: u32, to: u32) {
    let block = panel * (params.length / GROUPS * BLOCK) + index / GROUPS * BLOCK;
    let group = index % GROUPS;
    let w = quants_of(block + HEAD + group * GROUP, lane);
    let by = factor_of(head_of(block, lane), block, group, lane);
    let parts = parts_of(block, group, lane);
    for (var j = 0u; j < 8u; j++) {
        let four = select(w.upper[j & 3u], w.lower[j & 3u], j < 4u);
        let part = select(parts.y, parts.x, j < 4u);
        var factor = by.x * f32(part);
        var offset = by.y;
        if SCALED == BY_SIXTEENS {
            factor = select(by.y, by.x, j < 4u);
            offset = 0.0;
        }
        if SCALED == WITH_NIBBLES {
            factor = by.x * f32(part & 15);
            offset = by.y * f32(-((part >> 4u) & 15));
        }
        for (var i = 0u; i < 4u; i++) {
            let quant = i32(four << (24u - 8u * i)) >> 24u;
            out[to + 32u * index + 4u * j + i] = fused(factor, f32(quant), offset) * params.scale;
        }
    }
}
