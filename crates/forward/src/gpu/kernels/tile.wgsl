// Sums of panels of sixteen output rows with a tile of rows, for `product.wgsl` and `gated.wgsl`.
// Threads are SLOTS runs of inputs times LANES output rows, of one panel or of adjacent ones.
// `rows.wgsl` or `slots.wgsl` assigns rows and panels; `quants.wgsl`, `numbers.wgsl` and the files
// beside them define panels and runs.
//
// With as many lanes as the largest subgroup has threads, all threads of a subgroup have the same
// run: a device may then load rows once for all of them.
//
// Each run has a rounded sum of its own. A thread adds the runs of a lane and one or two rows in
// order: the CPU engine's operations in its order. A row's result depends neither on other rows nor
// on its position in the tile.

struct Params {
    length: u32, // of a row
    begin: u32,  // row at which the first tile begins, a multiple of ROWS
    rows: u32,   // end of the last tile
    stride: u32, // of an output row
    first: u32,  // panel of the matrix at which `weights` begins
    skip: u32,   // panels of `weights` to skip
    mode: u32,   // operation on the sums: see the kernels
    width: u32,  // of f32 rows
    panels: u32, // of one expert's matrix, for `slots.wgsl`; of the matrix
    held: u32,   // panels in `weights`, or the first ones that are multiplied
    by_row: u32, // 1: a slot's input is its row's, else its own; 2: and so is its output
    biases: u32, // offset of the experts' biases; NONE without. For `expert_biases.wgsl`
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> weights: array<u32>;

const ROWS = {{ROWS}}u;
const LANES = {{LANES}}u;
const SLOTS = {{RUNS}}u;
const THREADS = SLOTS * LANES;

var<workgroup> products: array<f32, AT_ONCE * SLOTS * ROWS * LANES>; // [AT_ONCE, slots, rows, lanes]

// Returns whether `weights` has the panel of a lane, and the matrix or expert has it, too.
fn has_panel(tile: Tile, lane: u32) -> bool {
    return tile.panel + lane / 16u < params.held && tile.out + lane / 16u < tile.end;
}

// Returns the sums of lane `thread % LANES` of the panels from `tile.panel` on with rows
// `thread / LANES` and `thread / LANES + SLOTS` of the tile, if the tile has these rows. `which` is
// the index among the groups of THREADS threads.
fn sum_panels(tile: Tile, which: u32, thread: u32) -> vec2<f32> {
    let lane = thread % LANES;
    let slot = {{SLOT}};
    let room = which * SLOTS * ROWS * LANES + lane;
    let panel = select(0u, tile.panel + lane / 16u, has_panel(tile, lane));
    var sums = vec2<f32>();
    for (var first = 0u; first < params.length; first += SLOTS * RUN) {
        let begin = first + slot * RUN;
        if begin < params.length {
            sum_run(tile, panel, begin, lane & 15u, room + slot * ROWS * LANES);
        }
        workgroupBarrier();
        let runs = min(SLOTS, (params.length - first + RUN - 1u) / RUN);
        if slot < ROWS {
            for (var run = 0u; run < runs; run++) {
                sums.x += products[room + (run * ROWS + slot) * LANES];
                if SLOTS < ROWS {
                    sums.y += products[room + (run * ROWS + slot + SLOTS) * LANES];
                }
            }
        }
        workgroupBarrier();
    }
    return sums;
}
