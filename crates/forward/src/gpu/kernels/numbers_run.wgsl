// Sums of a run of an f32, f16 or bf16 panel with rows of f32.

@group(0) @binding(2) var<storage, read> x: array<f32>;  // [rows, width]

// Inputs that are summed separately; `length` counts inputs.
const RUN = 32u;

// Computes the sums of a run of a panel from input `begin` on, for each row of the tile, LANES
// words apart.
fn sum_run(tile: Tile, panel: u32, begin: u32, lane: u32, to: u32) {
{{EACH}}    var sum{{ROW}} = 0.0;
    let row{{ROW}} = input_row(tile, {{ROW}}u) * params.width;
{{END}}
    let end = min(begin + RUN, params.length);
    for (var input = begin; input < end; input++) {
        let weight = number((panel * params.length + input) * 16u + lane);
{{EACH}}        sum{{ROW}} = fused(weight, x[row{{ROW}} + input], sum{{ROW}});
{{END}}
    }
{{EACH}}    products[to + {{ROW}}u * LANES] = sum{{ROW}};
{{END}}
}
