// Adds a branch, multiplied by the sigmoid of a gate, to the state. One thread per number.

struct Params {
    length: u32,
    stride: u32, // of `branch` and `state`
    gates: u32,  // stride of `gates`
    zero: u32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> gates: array<f32>;       // [rows, gates]: gate, ...
@group(0) @binding(1) var<storage, read> branch: array<f32>;      // [rows, stride]
@group(0) @binding(2) var<storage, read_write> state: array<f32>; // [rows, stride]

@compute @workgroup_size(64)
fn add_gated(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.length {
        return;
    }
    let weight = sigmoid(gates[id.y * params.gates]);
    let at = id.y * params.stride + id.x;
    state[at] += opaque(branch[at] * weight, params.zero);
}
