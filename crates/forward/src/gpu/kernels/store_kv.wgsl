// Writes keys and values, given as numbers, at the positions of the pass's rows into a cache. One
// thread per pair of numbers and row.

struct Params {
    kv_heads: u32,
    pairs: u32,  // head_size / 2
    stride: u32, // of `given`
    first: u32,  // column of the first key; values follow the keys
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> nodes: array<u32>;              // [rows, 3]: position in the cache, ...
@group(0) @binding(1) var<storage, read> given: array<f32>;              // [rows, stride]
@group(0) @binding(2) var<storage, read_write> key_cache: array<u32>;    // [pages, kv_heads, 16, pairs, 16]
@group(0) @binding(3) var<storage, read_write> value_cache: array<u32>;  // [pages, kv_heads, 256, pairs]

fn halves(at: u32) -> u32 {
    return to_half(given[at]) | (to_half(given[at + 1u]) << 16u);
}

@compute @workgroup_size(64)
fn store_kv(@builtin(global_invocation_id) id: vec3<u32>) {
    let width = params.kv_heads * params.pairs;
    if id.x >= width {
        return;
    }
    let head = id.x / params.pairs;
    let pair = id.x % params.pairs;
    let position = nodes[3u * id.y];
    let from_ = id.y * params.stride + params.first + 2u * id.x;
    key_cache[key(position, head, pair)] = halves(from_);
    value_cache[value(position, head, pair)] = halves(from_ + 2u * width);
}
