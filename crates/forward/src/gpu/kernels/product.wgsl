// The product of a matrix with rows of activations, stored or added. One workgroup per tile and
// panel.

@group(0) @binding(1) var<storage, read_write> out: array<f32>;  // [rows, stride]

const AT_ONCE = 1u; // panels
const UNIT = 1u;    // per workgroup

// Value of `mode`.
const ADD = 1u;

@compute @workgroup_size(THREADS)
fn product(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = tile_of(group, ROWS);
    if tile.rows == 0u {
        return;
    }
    var sum = sum_panel(tile, tile.panel, 0u, thread);
    let row = thread >> 4u;
    if row < tile.rows {
        let at = taken(tile.first + row) * params.stride + tile.out * 16u + (thread & 15u);
        if params.mode == ADD {
            sum += out[at];
        }
        out[at] = sum;
    }
}
