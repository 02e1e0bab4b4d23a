// The product of a matrix with rows of activations, or that added to what is there. A workgroup is SLOTS runs of inputs
// times 16 lanes (output rows of a panel); which rows and which panel is in `rows.wgsl` or `slots.wgsl`, what a panel is
// like and what a run comes to in `quants.wgsl` and `numbers.wgsl` and beside them.
//
// A run has a rounded sum of its own, and a thread for each row and lane adds these up in their order: the CPU engine's
// operations in the CPU engine's order. What a row gets depends on no other row, and not on where in the tile it is.

struct Ask {
    length: u32, // of a row
    begin: u32,  // row that the first tile begins with
    rows: u32,   // of all tiles, and those before
    stride: u32, // of `out`
    first: u32,  // panel of the matrix that is the first of `weights`
    add: u32,    // to what is in `out`
    width: u32,  // of rows that are numbers
    panels: u32, // of an expert's matrix, as are the others
    held: u32,   // panels in `weights`
    by_row: u32, // a slot's input is its row's, else its own
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;  // [rows, stride]

const ROWS = {{ROWS}}u;
const SLOTS = 8u;
const THREADS = SLOTS * 16u;

var<workgroup> products: array<f32, SLOTS * ROWS * 16u>; // [slots, rows, lanes]

@compute @workgroup_size(THREADS)
fn product(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread & 15u;
    let slot = thread >> 4u;
    let tile = tile_of(group, ROWS);
    if tile.rows == 0u {
        return;
    }
    var sum = 0.0;
    for (var first = 0u; first < ask.length; first += SLOTS * RUN) {
        let begin = first + slot * RUN;
        if begin < ask.length {
            sum_run(tile, begin, lane, slot * ROWS * 16u + lane);
        }
        workgroupBarrier();
        // A thread for each row of the tile and lane goes on with its sum.
        if slot < tile.rows {
            let runs = min(SLOTS, (ask.length - first + RUN - 1u) / RUN);
            for (var run = 0u; run < runs; run++) {
                sum += products[(run * ROWS + slot) * 16u + lane];
            }
        }
        workgroupBarrier();
    }
    if slot < tile.rows {
        let at = (tile.first + slot) * ask.stride + tile.out * 16u + lane;
        if ask.add != 0u {
            sum += out[at];
        }
        out[at] = sum;
    }
}
