// Stores what later passes need of a recurrent layer: records of rows, and the tails of states,
// which the convolution of this pass has read. One thread per number.

struct Params {
    sizes: Sizes,
    rows: u32,
    tails: u32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> projected: array<f32>;     // [rows, stride]
@group(0) @binding(1) var<storage, read> convolved: array<f32>;     // [rows, channels]
@group(0) @binding(2) var<storage, read> rates: array<f32>;         // [rows, 2 * values + keys]
@group(0) @binding(3) var<storage, read> corrections: array<f32>;   // [rows, values * value_size]
@group(0) @binding(4) var<storage, read> words: array<u32>;         // [rows, taps], [rows] records, [tails, taps]
@group(0) @binding(5) var<storage, read_write> records: array<f32>;
@group(0) @binding(6) var<storage, read_write> states: array<f32>;

// A number of a row's record.
fn recorded(row: u32, number: u32) -> f32 {
    let sizes = params.sizes;
    if number < decays_in_record() {
        return input_of_row(row, min(number, sizes.channels - 1u));
    }
    if number < keys_in_record() {
        return rates[rates_of(row) + min(number - decays_in_record(), sizes.values - 1u)];
    }
    if number < corrections_in_record() {
        return convolved[row * sizes.channels + keys_at() + number - keys_in_record()];
    }
    return corrections[row * value_width() + number - corrections_in_record()];
}

// Stores a channel of the tails. Rows that are older are stored first: a state that is shifted in
// its own place is read before it is written.
fn store_tails(channel: u32) {
    let taps = params.sizes.taps;
    for (var tail = 0u; tail < params.tails; tail++) {
        let at = params.rows * (taps + 1u) + tail * taps;
        let to = words[at] * state_size() + channel;
        for (var row = 0u; row < taps - 1u; row++) {
            states[to + row * params.sizes.channels] = input_of(words[at + 1u + row], channel);
        }
    }
}

@compute @workgroup_size(64)
fn remember(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.y == params.rows {
        if id.x < params.sizes.channels {
            store_tails(id.x);
        }
        return;
    }
    let slot = words[params.rows * params.sizes.taps + id.y];
    if slot != NONE && id.x < record_size() {
        records[slot * record_size() + id.x] = recorded(id.y, id.x);
    }
}
