// Sketches of logit rows. For every slice of 64 tokens: the largest logit and its token. For every
// stretch of 4096: the largest logit and the sums of e^(logit - largest) and e^(scale (logit -
// largest)), in the CPU engine's order. Then the logits of the pass's tokens. One workgroup per
// stretch and row.

struct Params {
    vocabulary: u32, // tokens that rows must cover
    stride: u32,     // of `logits`
    words: u32,      // of a row of `found`
    tokens: u32,     // of the pass
    scale: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> logits: array<f32>;       // [rows, stride]
@group(0) @binding(1) var<storage, read> tokens: array<u32>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;  // [rows, words]: in the order above

const SLICE = 64u;
const STRETCH = 4096u;
const THREADS = 64u;
const PART = 1024u; // terms of a stretch held at a time
const LOWEST = -3.4e38;

var<workgroup> maxima: array<f32, THREADS>;
var<workgroup> terms: array<f32, 2u * PART>; // [with scale or not, PART]
var<workgroup> lanes: array<f32, 32>;

// The largest logit of a slice and its token, the first of equals.
fn peak_of(row: u32, slice: u32) -> vec2<u32> {
    var largest = LOWEST;
    var leader = slice * SLICE;
    let end = min(slice * SLICE + SLICE, params.vocabulary);
    for (var token = slice * SLICE; token < end; token++) {
        let logit = logits[row + token];
        if logit > largest {
            largest = logit;
            leader = token;
        }
    }
    return vec2(bitcast<u32>(largest), leader);
}

@compute @workgroup_size(THREADS)
fn sketch(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y * params.stride;
    let to = group.y * params.words;
    let slices = (params.vocabulary + SLICE - 1u) / SLICE;
    let slice = group.x * (STRETCH / SLICE) + thread;
    let peak = peak_of(row, slice);
    if slice < slices {
        found[to + slice] = peak.x;
        found[to + slices + slice] = peak.y;
    }
    maxima[thread] = bitcast<f32>(peak.x);
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half = half >> 1u) {
        if thread < half {
            maxima[thread] = max(maxima[thread], maxima[thread + half]);
        }
        workgroupBarrier();
    }
    let largest = maxima[0];

    // Sixteen lanes, reduced as the CPU's vectors are.
    let end = min(group.x * STRETCH + STRETCH, params.vocabulary);
    var sum = 0.0;
    for (var begin = group.x * STRETCH; begin < end; begin += PART) {
        for (var at = thread; at < PART; at += THREADS) {
            // The CPU's vectors are padded with the lowest input of `exponential`.
            var below = vec2(-69.0);
            if begin + at < end {
                let distance = logits[row + begin + at] - largest;
                below = vec2(distance, params.scale * distance);
            }
            terms[at] = exponential(below.x);
            terms[PART + at] = exponential(below.y);
        }
        workgroupBarrier();
        if thread < 32u {
            let vectors = (min(PART, end - begin) + 15u) / 16u;
            for (var vector = 0u; vector < vectors; vector++) {
                sum += terms[(thread >> 4u) * PART + vector * 16u + (thread & 15u)];
            }
        }
        workgroupBarrier();
    }
    if thread < 32u {
        lanes[thread] = sum;
    }
    workgroupBarrier();
    for (var half = 8u; half > 0u; half = half >> 1u) {
        if thread < 32u && (thread & 15u) < half {
            lanes[thread] += lanes[thread + half];
        }
        workgroupBarrier();
    }
    let stretches = (params.vocabulary + STRETCH - 1u) / STRETCH;
    if thread == 0u {
        let at = to + 2u * slices + 3u * group.x;
        found[at] = bitcast<u32>(largest);
        found[at + 1u] = bitcast<u32>(lanes[0]);
        found[at + 2u] = bitcast<u32>(lanes[16]);
    }
    if group.x == 0u {
        let known = to + 2u * slices + 3u * stretches;
        for (var at = thread; at < params.tokens; at += THREADS) {
            found[known + at] = bitcast<u32>(logits[row + min(tokens[at], params.vocabulary - 1u)]);
        }
    }
}
