// Sums the outputs of a row's experts by their weights, the highest first. Adds the sum to the
// state, or stores it as a branch that a norm follows. One thread per number.

struct Ask {
    used: u32,
    length: u32,
    stride: u32, // of `given` and `state`
    add: u32,    // to `state`
    zero: u32,
}
var<immediate> ask: Ask;

@group(0) @binding(0) var<storage, read> choices: array<vec2<u32>>;   // [rows, used]: ..., bits of the expert weight
@group(0) @binding(1) var<storage, read> slot_of: array<u32>;         // [rows, used]
@group(0) @binding(2) var<storage, read> given: array<f32>;           // [slots, stride]
@group(0) @binding(3) var<storage, read_write> state: array<f32>;     // [rows, stride]

@compute @workgroup_size(64)
fn combine(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y;
    if id.x >= ask.length {
        return;
    }
    var sum = 0.0;
    for (var choice = row * ask.used; choice < (row + 1u) * ask.used; choice++) {
        let share = bitcast<f32>(choices[choice].y);
        sum += opaque(share * given[slot_of[choice] * ask.stride + id.x], ask.zero);
    }
    let at = row * ask.stride + id.x;
    if ask.add != 0u {
        sum += state[at];
    }
    state[at] = sum;
}
