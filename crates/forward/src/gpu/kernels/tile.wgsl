// Sums of panels of sixteen output rows with a tile of rows, for `product.wgsl` and `gated.wgsl`. A
// panel's threads are SLOTS runs of inputs times 16 lanes (output rows). `rows.wgsl` or
// `slots.wgsl` assigns rows and panels; `quants.wgsl`, `numbers.wgsl` and the files beside them
// define panels and runs.
//
// Each run has a rounded sum of its own. One thread per row and lane adds these in order: the CPU
// engine's operations in its order. A row's result depends neither on other rows nor on its
// position in the tile.

struct Params {
    length: u32, // of a row
    begin: u32,  // row at which the first tile begins
    rows: u32,   // end of the last tile
    stride: u32, // of an output row
    first: u32,  // panel of the matrix at which `weights` begins
    skip: u32,   // panels of `weights` to skip
    mode: u32,   // operation on the sums: see the kernels
    width: u32,  // of f32 rows
    panels: u32, // of one expert's matrix; this and the next two are for `slots.wgsl`
    held: u32,   // panels in `weights`
    by_row: u32, // 1: a slot's input is its row's, else its own; 2: and so is its output
    biases: u32, // offset of the experts' biases; NONE without. For `expert_biases.wgsl`
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> weights: array<u32>;

const ROWS = {{ROWS}}u;
const SLOTS = 8u;
const THREADS = SLOTS * 16u; // of a panel

var<workgroup> products: array<f32, AT_ONCE * SLOTS * ROWS * 16u>; // [panels, slots, rows, lanes]

// Returns the sum of lane `thread % 16` of a panel with row `thread / 16` of the tile, if the tile
// has that row. `which` is the panel's index among those in work.
fn sum_panel(tile: Tile, panel: u32, which: u32, thread: u32) -> f32 {
    let lane = thread & 15u;
    let slot = thread >> 4u;
    let room = which * SLOTS * ROWS * 16u + lane;
    var sum = 0.0;
    for (var first = 0u; first < params.length; first += SLOTS * RUN) {
        let begin = first + slot * RUN;
        if begin < params.length {
            sum_run(tile, panel, begin, lane, room + slot * ROWS * 16u);
        }
        workgroupBarrier();
        // A thread per row of the tile and lane adds the runs to its sum.
        if slot < tile.rows {
            let runs = min(SLOTS, (params.length - first + RUN - 1u) / RUN);
            for (var run = 0u; run < runs; run++) {
                sum += products[room + (run * ROWS + slot) * 16u];
            }
        }
        workgroupBarrier();
    }
    return sum;
}
