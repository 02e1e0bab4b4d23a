// Scores of a row's nearest clusters of tokens, at the places of these tokens; all other tokens get
// the lowest of them less 1. One workgroup per row.

struct Params {
    nearest: u32, // clusters of a row
    size: u32,    // tokens of a cluster
    width: u32,   // of `given`
    tokens: u32,
    stride: u32,  // of `logits`
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> choices: array<vec2<u32>>;   // [rows, nearest]: cluster, ...
@group(0) @binding(1) var<storage, read> slot_of: array<u32>;         // [rows, nearest]
@group(0) @binding(2) var<storage, read> given: array<f32>;           // [slots, width]
@group(0) @binding(3) var<storage, read> tokens: array<u32>;          // [clusters, size]
@group(0) @binding(4) var<storage, read_write> logits: array<f32>;    // [rows, stride]

const THREADS = 256u;

var<workgroup> lowest: array<f32, THREADS>;

// Score number `index` of a row.
fn score(row: u32, index: u32) -> f32 {
    let slot = slot_of[row * params.nearest + index / params.size];
    return given[slot * params.width + index % params.size];
}

@compute @workgroup_size(THREADS)
fn scatter(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.x;
    let count = params.nearest * params.size;
    var least = score(row, min(thread, count - 1u));
    for (var index = thread; index < count; index += THREADS) {
        least = min(least, score(row, index));
    }
    lowest[thread] = least;
    workgroupBarrier();
    for (var other = 0u; other < THREADS; other++) {
        least = min(least, lowest[other]);
    }
    for (var token = thread; token < params.tokens; token += THREADS) {
        logits[row * params.stride + token] = least - 1.0;
    }
    storageBarrier();
    workgroupBarrier();
    for (var index = thread; index < count; index += THREADS) {
        let cluster = choices[row * params.nearest + index / params.size].x;
        let token = tokens[cluster * params.size + index % params.size];
        logits[row * params.stride + token] = score(row, index);
    }
}
