// Attention of one row and head over its visible positions, with the CPU engine's operations in its
// order: cached positions, then the row's path in the pass. The result is also quantised to 8 bits.
// One workgroup per head and row.

struct Params {
    heads: u32,
    kv_heads: u32,
    head_size: u32,
    stride: u32,  // of `rows`
    width: u32,   // of `plain`
    first: u32,   // row of the pass that is row 0 of `scores`
    cached: u32,  // positions before those of the pass
    window: u32,  // size of the sliding window, the row itself included
    room: u32,    // stride of a row and head in `scores`
    scale: f32,
    ahead: u32,   // rows of the pass if attention is bidirectional, else 0
    gates: u32,   // their offset in a row; NONE if there are none
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> rows: array<f32>;               // [rows, stride]: queries, ...
@group(0) @binding(1) var<storage, read> key_cache: array<u32>;          // [pages, kv_heads, 16, head_size / 2, 16]
@group(0) @binding(2) var<storage, read> value_cache: array<u32>;        // [pages, kv_heads, 256, head_size / 2]
@group(0) @binding(3) var<storage, read> nodes: array<u32>;              // [rows, 3]: ..., begin and end of the path
@group(0) @binding(4) var<storage, read_write> scores: array<f32>;       // [rows, heads, room]
@group(0) @binding(5) var<storage, read_write> plain: array<f32>;        // [rows, width]
@group(0) @binding(6) var<storage, read_write> quants: array<u32>;       // [rows, width / 32, 8]
@group(0) @binding(7) var<storage, read_write> scales: array<vec2<f32>>; // [rows, width / 32]

const NONE = 0xffffffffu;
const THREADS = 128u;

var<workgroup> partial: array<f32, THREADS>;
var<workgroup> lanes: array<f32, 16>;

// Positions visible to a row: cached ones from `begin` on, then nodes of the pass.
struct Visible {
    begin: u32,
    cached: u32, // number of visible cached positions
    path: u32,   // offset of the visible nodes in `nodes`
    length: u32, // visible positions in all
}

fn visible_to(row: u32) -> Visible {
    let own = nodes[3u * row + 2u] - nodes[3u * row + 1u];
    let all = params.cached + own;
    let begin = min(all - min(all, params.window), params.cached);
    let nearest = own - min(own, params.window);
    let cached = params.cached - begin;
    // The window reaches as far ahead as back.
    let end = select(own, min(own - 1u + min(params.window, params.ahead), params.ahead), params.ahead != 0u);
    return Visible(begin, cached, nodes[3u * row + 1u] + nearest, cached + end - nearest);
}

fn position_of(visible: Visible, index: u32) -> u32 {
    if index < visible.cached {
        return visible.begin + index;
    }
    return params.cached + nodes[visible.path + index - visible.cached];
}

@compute @workgroup_size(THREADS)
fn attend(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let head = group.x;
    let row = params.first + group.y;
    let kv_head = head / (params.heads / params.kv_heads);
    let query = row * params.stride + head * params.head_size;
    let to = (group.y * params.heads + head) * params.room;
    let pairs = params.head_size / 2u;
    let visible = visible_to(row);

    var largest = -3.4e38;
    for (var index = thread; index < visible.length; index += THREADS) {
        let at = position_of(visible, index);
        let block = (at / 256u * params.kv_heads + kv_head) * 16u + at % 256u / 16u;
        var sum = 0.0;
        for (var pair = 0u; pair < pairs; pair++) {
            let key = key_cache[(block * pairs + pair) * 16u + at % 16u];
            sum = fused(half(key & 0xffffu), rows[query + 2u * pair], sum);
            sum = fused(half(key >> 16u), rows[query + 2u * pair + 1u], sum);
        }
        let score = sum * params.scale;
        scores[to + index] = score;
        largest = max(largest, score);
    }
    partial[thread] = largest;
    storageBarrier();
    workgroupBarrier();
    for (var half = THREADS / 2u; half > 0u; half = half >> 1u) {
        if thread < half {
            partial[thread] = max(partial[thread], partial[thread + half]);
        }
        workgroupBarrier();
    }
    largest = partial[0];

    for (var index = thread; index < visible.length; index += THREADS) {
        scores[to + index] = exponential(scores[to + index] - largest);
    }
    storageBarrier();
    workgroupBarrier();
    if thread < 16u {
        var sum = 0.0;
        for (var index = thread; index < visible.length; index += 16u) {
            sum += scores[to + index];
        }
        // The CPU's vectors are padded with the lowest input of `exponential`.
        if visible.length % 16u != 0u && thread >= visible.length % 16u {
            sum += exponential(-87.0);
        }
        lanes[thread] = sum;
    }
    workgroupBarrier();
    for (var half = 8u; half > 0u; half = half >> 1u) {
        if thread < half {
            lanes[thread] += lanes[thread + half];
        }
        workgroupBarrier();
    }

    let scale = divide(1.0, lanes[0]);
    for (var number = thread; number < params.head_size; number += THREADS) {
        var sum = 0.0;
        for (var index = 0u; index < visible.length; index++) {
            let at = position_of(visible, index);
            let at_value = ((at / 256u * params.kv_heads + kv_head) * 256u + at % 256u) * pairs;
            let value = half((value_cache[at_value + number / 2u] >> (number % 2u * 16u)) & 0xffffu);
            sum = fused(scores[to + index], value, sum);
        }
        var mixed = sum * scale;
        if params.gates != NONE {
            mixed = divide(mixed, 1.0 + exponential(0.0 - rows[query + params.gates + number]));
        }
        plain[row * params.width + head * params.head_size + number] = mixed;
    }
    // If heads are not whole blocks, `quantise` runs afterwards.
    if params.head_size % 32u == 0u {
        storageBarrier();
        workgroupBarrier();
        let blocks = params.head_size / 32u;
        if thread < blocks {
            round_block(row * (params.width / 32u) + head * blocks + thread);
        }
    }
}
