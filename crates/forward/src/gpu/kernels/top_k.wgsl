// Top-k experts of a row, highest score first, and their weights, with the rules of `routing.rs`.
// One workgroup per row.

struct Params {
    count: u32,      // experts
    stride: u32,     // of `scores`
    top_k: u32,
    normalised: u32, // whether the selected experts' weights add up to 1, else those of all experts do
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> scores: array<f32>;               // [rows, stride]
@group(0) @binding(1) var<storage, read_write> choices: array<vec2<u32>>;  // [rows, top_k]: expert, bits of its weight

const THREADS = 64u;

var<workgroup> largest: f32;
var<workgroup> all: f32;

// A score; NaN becomes -infinity.
fn score(row: u32, expert: u32) -> f32 {
    let bits = bitcast<u32>(scores[row * params.stride + expert]);
    return bitcast<f32>(select(bits, 0xff800000u, (bits & 0x7fffffffu) > 0x7f800000u));
}

// An integer with the order of scores.
fn order(score: f32) -> i32 {
    let bits = bitcast<i32>(score);
    return bits ^ i32(bitcast<u32>(bits >> 31u) >> 1u);
}

fn power(row: u32, expert: u32) -> f32 {
    return exponential(score(row, expert) - largest);
}

@compute @workgroup_size(THREADS)
fn top_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.x;
    let first = row * params.top_k;
    for (var expert = thread; expert < params.count; expert += THREADS) {
        let own = order(score(row, expert));
        var rank = 0u;
        for (var other = 0u; other < params.count; other++) {
            let others = order(score(row, other));
            // Of equals the lower index comes first.
            rank += u32(others > own || (others == own && other < expert));
        }
        if rank < params.top_k {
            choices[first + rank].x = expert;
        }
        if rank == 0u {
            largest = score(row, expert);
        }
    }
    storageBarrier();
    workgroupBarrier();
    if thread == 0u {
        var sum = 0.0;
        if params.normalised != 0u {
            for (var rank = 0u; rank < params.top_k; rank++) {
                sum += power(row, choices[first + rank].x);
            }
        } else {
            for (var expert = 0u; expert < params.count; expert++) {
                sum += power(row, expert);
            }
        }
        all = sum;
    }
    workgroupBarrier();
    for (var rank = thread; rank < params.top_k; rank += THREADS) {
        choices[first + rank].y = bitcast<u32>(divide(power(row, choices[first + rank].x), all));
    }
}
