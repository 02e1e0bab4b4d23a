// Takes the state matrices of a recurrent layer (Gated DeltaNet, Mamba-2) through the rows of a
// pass, in the order of the visits that the host planned. A visit loads a state, or applies the
// steps of rows and records, stores the state, and reads it for a row. One workgroup per value head
// and 32 columns: a thread has 32 keys of a column.

struct Params {
    sizes: Sizes,
    grouped: u32, // whether the value heads of a key head are adjacent, else as far apart as keys
    visits: u32,
    first: u32,   // word of the visits
    skip: u32,    // factors of values that go past the matrix, their offset in `vectors`
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> convolved: array<f32>;         // [rows, channels]
@group(0) @binding(1) var<storage, read> rates: array<f32>;             // [rows, 2 * values + keys]
@group(0) @binding(2) var<storage, read> records: array<f32>;
@group(0) @binding(3) var<storage, read_write> states: array<f32>;
@group(0) @binding(4) var<storage, read> words: array<u32>;             // ..., [visits, 4], ...
@group(0) @binding(5) var<storage, read> vectors: array<f32>;
@group(0) @binding(6) var<storage, read_write> corrections: array<f32>; // [rows, values * value_size]
@group(0) @binding(7) var<storage, read_write> given: array<f32>;       // [rows, values * value_size]

const THREADS = 128u;

// Sums of each thread by key and by query, for two visits in turns.
var<workgroup> sums: array<vec2<f32>, 2u * THREADS>; // [turns, runs of keys, columns]

@compute @workgroup_size(THREADS)
fn recur(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let sizes = params.sizes;
    let head = group.y;
    let column = thread % 32u;
    let run = thread / 32u;
    let runs = sizes.key_size / 32u;
    let used = run < runs;
    let key_head = select(head % sizes.keys, head / (sizes.values / sizes.keys), params.grouped != 0u);
    let own_key = key_head * sizes.key_size + 32u * run;
    let value = head * sizes.value_size + 32u * group.x + column;
    let block = head * (sizes.value_size / 32u) + group.x;
    let matrix = matrices_at() + (block * sizes.key_size + 32u * run) * 32u + column;
{{EACH}}    var m{{ROW}} = 0.0;
{{END}}
    // Correction of the row that was read last.
    var last = 0.0;
    var last_row = NONE;
    for (var visit = 0u; visit < params.visits; visit++) {
        let at = params.first + 4u * visit;
        for (var update = words[at]; update < words[at + 1u]; update++) {
            let number = words[update] & NUMBER;
            let kind = words[update] >> 30u;
            if kind == ROW {
                let decay = rates[rates_of(number) + head];
                var correction = last;
                if number != last_row {
                    correction = corrections[number * value_width() + value];
                }
                let key = number * sizes.channels + keys_at() + own_key;
                if used {
{{EACH}}                    m{{ROW}} = fused(convolved[key + {{ROW}}u], correction, decay * m{{ROW}});
{{END}}
                }
            } else if kind == RECORD {
                let record = number * record_size();
                let decay = records[record + decays_in_record() + head];
                let correction = records[record + corrections_in_record() + value];
                let key = record + keys_in_record() + own_key;
                if used {
{{EACH}}                    m{{ROW}} = fused(records[key + {{ROW}}u], correction, decay * m{{ROW}});
{{END}}
                }
            } else if kind == STATE {
                let from_ = number * state_size() + matrix;
                if used {
{{EACH}}                    m{{ROW}} = states[from_ + 32u * {{ROW}}u];
{{END}}
                }
            } else {
{{EACH}}                m{{ROW}} = 0.0;
{{END}}
            }
        }
        let slot = words[at + 2u];
        if used && slot != NONE {
            let to = slot * state_size() + matrix;
{{EACH}}            states[to + 32u * {{ROW}}u] = m{{ROW}};
{{END}}
        }
        let row = words[at + 3u];
        let turn = visit % 2u * THREADS;
        if used && row != NONE {
            let key = row * sizes.channels + keys_at() + own_key;
            let query = row * sizes.channels + queries_at() + own_key;
            var by_key = 0.0;
            var by_query = 0.0;
            if sizes.kind == DELTA {
{{EACH}}                by_key = fused(m{{ROW}}, convolved[key + {{ROW}}u], by_key);
{{END}}
            }
{{EACH}}            by_query = fused(m{{ROW}}, convolved[query + {{ROW}}u], by_query);
{{END}}
            sums[turn + thread] = vec2(by_key, by_query);
        }
        // Corrections of earlier visits become visible, too.
        storageBarrier();
        workgroupBarrier();
        if row != NONE {
            var sum = vec2<f32>();
            for (var i = 0u; i < runs; i++) {
                sum += sums[turn + 32u * i + column];
            }
            let decay = rates[rates_of(row) + head];
            let product = rates[rates_of(row) + 2u * sizes.values + key_head];
            let of_row = convolved[row * sizes.channels + values_at() + value];
            let to = row * value_width() + value;
            var number = 0.0;
            if sizes.kind == DELTA {
                let rest = fused(-decay, sum.x, of_row);
                last = rates[rates_of(row) + sizes.values + head] * rest;
                number = fused(product, last, decay * sum.y);
            } else {
                last = corrections[to];
                let past = vectors[params.skip + head] * of_row;
                number = fused(decay, sum.y, fused(product, last, past));
            }
            last_row = row;
            if run == 0u {
                given[to] = number;
                if sizes.kind == DELTA {
                    corrections[to] = last;
                }
            }
        }
    }
}
