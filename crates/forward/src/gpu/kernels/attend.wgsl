// Attention of a tile of queries of a key head over one run of 256 text positions: the largest
// score, the sum of the weights e^(score - largest), and the values times the weights. Everything
// follows the order of the text, so bits do not depend on where positions are cached. `join.wgsl`
// adds up the runs. One workgroup per tile, key head and run.

struct Params {
    heads: u32,
    kv_heads: u32,
    head_size: u32,
    stride: u32,    // of `rows`
    first: u32,     // row of the pass that is row 0 of `parts`
    count: u32,     // rows
    cached: u32,    // positions before those of the pass
    window: u32,    // size of the sliding window, the row itself included
    ahead: u32,     // rows of the pass if attention is bidirectional, else 0
    first_run: u32, // run 0 of `parts`
    runs: u32,      // stride of a row and head in `parts`
    chain: u32,     // whether every position is cached at the place of its text position
    scale: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> rows: array<f32>;         // [rows, stride]: queries, ...
@group(0) @binding(1) var<storage, read> key_cache: array<u32>;    // [pages, kv_heads, 16, head_size / 2, 16]
@group(0) @binding(2) var<storage, read> value_cache: array<u32>;  // [pages, kv_heads, 256, head_size / 2]
@group(0) @binding(3) var<storage, read> nodes: array<u32>;        // [rows, 3]: ..., begin and end of the path
// For every row, head and run: values times weights, the largest score, the sum of the weights.
@group(0) @binding(4) var<storage, read_write> parts: array<f32>;  // [rows, heads, runs, head_size + 2]

const THREADS = 256u; // positions of a run
const QUERIES = {{QUERIES}}u;
const FOURS = QUERIES / 4u;
const HELD = {{HELD}}u; // pairs of values held at a time
const LOWEST = -3.4e38;

// Numbers of queries, then scores, then weights; four queries share a cell.
var<workgroup> cells: array<vec4<f32>, FOURS * THREADS>;    // [fours, numbers or positions]
var<workgroup> values: array<vec2<f32>, HELD>;              // [positions, head_size / 2]
var<workgroup> ranges: array<vec2<u32>, QUERIES>;           // visible positions of the run
var<workgroup> largest: array<f32, QUERIES>;
var<workgroup> lanes: array<f32, 16u * QUERIES>;            // [queries, 16]

// Queries of a workgroup, and the rows of the pass that a step of it takes.
struct Tile {
    kv_head: u32,
    query: u32, // first of its queries; those of a key head are numbered by row, then head
    begin: u32, // first text position
    first: u32, // row
    last: u32,  // row
    path: u32,  // of these rows in `nodes`
    alike: bool, // all positions are cached at the places of their text positions
}

// Two sums of a thread for each of four queries.
struct Sums {
    first: vec4<f32>,
    second: vec4<f32>,
}

fn fused_four(number: f32, four: vec4<f32>, sums: vec4<f32>) -> vec4<f32> {
    return vec4(
        fused(number, four.x, sums.x),
        fused(number, four.y, sums.y),
        fused(number, four.z, sums.z),
        fused(number, four.w, sums.w),
    );
}

fn row_of(query: u32) -> u32 {
    return query / (params.heads / params.kv_heads);
}

fn head_of(tile: Tile, query: u32) -> u32 {
    let heads = params.heads / params.kv_heads;
    return tile.kv_head * heads + query % heads;
}

// Place in the cache of a position of the run.
fn place_of(tile: Tile, position: u32) -> u32 {
    let text = tile.begin + position;
    if tile.alike || text < params.cached {
        return text;
    }
    return params.cached + nodes[tile.path + text - params.cached];
}

fn is_visible(query: u32, position: u32) -> bool {
    return ranges[query].x <= position && position < ranges[query].y;
}

// Visible positions of each query, for queries of the tile's rows.
fn find_ranges(tile: Tile, thread: u32) {
    workgroupBarrier();
    if thread < QUERIES {
        let query = tile.query + thread;
        let row = params.first + row_of(query);
        var range = vec2(0u);
        if row >= tile.first && row <= tile.last {
            let end = vec2(tile.begin + THREADS);
            range = min(max(visible_to(row), vec2(tile.begin)), end) - tile.begin;
        }
        ranges[thread] = range;
    }
    workgroupBarrier();
}

// Positions that any query sees.
fn all_visible() -> vec2<u32> {
    var all = vec2(THREADS, 0u);
    for (var query = 0u; query < QUERIES; query++) {
        let range = ranges[query];
        if range.x < range.y {
            all = vec2(min(all.x, range.x), max(all.y, range.y));
        }
    }
    return all;
}

// A number of each of four queries. Those beyond the last repeat it.
fn numbers_of(tile: Tile, four: u32, number: u32) -> vec4<f32> {
    let last = params.count * (params.heads / params.kv_heads) - 1u;
    var numbers = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        let query = min(tile.query + 4u * four + i, last);
        let row = params.first + row_of(query);
        numbers[i] = rows[row * params.stride + head_of(tile, query) * params.head_size + number];
    }
    return numbers;
}

// Adds the products of two numbers of a key with those of the queries.
fn with_key(key: u32, number: u32, before: Sums) -> Sums {
    let first = half(key & 0xffffu);
    let second = half(key >> 16u);
    var sums = before;
    sums.first = fused_four(first, cells[number], sums.first);
    sums.first = fused_four(second, cells[number + 1u], sums.first);
    if FOURS > 1u {
        sums.second = fused_four(first, cells[THREADS + number], sums.second);
        sums.second = fused_four(second, cells[THREADS + number + 1u], sums.second);
    }
    return sums;
}

// Dot products of the queries with the key at a position, which some query sees if `used`.
fn products(tile: Tile, position: u32, used: bool) -> Sums {
    let pairs = params.head_size / 2u;
    var at = 0u;
    if used {
        let place = place_of(tile, position);
        let block = (place / 256u * params.kv_heads + tile.kv_head) * 16u + place % 256u / 16u;
        at = block * pairs * 16u + place % 16u;
    }
    var sums = Sums();
    for (var begin = 0u; begin < params.head_size; begin += THREADS) {
        workgroupBarrier();
        if begin + position < params.head_size {
            for (var four = 0u; four < FOURS; four++) {
                cells[four * THREADS + position] = numbers_of(tile, four, begin + position);
            }
        }
        workgroupBarrier();
        if used {
            let end = min(THREADS, params.head_size - begin) / 2u;
            var pair = 0u;
            // Eight loads at a time hide their latency.
            for (; pair + 8u <= end; pair += 8u) {
                let a = vec4(key_cache[at], key_cache[at + 16u], key_cache[at + 32u], key_cache[at + 48u]);
                let b = vec4(key_cache[at + 64u], key_cache[at + 80u], key_cache[at + 96u], key_cache[at + 112u]);
                sums = with_key(a.x, 2u * pair, sums);
                sums = with_key(a.y, 2u * pair + 2u, sums);
                sums = with_key(a.z, 2u * pair + 4u, sums);
                sums = with_key(a.w, 2u * pair + 6u, sums);
                sums = with_key(b.x, 2u * pair + 8u, sums);
                sums = with_key(b.y, 2u * pair + 10u, sums);
                sums = with_key(b.z, 2u * pair + 12u, sums);
                sums = with_key(b.w, 2u * pair + 14u, sums);
                at += 128u;
            }
            for (; pair < end; pair++) {
                sums = with_key(key_cache[at], 2u * pair, sums);
                at += 16u;
            }
        }
    }
    workgroupBarrier();
    return sums;
}

// Writes the scores of a position for four queries.
fn write_scores(four: u32, position: u32, sums: vec4<f32>) {
    let scores = sums * params.scale;
    for (var i = 0u; i < 4u; i++) {
        cells[four * THREADS + position][i] = select(LOWEST, scores[i], is_visible(4u * four + i, position));
    }
}

// Replaces the scores of all queries by their weights; those of invisible positions are 0.
fn weigh(thread: u32) {
    let query = thread / 16u;
    if query < QUERIES {
        var most = LOWEST;
        for (var position = thread % 16u; position < THREADS; position += 16u) {
            most = max(most, cells[query / 4u * THREADS + position][query % 4u]);
        }
        lanes[thread] = most;
    }
    workgroupBarrier();
    if thread < QUERIES {
        var most = LOWEST;
        for (var lane = 0u; lane < 16u; lane++) {
            most = max(most, lanes[16u * thread + lane]);
        }
        largest[thread] = most;
    }
    workgroupBarrier();
    for (var four = 0u; four < FOURS; four++) {
        let scores = cells[four * THREADS + thread];
        var weights = vec4<f32>();
        for (var i = 0u; i < 4u; i++) {
            if is_visible(4u * four + i, thread) {
                weights[i] = exponential(scores[i] - largest[4u * four + i]);
            }
        }
        cells[four * THREADS + thread] = weights;
    }
    workgroupBarrier();
    // Lanes count from the first visible position.
    if query < QUERIES {
        var sum = 0.0;
        for (var at = ranges[query].x + thread % 16u; at < ranges[query].y; at += 16u) {
            sum += cells[query / 4u * THREADS + at][query % 4u];
        }
        lanes[thread] = sum;
    }
}

// Place in `parts` of a query's part.
fn part_of(tile: Tile, query: u32, run: u32) -> u32 {
    let row_and_head = row_of(tile.query + query) * params.heads + head_of(tile, tile.query + query);
    return (row_and_head * params.runs + run) * (params.head_size + 2u);
}

// Pairs of the values from a position on, those at `thread` and every 256 after it. Positions from
// `end` on repeat one before.
fn load_values(tile: Tile, position: u32, end: u32, thread: u32) -> vec4<u32> {
    if position >= end {
        return vec4<u32>();
    }
    let pairs = params.head_size / 2u;
    var words = vec4<u32>();
    for (var i = 0u; i < 4u; i++) {
        let at = min(position * pairs + thread + i * THREADS, end * pairs - 1u);
        var place = tile.begin;
        var within = at;
        if !tile.alike {
            place = place_of(tile, at / pairs);
            within = at % pairs;
        }
        let head = (place / 256u * params.kv_heads + tile.kv_head) * 256u + place % 256u;
        words[i] = value_cache[head * pairs + within];
    }
    return words;
}

fn hold_values(words: vec4<u32>, thread: u32) {
    for (var i = 0u; i < 4u; i++) {
        let at = thread + i * THREADS;
        if at < HELD {
            values[at] = vec2(half(words[i] & 0xffffu), half(words[i] >> 16u));
        }
    }
}

// Adds the held values, those of the positions from `begin` to `end`, times their weights. A thread
// has a pair of numbers of four queries.
fn add_values(begin: u32, end: u32, thread: u32, before: Sums) -> Sums {
    let pairs = params.head_size / 2u;
    let four = thread / pairs;
    var sums = before;
    if four < FOURS {
        var at = thread % pairs;
        for (var position = begin; position < end; position++) {
            let value = values[at];
            let weights = cells[four * THREADS + position];
            sums.first = fused_four(value.x, weights, sums.first);
            sums.second = fused_four(value.y, weights, sums.second);
            at += pairs;
        }
    }
    return sums;
}

// Computes the parts of the queries of the tile's rows.
fn compute(tile: Tile, run: u32, thread: u32) {
    find_ranges(tile, thread);
    let all = all_visible();
    let at_once = HELD / (params.head_size / 2u);
    let dots = products(tile, thread, all.x <= thread && thread < all.y);
    // Loads of values run ahead by four steps.
{{EACH}}    var words{{ROW}} = load_values(tile, all.x + {{ROW}}u * at_once, all.y, thread);
{{END}}
    write_scores(0u, thread, dots.first);
    if FOURS > 1u {
        write_scores(1u, thread, dots.second);
    }
    workgroupBarrier();
    weigh(thread);
    var sums = Sums();
    // Not up to `all.y`: drivers may refuse barriers in a loop whose end depends on memory.
    for (var step = 0u; step < THREADS; step += 4u * at_once) {
{{EACH}}        let begin{{ROW}} = all.x + step + {{ROW}}u * at_once;
        hold_values(words{{ROW}}, thread);
        workgroupBarrier();
        words{{ROW}} = load_values(tile, begin{{ROW}} + 4u * at_once, all.y, thread);
        sums = add_values(begin{{ROW}}, min(begin{{ROW}} + at_once, all.y), thread, sums);
        workgroupBarrier();
{{END}}
    }
    let pairs = params.head_size / 2u;
    for (var i = 0u; i < 4u; i++) {
        let query = thread / pairs * 4u + i;
        if query < QUERIES && ranges[min(query, QUERIES - 1u)].x < ranges[min(query, QUERIES - 1u)].y {
            let part = part_of(tile, query, run) + 2u * (thread % pairs);
            parts[part] = sums.first[i];
            parts[part + 1u] = sums.second[i];
        }
    }
    if thread < QUERIES && ranges[thread].x < ranges[thread].y {
        let part = part_of(tile, thread, run) + params.head_size;
        parts[part] = largest[thread];
        parts[part + 1u] = across(16u * thread);
    }
}

@compute @workgroup_size(THREADS)
fn attend(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let queries = params.count * (params.heads / params.kv_heads);
    let tiles = (queries + QUERIES - 1u) / QUERIES;
    let query = group.x % tiles * QUERIES;
    let begin = (params.first_run + group.y) * THREADS;
    let first = params.first + row_of(query);
    let last = params.first + row_of(min(query + QUERIES, queries) - 1u);
    let alike = params.chain != 0u || begin + THREADS <= params.cached;
    // Rows whose paths differ are taken one after the other.
    let step = select(1u, last - first + 1u, alike);
    for (var row = first; row <= last; row += step) {
        let path = nodes[3u * row + 1u];
        compute(Tile(group.x / tiles, query, begin, row, row + step - 1u, path, alike), group.y, thread);
    }
}
