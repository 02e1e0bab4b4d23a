// Attention of a head's query to a run of 256 cached latents, as `attend.wgsl` computes it: the
// largest score, the sum of the weights, and the latents times the weights. A score is summed in
// sixteen lanes, then across. One workgroup per row, head and run.

struct Params {
    heads: u32,
    size: u32,      // of a latent
    width: u32,     // of a query, and of a position in the cache
    first: u32,     // row of the pass that is row 0 of `parts`
    cached: u32,    // as in `attend.wgsl`, and so are the next five
    window: u32,
    ahead: u32,
    first_run: u32,
    runs: u32,
    chain: u32,
    scale: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> absorbed: array<vec4<f32>>; // [rows, heads, width / 4]
@group(0) @binding(1) var<storage, read> cache: array<u32>;          // [positions, width / 2]
@group(0) @binding(2) var<storage, read> nodes: array<u32>;          // [rows, 3]: ..., begin and end of the path
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;    // [rows, heads, runs, size + 2]

const THREADS = 256u; // positions of a run
const LOWEST = -3.4e38;

var<workgroup> query: array<vec4<f32>, {{LATENT}} / 4u>;
var<workgroup> weights: array<f32, THREADS>; // scores at first
var<workgroup> lanes: array<f32, 16u>;

fn fused_lanes(a: vec4<f32>, b: vec4<f32>, sums: vec4<f32>) -> vec4<f32> {
    return vec4(
        fused(a.x, b.x, sums.x),
        fused(a.y, b.y, sums.y),
        fused(a.z, b.z, sums.z),
        fused(a.w, b.w, sums.w),
    );
}

// Four numbers of the cache.
fn four_halves(at: u32) -> vec4<f32> {
    let low = cache[at];
    let high = cache[at + 1u];
    return vec4(half(low & 0xffffu), half(low >> 16u), half(high & 0xffffu), half(high >> 16u));
}

// Place in the cache of a text position.
fn place_of(row: u32, text: u32) -> u32 {
    if params.chain != 0u || text < params.cached {
        return text;
    }
    return params.cached + nodes[nodes[3u * row + 1u] + text - params.cached];
}

fn score(place: u32) -> f32 {
    let from_ = place * params.width / 2u;
    var a = vec4<f32>();
    var b = vec4<f32>();
    var c = vec4<f32>();
    var d = vec4<f32>();
    for (var at = 0u; at < params.width / 4u; at += 4u) {
        a = fused_lanes(four_halves(from_ + 2u * at), query[at], a);
        b = fused_lanes(four_halves(from_ + 2u * at + 2u), query[at + 1u], b);
        c = fused_lanes(four_halves(from_ + 2u * at + 4u), query[at + 2u], c);
        d = fused_lanes(four_halves(from_ + 2u * at + 6u), query[at + 3u], d);
    }
    let four = (a + c) + (b + d);
    let two = four.xy + four.zw;
    return (two.x + two.y) * params.scale;
}

@compute @workgroup_size(THREADS)
fn attend_latents(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = params.first + group.x / params.heads;
    let head = group.x % params.heads;
    let begin = (params.first_run + group.y) * THREADS;
    // Visible positions of the run, from its beginning.
    let visible = min(max(visible_to(row), vec2(begin)), vec2(begin + THREADS)) - begin;
    for (var at = thread; at < params.width / 4u; at += THREADS) {
        query[at] = absorbed[(row * params.heads + head) * params.width / 4u + at];
    }
    workgroupBarrier();
    let seen = visible.x <= thread && thread < visible.y;
    weights[thread] = LOWEST;
    if seen {
        weights[thread] = score(place_of(row, begin + thread));
    }
    workgroupBarrier();
    var largest = LOWEST;
    for (var at = 0u; at < THREADS; at++) {
        largest = max(largest, weights[at]);
    }
    workgroupBarrier();
    if seen {
        weights[thread] = exponential(weights[thread] - largest);
    }
    workgroupBarrier();
    // Lanes count from the first visible position.
    if thread < 16u {
        var sum = 0.0;
        for (var at = visible.x + thread; at < visible.y; at += 16u) {
            sum += weights[at];
        }
        lanes[thread] = sum;
    }
    workgroupBarrier();
    if visible.x >= visible.y {
        return;
    }
    let part = ((group.x * params.runs) + group.y) * (params.size + 2u);
    for (var pair = thread; pair < params.size / 2u; pair += THREADS) {
        var sums = vec2<f32>();
        for (var at = visible.x; at < visible.y; at++) {
            let word = cache[place_of(row, begin + at) * params.width / 2u + pair];
            sums.x = fused(weights[at], half(word & 0xffffu), sums.x);
            sums.y = fused(weights[at], half(word >> 16u), sums.y);
        }
        parts[part + 2u * pair] = sums.x;
        parts[part + 2u * pair + 1u] = sums.y;
    }
    if thread == 0u {
        parts[part + params.size] = largest;
        parts[part + params.size + 1u] = across(0u);
    }
}
