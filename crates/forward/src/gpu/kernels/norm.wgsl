// The norm of a row's state, or the state itself, as f32 and quantised to 8 bits. First adds a
// pending branch, after its own norm, to the state. One workgroup per row.

struct Params {
    first: u32,   // row of the state that is output row 0
    length: u32,
    stride: u32,  // of `state` and `branch`
    width: u32,   // of `plain`
    weight: u32,  // its offset in `vectors`; NONE for no norm
    pending: u32, // offset of the branch's weight; NONE if no branch is pending
    epsilon: f32,
    zero: u32,
    pending_epsilon: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> state: array<f32>;        // [rows, stride]
@group(0) @binding(1) var<storage, read> branch: array<f32>;             // [rows, stride]
@group(0) @binding(2) var<storage, read> vectors: array<f32>;
@group(0) @binding(3) var<storage, read_write> plain: array<f32>;        // [rows, width]
@group(0) @binding(4) var<storage, read_write> quants: array<u32>;       // [rows, blocks, 8]
@group(0) @binding(5) var<storage, read_write> scales: array<vec2<f32>>; // [rows, blocks]

const NONE = 0xffffffffu;
const THREADS = 64u;

@compute @workgroup_size(THREADS)
fn norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let start = (params.first + group.x) * params.stride;
    if params.pending != NONE {
        var squares = 0.0;
        if thread < 16u {
            for (var at = thread; at < params.length; at += 16u) {
                squares = fused(branch[start + at], branch[start + at], squares);
            }
        }
        let scale = norm_scale(thread, squares, params.length, params.pending_epsilon);
        for (var at = thread; at < params.length; at += THREADS) {
            let normed = branch[start + at] * scale * vectors[params.pending + at];
            state[start + at] += opaque(normed, params.zero);
        }
        storageBarrier();
        workgroupBarrier();
    }
    var scale = 1.0;
    if params.weight != NONE {
        scale = state_scale(thread, start, params.length, params.epsilon);
    }
    let blocks = (params.length + 31u) / 32u;
    for (var block = thread; block < blocks; block += THREADS) {
        let end = min(32u * block + 32u, params.length);
        for (var at = 32u * block; at < end; at++) {
            var number = state[start + at];
            if params.weight != NONE {
                number = number * scale * vectors[params.weight + at];
            }
            plain[group.x * params.width + at] = number;
        }
        if params.length % 32u == 0u {
            round_block(group.x * blocks + block);
        }
    }
}
