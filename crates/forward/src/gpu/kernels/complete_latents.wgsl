// Completes queries, latents and keys of latent attention (MLA). Of each head's query the unrotated
// part goes to the inputs of the head's matrix, and the rotated part, after RoPE, to the end of its
// query over latents. The latent is normed, and RoPE is applied to the rotated part of the key;
// both are written to the cache. One workgroup per row and head; the key follows the heads.

struct Params {
    heads: u32,
    size: u32,        // of a latent
    plain: u32,       // unrotated part of a query
    rotated: u32,     // rotated pairs of components
    ways: u32,        // see `rotate.wgsl`
    stride: u32,      // of `queries`
    kv_stride: u32,   // of `state`
    plain_width: u32, // of `plain`
    width: u32,       // of a query over latents, and of a position in the cache
    norm: u32,        // offset of the latent's norm in `vectors`
    epsilon: f32,
    key_angles: u32,  // row of `angles` at which those of keys begin; 0 if queries use the same
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> queries: array<f32>;          // [rows, stride]: of each head the unrotated, then the rotated part
@group(0) @binding(1) var<storage, read> state: array<f32>;            // [rows, kv_stride]: latent, rotated part of the key
@group(0) @binding(2) var<storage, read> angles: array<vec2<f32>>;     // [rows, rotated], of queries, then of keys if they differ
@group(0) @binding(3) var<storage, read> vectors: array<f32>;
@group(0) @binding(4) var<storage, read> nodes: array<u32>;            // [rows, 3]: position in the cache, ...
@group(0) @binding(5) var<storage, read_write> plain: array<f32>;      // [rows, heads, plain_width]
@group(0) @binding(6) var<storage, read_write> absorbed: array<f32>;   // [rows, heads, width]: ..., rotated part
@group(0) @binding(7) var<storage, read_write> cache: array<u32>;      // [positions, width / 2]

const THREADS = 64u;

var<workgroup> numbers: array<f32, {{LONGEST}}>; // the rotated part

// A number of the cached position after the latent.
fn turned(at: u32) -> f32 {
    if at < 2u * params.rotated {
        return numbers[at];
    }
    return 0.0;
}

@compute @workgroup_size(THREADS)
fn complete_latents(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    let head = group.x;
    let is_query = head < params.heads;
    let query = row * params.stride + head * (params.plain + 2u * params.rotated);
    let latent = row * params.kv_stride;
    for (var at = thread; at < 2u * params.rotated; at += THREADS) {
        if is_query {
            numbers[at] = queries[query + params.plain + at];
        } else {
            numbers[at] = state[latent + params.size + at];
        }
    }
    workgroupBarrier();
    rotate(select(params.key_angles + row, row, is_query), thread);
    if is_query {
        let own = row * params.heads + head;
        for (var at = thread; at < params.plain; at += THREADS) {
            plain[own * params.plain_width + at] = queries[query + at];
        }
        for (var at = thread; at < params.width - params.size; at += THREADS) {
            absorbed[own * params.width + params.size + at] = turned(at);
        }
    }
    let scale = state_scale(thread, latent, params.size, params.epsilon);
    if !is_query {
        let to = nodes[3u * row] * params.width / 2u;
        for (var pair = thread; pair < params.width / 2u; pair += THREADS) {
            let at = 2u * pair;
            var both = vec2<f32>();
            if at < params.size {
                both.x = state[latent + at] * scale * vectors[params.norm + at];
                both.y = state[latent + at + 1u] * scale * vectors[params.norm + at + 1u];
            } else {
                both = vec2(turned(at - params.size), turned(at + 1u - params.size));
            }
            cache[to + pair] = to_half(both.x) | (to_half(both.y) << 16u);
        }
    }
}
