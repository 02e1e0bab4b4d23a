// The sums of a run of a panel of numbers with rows of such.

@group(0) @binding(2) var<storage, read> x: array<f32>;  // [rows, width]

// What is summed up by itself, and what lengths are counted in: inputs.
const RUN = 32u;

// The sums of a run of a panel from input number `begin` on, for each row of the tile, sixteen words apart.
fn sum_run(tile: Tile, panel: u32, begin: u32, lane: u32, to: u32) {
    // Rows that a tile does not have are its last.
{{EACH}}    var sum{{ROW}} = 0.0;
    let row{{ROW}} = given(tile.first + min({{ROW}}u, tile.rows - 1u)) * ask.width;
{{END}}
    let end = min(begin + RUN, ask.length);
    for (var input = begin; input < end; input++) {
        let weight = number((panel * ask.length + input) * 16u + lane);
{{EACH}}        sum{{ROW}} = fused(weight, x[row{{ROW}} + input], sum{{ROW}});
{{END}}
    }
{{EACH}}    products[to + {{ROW}}u * 16u] = sum{{ROW}};
{{END}}
}
