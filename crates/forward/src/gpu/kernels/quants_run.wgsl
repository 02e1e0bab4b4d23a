// Sums of a run of a quantised panel with rows quantised to 8 bits. Products within a block are
// integers, exact in any order.

@group(0) @binding(2) var<storage, read> quants: array<array<vec4<u32>, 16>>;  // [rows / 8, blocks, 8, 2]
@group(0) @binding(3) var<storage, read> scales: array<array<vec2<f32>, 8>>;   // [rows / 8, blocks, 8]: scale, scale * sum

// Blocks of 32 inputs that are summed separately; `length` counts blocks.
const RUN = 8u;

fn dot16(w: vec4<u32>, x: vec4<u32>) -> i32 {
    return dot4I8Packed(w.x, x.x) + dot4I8Packed(w.y, x.y) + dot4I8Packed(w.z, x.z) + dot4I8Packed(w.w, x.w);
}

// Adds a block's products to a row's sum. `w` are the block's quants, `scale` the row's scale and
// sum.
fn add_block(sum: f32, w: Quants, by: vec2<f32>, parts: vec2<i32>, x: array<vec4<u32>, 2>, scale: vec2<f32>) -> f32 {
    let dots = vec2(dot16(w.lower, x[0]), dot16(w.upper, x[1]));
    if SCALED == WITH_NIBBLES {
        let ones = vec4(0x01010101u);
        let scaled = (parts & vec2(15)) * dots;
        let minimums = ((parts >> vec2(4u)) & vec2(15)) * vec2(dot16(ones, x[0]), dot16(ones, x[1]));
        let found = fused(f32(scaled.x + scaled.y) * scale.x, by.x, sum);
        return fused(f32(-(minimums.x + minimums.y)) * scale.x, by.y, found);
    }
    if SCALED == BY_SIXTEENS {
        return fused(f32(dots.y) * scale.x, by.y, fused(f32(dots.x) * scale.x, by.x, sum));
    }
    let scaled = parts * dots;
    let found = fused(f32(scaled.x + scaled.y) * scale.x, by.x, sum);
    if SCALED == WITH_MINIMUM || SCALED == WITH_PARTS {
        return fused(by.y, scale.y, found);
    }
    return found;
}

// Computes the sums of a run of a panel from block `begin` on, for each row of the tile, LANES
// words apart.
fn sum_run(tile: Tile, panel: u32, begin: u32, lane: u32, to: u32) {
{{EACH}}    var sum{{ROW}} = 0.0;
    let row{{ROW}} = input_place(tile, {{ROW}}u);
{{END}}
    let start = panel * (params.length / GROUPS * BLOCK);
    let end = min(begin + RUN, params.length);
    for (var first = begin; first < end; first += GROUPS) {
        let block = start + first / GROUPS * BLOCK;
        let head = head_of(block, lane);
        for (var group = 0u; group < GROUPS; group++) {
            let w = quants_of(block + HEAD + group * GROUP, lane);
            let by = factor_of(head, block, group, lane);
            let parts = parts_of(block, group, lane);
{{EACH}}
            {
                let at = row{{ROW}}.x + first + group;
                let x = array(quants[at][2u * row{{ROW}}.y], quants[at][2u * row{{ROW}}.y + 1u]);
                sum{{ROW}} = add_block(sum{{ROW}}, w, by, parts, x, scales[at][row{{ROW}}.y]);
            }
{{END}}
        }
    }
{{EACH}}    products[to + {{ROW}}u * LANES] = sum{{ROW}};
{{END}}
}
