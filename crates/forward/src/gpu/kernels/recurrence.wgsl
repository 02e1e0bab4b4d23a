// Sizes of a model's recurrent layers, and the layout of their states and records: that of the CPU
// engine's `memory.rs`.

struct Sizes {
    kind: u32,
    stride: u32,   // of `projected`
    taps: u32,     // of the convolution
    channels: u32,
    keys: u32,     // heads
    values: u32,   // heads
    key_size: u32,
    value_size: u32,
}

// Kinds of layers.
const SHORT = 0u;
const DELTA = 1u;
const MAMBA = 2u;

// Kinds of a word, in its highest bits; the others are the number of a row of the pass, of a
// record, of a state, or of a row of the states' tails.
const ZERO = 0u;
const ROW = 1u;
const RECORD = 2u;
const STATE = 3u;
const NUMBER = 0x3fffffffu;

const NONE = 0xffffffffu;

fn whole(count: u32) -> u32 {
    return (count + 15u) / 16u * 16u;
}

// Offsets in a convolved row.
fn queries_at() -> u32 {
    return select(0u, value_width() + key_width(), params.sizes.kind == MAMBA);
}

fn keys_at() -> u32 {
    return select(key_width(), value_width(), params.sizes.kind == MAMBA);
}

fn values_at() -> u32 {
    return select(2u * key_width(), 0u, params.sizes.kind == MAMBA);
}

fn key_width() -> u32 {
    return params.sizes.keys * params.sizes.key_size;
}

fn value_width() -> u32 {
    return params.sizes.values * params.sizes.value_size;
}

// Offset of the matrices in a state; the tail is before them.
fn matrices_at() -> u32 {
    return whole((params.sizes.taps - 1u) * params.sizes.channels) + 16u;
}

fn state_size() -> u32 {
    return matrices_at() + value_width() * params.sizes.key_size;
}

// Offsets in a record, which begins with the inputs of the convolution.
fn decays_in_record() -> u32 {
    return whole(params.sizes.channels);
}

fn keys_in_record() -> u32 {
    return decays_in_record() + whole(params.sizes.values);
}

fn corrections_in_record() -> u32 {
    return keys_in_record() + key_width();
}

fn record_size() -> u32 {
    return corrections_in_record() + value_width();
}

// Rates of a row: decays and correction rates of the value heads, and for each key head the product
// of key and query.
fn rates_of(row: u32) -> u32 {
    return row * (2u * params.sizes.values + params.sizes.keys);
}
