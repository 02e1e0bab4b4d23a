// Adds up the runs of attention of a row and head, in order. The weight of the head's sink, if it
// has one, adds to the sum of the weights. The result passes the output gate, if there is one, and
// is also quantised to 8 bits. One workgroup per row, head and 128 numbers.

struct Params {
    heads: u32,
    head_size: u32,
    stride: u32,    // of `rows`
    width: u32,     // of `plain`
    first: u32,     // row of the pass that is row 0 of `parts`
    cached: u32,    // as in `attend.wgsl`, and so are the next four
    window: u32,
    ahead: u32,
    first_run: u32,
    runs: u32,
    gates: u32,     // their offset in a row; NONE if there are none
    sinks: u32,     // their offset in `vectors`; NONE if there are none
    apart: u32,     // 1: each head is a quantised row of its own
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> rows: array<f32>;               // [rows, stride]: queries, ...
@group(0) @binding(1) var<storage, read> nodes: array<u32>;              // [rows, 3]: ..., begin and end of the path
@group(0) @binding(2) var<storage, read> parts: array<f32>;              // [rows, heads, runs, head_size + 2]
@group(0) @binding(3) var<storage, read_write> plain: array<f32>;        // [rows, width]
@group(0) @binding(4) var<storage, read_write> quants: array<u32>;       // in tile order: see `tiled.wgsl`
@group(0) @binding(5) var<storage, read_write> scales: array<vec2<f32>>; // in tile order
@group(0) @binding(6) var<storage, read> vectors: array<f32>;

const NONE = 0xffffffffu;
const THREADS = 128u;
const LOWEST = -3.4e38;

var<workgroup> factors: array<vec2<f32>, THREADS>; // of a run, and the sum of its weights
var<workgroup> numbers: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn join(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = params.first + group.y;
    let slices = (params.head_size + THREADS - 1u) / THREADS;
    let head = group.x / slices;
    let begin = group.x % slices * THREADS; // first number
    let number = begin + thread;
    let size = params.head_size + 2u;
    let visible = visible_to(row);
    let run = visible.x / 256u - params.first_run;
    let count = (visible.y + 255u) / 256u - params.first_run - run;
    let part = ((group.y * params.heads + head) * params.runs + run) * size;

    var most = LOWEST;
    for (var i = thread; i < count; i += THREADS) {
        most = max(most, parts[part + i * size + params.head_size]);
    }
    numbers[thread] = most;
    workgroupBarrier();
    for (var i = 0u; i < min(count, THREADS); i++) {
        most = max(most, numbers[i]);
    }
    var weights = 0.0;
    var sum = 0.0;
    // Not up to `count`: drivers may refuse barriers in a loop whose end depends on memory.
    for (var first = 0u; first < params.runs; first += THREADS) {
        workgroupBarrier();
        let own = part + (first + thread) * size + params.head_size;
        if first + thread < count {
            factors[thread] = vec2(exponential(parts[own] - most), parts[own + 1u]);
        }
        workgroupBarrier();
        let end = min(max(count, first) - first, THREADS);
        let at = part + first * size + min(number, params.head_size - 1u);
        // Eight loads at a time hide their latency.
        for (var i = 0u; i < end; i += 8u) {
{{EACH}}            let value{{ROW}} = parts[at + min(i + {{ROW}}u, end - 1u) * size];
{{END}}
{{EACH}}            if i + {{ROW}}u < end {
                let factor = factors[i + {{ROW}}u];
                weights = fused(factor.x, factor.y, weights);
                sum = fused(factor.x, value{{ROW}}, sum);
            }
{{END}}
        }
    }
    if params.sinks != NONE {
        weights += exponential(vectors[params.sinks + head] - most);
    }
    var mixed = sum * divide(1.0, weights);
    let to = head * params.head_size + begin;
    if number < params.head_size {
        if params.gates != NONE {
            let gate = rows[row * params.stride + params.gates + to + thread];
            mixed = divide(mixed, 1.0 + exponential(0.0 - gate));
        }
        plain[row * params.width + to + thread] = mixed;
    }
    // If heads are not whole blocks, `quantise` runs afterwards.
    if params.head_size % 32u == 0u {
        workgroupBarrier();
        numbers[thread] = mixed;
        workgroupBarrier();
        let from_ = 4u * (thread % 32u);
        let four = vec4(numbers[from_], numbers[from_ + 1u], numbers[from_ + 2u], numbers[from_ + 3u]);
        let used = thread < 32u && begin + 4u * thread < params.head_size;
        var place = tiled(row, to / 32u + thread / 8u, params.width / 32u);
        if params.apart != 0u {
            let block = begin / 32u + thread / 8u;
            place = tiled(row * params.heads + head, block, params.head_size / 32u);
        }
        round_eighth(four, thread, place, used);
    }
}
