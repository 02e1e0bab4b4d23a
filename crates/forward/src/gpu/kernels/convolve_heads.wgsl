// Convolution and SiLU of a recurrent layer's queries, keys and values, and what their state
// matrices need: norms of queries and keys and their product, decays, correction rates (Gated
// DeltaNet), and values times their step (Mamba). One workgroup per row and key head, then per row
// and value head.

struct Params {
    sizes: Sizes,
    weights: u32,   // of the convolution, their offset in `vectors`
    bias: u32,      // NONE if there is none
    rate_bias: u32, // of the inputs of decays
    decay: u32,
    epsilon: f32,   // of the norms
    least: f32,     // step
    most: f32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> projected: array<f32>;         // [rows, stride]: channels, gates, rates
@group(0) @binding(1) var<storage, read> records: array<f32>;
@group(0) @binding(2) var<storage, read> states: array<f32>;
@group(0) @binding(3) var<storage, read> words: array<u32>;             // [rows, taps], ...
@group(0) @binding(4) var<storage, read> vectors: array<f32>;
@group(0) @binding(5) var<storage, read_write> convolved: array<f32>;   // [rows, channels]
@group(0) @binding(6) var<storage, read_write> rates: array<f32>;       // [rows, 2 * values + keys]
@group(0) @binding(7) var<storage, read_write> corrections: array<f32>; // [rows, values * value_size]

const THREADS = 64u;

var<workgroup> numbers: array<f32, 256>; // query, then key

// ln(1 + e^x) with the bits of the CPU engine's `softplus`.
fn softplus(x: f32) -> f32 {
    let z = exponential(0.0 - abs(x));
    let s = divide(z, 2.0 + z);
    let square = s * s;
    var series = 1.0 / 13.0;
    series = fused(series, square, 1.0 / 11.0);
    series = fused(series, square, 1.0 / 9.0);
    series = fused(series, square, 1.0 / 7.0);
    series = fused(series, square, 1.0 / 5.0);
    series = fused(series, square, 1.0 / 3.0);
    series = fused(series, square, 1.0);
    return fused(s + s, series, max(x, 0.0));
}

fn activated_at(row: u32, channel: u32) -> f32 {
    return activation(SILU, convolved_at(row, channel));
}

// Norms the query or the key, which begins at `first`.
fn norm(thread: u32, first: u32, weight: f32) {
    let size = params.sizes.key_size;
    let scale = head_scale(thread, first, size, params.epsilon);
    for (var at = thread; at < size; at += THREADS) {
        numbers[first + at] = numbers[first + at] * scale * weight;
    }
    workgroupBarrier();
}

fn convolve_key(row: u32, head: u32, thread: u32) {
    let size = params.sizes.key_size;
    let query = queries_at() + head * size;
    let key = keys_at() + head * size;
    for (var at = thread; at < size; at += THREADS) {
        numbers[at] = activated_at(row, query + at);
        numbers[size + at] = activated_at(row, key + at);
    }
    workgroupBarrier();
    if params.sizes.kind == DELTA {
        norm(thread, 0u, divide(1.0, f32(size)));
        norm(thread, size, divide(1.0, root(f32(size))));
    }
    var product = 0.0;
    if thread < 16u {
        for (var at = thread; at < size; at += 16u) {
            product = fused(numbers[size + at], numbers[at], product);
        }
    }
    workgroupBarrier();
    lanes[thread] = product;
    workgroupBarrier();
    if thread == 0u {
        rates[rates_of(row) + 2u * params.sizes.values + head] = across(0u);
    }
    for (var at = thread; at < size; at += THREADS) {
        convolved[row * params.sizes.channels + query + at] = numbers[at];
        convolved[row * params.sizes.channels + key + at] = numbers[size + at];
    }
}

fn convolve_value(row: u32, head: u32, thread: u32) {
    let sizes = params.sizes;
    let own = row * sizes.stride + whole(sizes.channels) + value_width() + head;
    var step = 1.0;
    if sizes.kind == DELTA {
        let rate = softplus(projected[own + whole(sizes.values)] + vectors[params.rate_bias + head]);
        if thread == 0u {
            rates[rates_of(row) + head] = exponential(vectors[params.decay + head] * rate);
            rates[rates_of(row) + sizes.values + head] = sigmoid(projected[own]);
        }
    } else {
        step = clamp(softplus(projected[own] + vectors[params.rate_bias + head]), params.least, params.most);
        if thread == 0u {
            rates[rates_of(row) + head] = exponential(vectors[params.decay + head] * step);
        }
    }
    for (var at = thread; at < sizes.value_size; at += THREADS) {
        let value = activated_at(row, values_at() + head * sizes.value_size + at);
        convolved[row * sizes.channels + values_at() + head * sizes.value_size + at] = value;
        if sizes.kind == MAMBA {
            corrections[row * value_width() + head * sizes.value_size + at] = step * value;
        }
    }
}

@compute @workgroup_size(THREADS)
fn convolve_heads(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if group.x < params.sizes.keys {
        convolve_key(group.y, group.x, thread);
    } else {
        convolve_value(group.y, group.x - params.sizes.keys, thread);
    }
}
