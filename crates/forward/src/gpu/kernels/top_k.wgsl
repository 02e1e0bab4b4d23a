// Top-k experts of a row, highest score first, and their weights, with the rules of `routing.rs`.
// One workgroup per row.

struct Params {
    count: u32,      // experts
    stride: u32,     // of `scores`
    top_k: u32,
    normalised: u32, // whether the selected experts' weights add up to 1, else those of all experts do
    sigmoid: u32,    // whether weights are sigmoids, else a softmax
    bias: u32,       // of the scores: its offset in `vectors`, NONE without; so are the next two
    selection: u32,  // added to the sigmoids for the selection
    scales: u32,     // of the weights, for each expert
    scale: f32,      // of all weights
    epsilon: f32,    // added to the sum of the sigmoids
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> scores: array<f32>;               // [rows, stride]
@group(0) @binding(1) var<storage, read> vectors: array<f32>;
@group(0) @binding(2) var<storage, read_write> choices: array<vec2<u32>>;  // [rows, top_k]: expert, bits of its weight

const NONE = 0xffffffffu;
const THREADS = 64u;

var<workgroup> ranked: array<i32, {{EXPERTS}}>; // of each expert, in the order of the ranking
var<workgroup> largest: f32;
var<workgroup> all: f32;

// A number; NaN becomes -infinity.
fn number(score: f32) -> f32 {
    let bits = bitcast<u32>(score);
    return bitcast<f32>(select(bits, 0xff800000u, (bits & 0x7fffffffu) > 0x7f800000u));
}

// A vector's number for an expert, 0 without the vector.
fn of_expert(vector: u32, expert: u32) -> f32 {
    if vector == NONE {
        return 0.0;
    }
    return vectors[vector + expert];
}

// The router's score.
fn score(row: u32, expert: u32) -> f32 {
    var own = scores[row * params.stride + expert];
    if params.bias != NONE {
        own += vectors[params.bias + expert];
    }
    return number(own);
}

// An integer with the order of scores.
fn order(score: f32) -> i32 {
    let bits = bitcast<i32>(number(score));
    return bits ^ i32(bitcast<u32>(bits >> 31u) >> 1u);
}

// The weight of an expert before it is normalised: its sigmoid, or e^(score - largest).
fn power(row: u32, expert: u32) -> f32 {
    let own = score(row, expert);
    if params.sigmoid != 0u {
        return sigmoid(own);
    }
    return exponential(own - largest);
}

@compute @workgroup_size(THREADS)
fn top_k(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.x;
    let first = row * params.top_k;
    for (var expert = thread; expert < params.count; expert += THREADS) {
        var own = score(row, expert);
        if params.sigmoid != 0u {
            own = power(row, expert) + of_expert(params.selection, expert);
        }
        ranked[expert] = order(own);
    }
    workgroupBarrier();
    for (var expert = thread; expert < params.count; expert += THREADS) {
        let own = ranked[expert];
        var rank = 0u;
        for (var other = 0u; other < params.count; other++) {
            let others = ranked[other];
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
            sum += params.epsilon;
        } else if params.sigmoid != 0u {
            sum = 1.0;
        } else {
            for (var expert = 0u; expert < params.count; expert++) {
                sum += power(row, expert);
            }
        }
        all = sum;
    }
    workgroupBarrier();
    for (var rank = thread; rank < params.top_k; rank += THREADS) {
        let expert = choices[first + rank].x;
        var weight = divide(power(row, expert), all) * params.scale;
        if params.scales != NONE {
            weight *= vectors[params.scales + expert];
        }
        choices[first + rank].y = bitcast<u32>(weight);
    }
}
