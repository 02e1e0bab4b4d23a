// Sums the outputs of a row's experts by their weights, the highest first. Adds the sum to the
// state, or stores it as a branch that a norm follows. One thread per number.

struct Params {
    top_k: u32,
    length: u32,
    stride: u32, // of `given` and `state`
    add: u32,    // to `state`
    zero: u32,
    biases: u32, // of the experts' outputs: their offset in `vectors`; NONE without
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> choices: array<vec2<u32>>;   // [rows, top_k]: expert, bits of its weight
@group(0) @binding(1) var<storage, read> slot_of: array<u32>;         // [rows, top_k]
@group(0) @binding(2) var<storage, read> given: array<f32>;           // [slots, stride]
@group(0) @binding(3) var<storage, read> vectors: array<f32>;         // ..., [experts, stride], ...
@group(0) @binding(4) var<storage, read_write> state: array<f32>;     // [rows, stride]

const NONE = 0xffffffffu;

@compute @workgroup_size(64)
fn combine(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y;
    if id.x >= params.length {
        return;
    }
    var sum = 0.0;
    for (var choice = row * params.top_k; choice < (row + 1u) * params.top_k; choice++) {
        let share = bitcast<f32>(choices[choice].y);
        var number = given[slot_of[choice] * params.stride + id.x];
        if params.biases != NONE {
            number += vectors[params.biases + choices[choice].x * params.stride + id.x];
        }
        sum += opaque(share * number, params.zero);
    }
    let at = row * params.stride + id.x;
    if params.add != 0u {
        sum += state[at];
    }
    state[at] = sum;
}
