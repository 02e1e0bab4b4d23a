// Moves positions within a layer's KV cache, in order. Each thread owns a pair of numbers of a head
// and touches no other.

struct Params {
    kv_heads: u32,
    pairs: u32, // head_size / 2
    moves: u32,
    has_keys: u32, // whether keys are apart from values
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> moves: array<vec2<u32>>;        // source and target position
@group(0) @binding(1) var<storage, read_write> key_cache: array<u32>;    // [pages, kv_heads, 16, pairs, 16]
@group(0) @binding(2) var<storage, read_write> value_cache: array<u32>;  // [pages, kv_heads, 256, pairs]

@compute @workgroup_size(64)
fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    let kv_head = id.x / params.pairs;
    let pair = id.x % params.pairs;
    if kv_head >= params.kv_heads {
        return;
    }
    for (var index = 0u; index < params.moves; index++) {
        let move_ = moves[index];
        if params.has_keys != 0u {
            key_cache[key(move_.y, kv_head, pair)] = key_cache[key(move_.x, kv_head, pair)];
        }
        value_cache[value(move_.y, kv_head, pair)] = value_cache[value(move_.x, kv_head, pair)];
    }
}
