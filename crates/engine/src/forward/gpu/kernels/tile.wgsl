// The sums of panels of sixteen output rows with a tile of rows, for `product.wgsl` and `gated.wgsl`. A panel's threads are
// SLOTS runs of inputs times 16 lanes (output rows). Which rows and which panels is in `rows.wgsl` or `slots.wgsl`, what a
// panel is like and what a run comes to in `quants.wgsl` and `numbers.wgsl` and beside them.
//
// A run has a rounded sum of its own, and a thread for each row and lane adds these up in their order: the CPU engine's
// operations in the CPU engine's order. What a row gets depends on no other row, and not on where in the tile it is.

struct Ask {
    length: u32, // of a row
    begin: u32,  // row that the first tile begins with
    rows: u32,   // of all tiles, and those before
    stride: u32, // of what comes out
    first: u32,  // panel of the matrix that is the first of `weights`
    skip: u32,   // panels of `weights` before those to multiply
    mode: u32,   // what is done with the sums: see the programs
    width: u32,  // of rows that are numbers
    panels: u32, // of an expert's matrix, as are the others
    held: u32,   // panels in `weights`
    by_row: u32, // a slot's input is its row's, else its own
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> weights: array<u32>;

const ROWS = {{ROWS}}u;
const SLOTS = 8u;
const THREADS = SLOTS * 16u; // of a panel

var<workgroup> products: array<f32, AT_ONCE * SLOTS * ROWS * 16u>; // [panels, slots, rows, lanes]

// The sum of lane `thread % 16` of a panel with row `thread / 16` of the tile, where that has so many. `which` it is of the
// panels that the workgroup is at.
fn sum_panel(tile: Tile, panel: u32, which: u32, thread: u32) -> f32 {
    let lane = thread & 15u;
    let slot = thread >> 4u;
    let room = which * SLOTS * ROWS * 16u + lane;
    var sum = 0.0;
    for (var first = 0u; first < ask.length; first += SLOTS * RUN) {
        let begin = first + slot * RUN;
        if begin < ask.length {
            sum_run(tile, panel, begin, lane, room + slot * ROWS * 16u);
        }
        workgroupBarrier();
        // A thread for each row of the tile and lane goes on with its sum.
        if slot < tile.rows {
            let runs = min(SLOTS, (ask.length - first + RUN - 1u) / RUN);
            for (var run = 0u; run < runs; run++) {
                sum += products[room + (run * ROWS + slot) * 16u];
            }
        }
        workgroupBarrier();
    }
    return sum;
}
