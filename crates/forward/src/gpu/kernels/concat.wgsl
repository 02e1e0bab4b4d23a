// Writes the normed state of a row behind the token's embedding and quantises both to 8 bits. One
// workgroup per row.

struct Params {
    length: u32, // of each half
    stride: u32, // of `state`
    width: u32,  // of `plain`
    weight: u32, // its offset in `vectors`
    epsilon: f32,
    keep: u32,   // whether the norm replaces the state
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> state: array<f32>;        // [rows, stride]
@group(0) @binding(1) var<storage, read> vectors: array<f32>;
@group(0) @binding(2) var<storage, read_write> plain: array<f32>;        // [rows, width]
@group(0) @binding(3) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(4) var<storage, read_write> scales: array<vec2<f32>>; // in tile order

const THREADS = 256u;

@compute @workgroup_size(THREADS)
fn concat(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let start = group.x * params.stride;
    let scale = state_scale(thread, start, params.length, params.epsilon);
    for (var at = thread; at < params.length; at += THREADS) {
        let normed = state[start + at] * scale * vectors[params.weight + at];
        plain[group.x * params.width + params.length + at] = normed;
        if params.keep != 0u {
            state[start + at] = normed;
        }
    }
    storageBarrier();
    workgroupBarrier();
    if params.length % 16u == 0u {
        let blocks = params.length / 16u;
        for (var block = thread; block < blocks; block += THREADS) {
            round_block(group.x, block, blocks);
        }
    }
}
