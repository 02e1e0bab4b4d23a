// The norm of a row's state, or the state itself, as f32 and quantised to 8 bits. First completes
// the state: a bias and a branch, after its own norm, are added, and the sum is multiplied. One
// workgroup per row.

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
    factor: f32,  // of the state after both
    bias: u32,    // its offset in `vectors`; NONE if no bias is pending
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> state: array<f32>;        // [rows, stride]
@group(0) @binding(1) var<storage, read> branch: array<f32>;             // [rows, stride]
@group(0) @binding(2) var<storage, read> vectors: array<f32>;
@group(0) @binding(3) var<storage, read_write> plain: array<vec4<f32>>;  // [rows, width / 4]
@group(0) @binding(4) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(5) var<storage, read_write> scales: array<vec2<f32>>; // in tile order

const NONE = 0xffffffffu;
const THREADS = 256u;

// Norm scale of the branch.
fn branch_scale(thread: u32, start: u32) -> f32 {
    var total = 0.0;
    for (var begin = 0u; begin < params.length; begin += AT_ONCE) {
        var squares = 0.0;
        for (var step = 0u; step < 16u; step++) {
            let at = begin + lane_of(thread) + 16u * step;
            if at < params.length {
                squares = fused(branch[start + at], branch[start + at], squares);
            }
        }
        total = add_runs(thread, squares, total);
    }
    return norm_scale(thread, total, params.length, params.pending_epsilon);
}

// Four numbers of the output; those beyond the row are 0.
fn normed(start: u32, first: u32, scale: f32) -> vec4<f32> {
    var four = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        let at = first + i;
        if at < params.length {
            four[i] = state[start + at];
            if params.weight != NONE {
                four[i] = four[i] * scale * vectors[params.weight + at];
            }
        }
    }
    return four;
}

@compute @workgroup_size(THREADS)
fn norm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let start = (params.first + group.x) * params.stride;
    if params.bias != NONE || params.pending != NONE || params.factor != 1.0 {
        var scale = 0.0;
        if params.pending != NONE {
            scale = branch_scale(thread, start);
        }
        for (var at = thread; at < params.length; at += THREADS) {
            var number = state[start + at];
            if params.bias != NONE {
                number += vectors[params.bias + at];
            }
            if params.pending != NONE {
                let normed = branch[start + at] * scale * vectors[params.pending + at];
                number += opaque(normed, params.zero);
            }
            state[start + at] = number * params.factor;
        }
        storageBarrier();
        workgroupBarrier();
    }
    var scale = 1.0;
    if params.weight != NONE {
        scale = state_scale(thread, start, params.length, params.epsilon);
    }
    let blocks = params.length / 32u;
    // A thread has four numbers of each of four parts, which are all loaded at first.
    for (var begin = 0u; begin < params.length; begin += 16u * THREADS) {
{{EACH}}        let at{{ROW}} = begin + 4u * ({{ROW}}u * THREADS + thread);
        let four{{ROW}} = normed(start, at{{ROW}}, scale);
{{END}}
{{EACH}}        let used{{ROW}} = at{{ROW}} < params.length;
        if used{{ROW}} {
            plain[(group.x * params.width + at{{ROW}}) / 4u] = four{{ROW}};
        }
        if params.length % 32u == 0u && begin + {{ROW}}u * 4u * THREADS < params.length {
            round_eighth(four{{ROW}}, thread, tiled(group.x, at{{ROW}} / 32u, blocks), used{{ROW}});
        }
{{END}}
    }
}
