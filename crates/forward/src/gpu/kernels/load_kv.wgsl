// Copies the cached keys and values of the pass's rows, as numbers. One thread per pair of numbers
// and row.

struct Params {
    kv_heads: u32,
    pairs: u32,  // head_size / 2
    stride: u32, // of `out`
    first: u32,  // column of the first key; values follow the keys
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> nodes: array<u32>;        // [rows, 3]: position in the cache, ...
@group(0) @binding(1) var<storage, read> key_cache: array<u32>;    // [pages, kv_heads, 16, pairs, 16]
@group(0) @binding(2) var<storage, read> value_cache: array<u32>;  // [pages, kv_heads, 256, pairs]
@group(0) @binding(3) var<storage, read_write> out: array<f32>;    // [rows, stride]

@compute @workgroup_size(64)
fn load_kv(@builtin(global_invocation_id) id: vec3<u32>) {
    let width = params.kv_heads * params.pairs;
    if id.x >= width {
        return;
    }
    let head = id.x / params.pairs;
    let pair = id.x % params.pairs;
    let position = nodes[3u * id.y];
    let of_key = key_cache[key(position, head, pair)];
    let of_value = value_cache[value(position, head, pair)];
    let to = id.y * params.stride + params.first + 2u * id.x;
    out[to] = half(of_key & 0xffffu);
    out[to + 1u] = half(of_key >> 16u);
    out[to + 2u * width] = half(of_value & 0xffffu);
    out[to + 2u * width + 1u] = half(of_value >> 16u);
}
