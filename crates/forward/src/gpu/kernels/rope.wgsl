// Completes query, key and value heads: biases, norms, RoPE on queries and keys. Writes keys and
// values into the KV cache. One workgroup per row and head; key heads follow query heads. Values
// may be where the keys are: they are those before norm and RoPE.

struct Params {
    heads: u32,
    kv_heads: u32,
    head_size: u32,
    stride: u32,      // of `rows`
    keys: u32,        // offset in a row
    values: u32,
    rotated: u32,      // rotated pairs of components, at the beginning of a head
    ways: u32,        // VALUE_NORM, and as in `rotate.wgsl`
    query_bias: u32,  // offset in `vectors`, NONE if there is none
    key_bias: u32,
    value_bias: u32,
    query_norm: u32,
    key_norm: u32,
    epsilon: f32,
    first: u32,       // head at which to begin
    key_angles: u32,   // row of `angles` at which those of keys begin; 0 if queries use the same
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> rows: array<f32>;         // [rows, stride]: queries, ..., keys, values
// Cosines and sines, of queries, then of keys if they differ.
@group(0) @binding(1) var<storage, read> angles: array<vec2<f32>>;        // [rows, rotated]
@group(0) @binding(2) var<storage, read> vectors: array<f32>;
@group(0) @binding(3) var<storage, read> nodes: array<u32>;              // [rows, 3]: position in the cache, ...
@group(0) @binding(4) var<storage, read_write> key_cache: array<u32>;    // [pages, kv_heads, 16, head_size / 2, 16]
@group(0) @binding(5) var<storage, read_write> value_cache: array<u32>;  // [pages, kv_heads, 256, head_size / 2]

const NONE = 0xffffffffu;

// Bit of `ways`: values are normed, without a weight.
const VALUE_NORM = 2u;

const THREADS = 64u;

var<workgroup> numbers: array<f32, {{LONGEST}}>; // of a head

fn norm(thread: u32, weight: u32) {
    let scale = head_scale(thread, 0u, params.head_size, params.epsilon);
    for (var at = thread; at < params.head_size; at += THREADS) {
        var normed = numbers[at] * scale;
        if weight != NONE {
            normed *= vectors[weight + at];
        }
        numbers[at] = normed;
    }
    workgroupBarrier();
}

// Loads the numbers of a head from `first` on, with its bias.
fn load(first: u32, head: u32, bias: u32, thread: u32) {
    workgroupBarrier();
    for (var at = thread; at < params.head_size; at += THREADS) {
        var component = rows[first + at];
        if bias != NONE {
            component += vectors[bias + head * params.head_size + at];
        }
        numbers[at] = component;
    }
    workgroupBarrier();
}

// Two neighbouring numbers as halves.
fn halves(pair: u32) -> u32 {
    return to_half(numbers[2u * pair]) | (to_half(numbers[2u * pair + 1u]) << 16u);
}

@compute @workgroup_size(THREADS)
fn rope(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    let number = params.first + group.x;
    let is_query = number < params.heads;
    let head = select(number - params.heads, number, is_query);
    let own = row * params.stride + select(params.keys, 0u, is_query) + head * params.head_size;
    load(own, head, select(params.key_bias, params.query_bias, is_query), thread);
    let weight = select(params.key_norm, params.query_norm, is_query);
    if weight != NONE {
        norm(thread, weight);
    }
    rotate(select(params.key_angles + row, row, is_query), thread);
    if is_query {
        for (var at = thread; at < params.head_size; at += THREADS) {
            rows[own + at] = numbers[at];
        }
        return;
    }
    let position = nodes[3u * row];
    let pairs = params.head_size / 2u;
    let block = (position / 256u * params.kv_heads + head) * 16u + position % 256u / 16u;
    for (var pair = thread; pair < pairs; pair += THREADS) {
        key_cache[(block * pairs + pair) * 16u + position % 16u] = halves(pair);
    }
    let own_value = row * params.stride + params.values + head * params.head_size;
    load(own_value, head, params.value_bias, thread);
    if (params.ways & VALUE_NORM) != 0u {
        norm(thread, NONE);
    }
    let at_value = ((position / 256u * params.kv_heads + head) * 256u + position % 256u) * pairs;
    for (var pair = thread; pair < pairs; pair += THREADS) {
        value_cache[at_value + pair] = halves(pair);
    }
}
