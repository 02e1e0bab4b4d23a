// Per-layer inputs: (norm(projection) + scale * table) / sqrt(2), with a norm of its own for each
// layer's part. One workgroup per row and layer.

struct Params {
    width: u32,   // of a layer's part
    stride: u32,  // of `state`
    columns: u32, // of `table`
    weight: u32,  // its offset in `vectors`
    epsilon: f32,
    scale: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> state: array<f32>; // [rows, stride]: projections, then inputs
@group(0) @binding(1) var<storage, read> table: array<f32>;       // [rows, columns]
@group(0) @binding(2) var<storage, read> vectors: array<f32>;

const THREADS = 256u;
const HALF_ROOT = 0.70710678; // 1 / sqrt(2)

@compute @workgroup_size(THREADS)
fn per_layer(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = group.x * params.width;
    let start = group.y * params.stride + first;
    let scale = state_scale(thread, start, params.width, params.epsilon);
    for (var at = thread; at < params.width; at += THREADS) {
        let normed = state[start + at] * scale * vectors[params.weight + at];
        let sum = fused(params.scale, table[group.y * params.columns + first + at], normed);
        state[start + at] = sum * HALF_ROOT;
    }
}
