// The product of a matrix with rows of activations, stored or added. One workgroup per tile and
// panel, or several panels.

@group(0) @binding(1) var<storage, read_write> out: array<f32>;  // [rows, stride]

const AT_ONCE = 1u;       // groups of threads
const UNIT = LANES / 16u; // panels of a workgroup

// Value of `mode`.
const ADD = 1u;

@compute @workgroup_size(THREADS)
fn product(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = tile_of(group, ROWS);
    if tile.rows == 0u {
        return;
    }
    let sums = sum_panels(tile, 0u, thread);
    let row = thread / LANES;
    write(tile, row, thread % LANES, sums.x);
    if SLOTS < ROWS {
        write(tile, row + SLOTS, thread % LANES, sums.y);
    }
}

// Writes the sum of a lane and a row of the tile, if both exist.
fn write(tile: Tile, row: u32, lane: u32, sum: f32) {
    if row < tile.rows && has_panel(tile, lane) {
        let at = taken(tile.first + row) * params.stride + tile.out * 16u + lane;
        if params.mode == ADD {
            out[at] += sum;
        } else {
            out[at] = sum;
        }
    }
}
