// The product of a panel of sixteen output rows, of weights that are numbers, with up to 8 rows: a thread for each,
// whose sum runs over the inputs in their order, as the CPU engine's does.

struct Ask {
    inputs: u32,
    begin: u32,  // row that the first eight begin with
    rows: u32,   // of all, and those before
    stride: u32, // of `out`
    first: u32,  // panel of the matrix that is the first of `weights`
    add: u32,    // to what is in `out`
    width: u32,  // of `x`
    panels: u32, // of an expert's matrix, as are the others
    held: u32,   // panels in `weights`
    by_row: u32, // a slot's input is its row's, else its own
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;          // [rows, width]
@group(0) @binding(2) var<storage, read_write> out: array<f32>;  // [rows, stride]

const BITS = {{BITS}}u;
const BRAIN = {{BRAIN}};

fn number(index: u32) -> f32 {
    if BITS == 32u {
        return bitcast<f32>(weights[index]);
    }
    let bits = (weights[index >> 1u] >> ((index & 1u) * 16u)) & 0xffffu;
    if BRAIN {
        return bitcast<f32>(bits << 16u);
    }
    return half(bits);
}

@compute @workgroup_size(128)
fn product(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread & 15u;
    let tile = tile_of(group, 8u);
    if thread >> 4u >= tile.rows {
        return;
    }
    let row = tile.first + (thread >> 4u);
    let from_ = given(row) * ask.width;
    var sum = 0.0;
    for (var input = 0u; input < ask.inputs; input++) {
        sum = fused(number((tile.panel * ask.inputs + input) * 16u + lane), x[from_ + input], sum);
    }
    let at = row * ask.stride + tile.out * 16u + lane;
    if ask.add != 0u {
        sum += out[at];
    }
    out[at] = sum;
}
