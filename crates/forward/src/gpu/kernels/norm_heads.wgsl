// Norms all queries of a row together, and all its keys. One workgroup per row for each of the two.

struct Params {
    stride: u32,     // of `state`
    queries: u32,    // count of numbers
    keys: u32,
    first_key: u32,  // offset of the keys in a row
    query_norm: u32, // offset in `vectors`
    key_norm: u32,
    epsilon: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> state: array<f32>;  // [rows, stride]: queries, ..., keys, ...
@group(0) @binding(1) var<storage, read> vectors: array<f32>;

const THREADS = 256u;

@compute @workgroup_size(THREADS)
fn norm_heads(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let of_keys = group.x == 1u;
    let start = group.y * params.stride + select(0u, params.first_key, of_keys);
    let length = select(params.queries, params.keys, of_keys);
    let weight = select(params.query_norm, params.key_norm, of_keys);
    let scale = state_scale(thread, start, length, params.epsilon);
    for (var at = thread; at < length; at += THREADS) {
        state[start + at] = state[start + at] * scale * vectors[weight + at];
    }
}
