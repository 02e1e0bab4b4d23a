// Adds rows of numbers to consecutive rows of the state. One thread per number.

struct Params {
    length: u32,
    stride: u32, // of `added` and `state`
    first: u32,  // row of the state
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> added: array<f32>;       // [rows, stride]
@group(0) @binding(1) var<storage, read_write> state: array<f32>; // [rows, stride]

@compute @workgroup_size(64)
fn add_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.length {
        return;
    }
    let at = id.y * params.stride + id.x;
    let to = params.first * params.stride + at;
    state[to] = state[to] + added[at];
}
