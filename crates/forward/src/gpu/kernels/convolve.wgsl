// A dynamic causal convolution of a block's rows, on the input or output side of a mixer or
// feed-forward network. Stores the result or adds it. One thread per number.

struct Params {
    length: u32,
    stride: u32,  // of `from_rows`
    width: u32,   // of `to`
    taps: u32,
    group: u32,   // channels that share a dynamic weight
    side: u32,
    dynamics: u32, // dynamic weights per row, padded to whole vectors
    add: u32,
    zero: u32,
}
var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> from_rows: array<f32>;     // [rows, stride]
@group(0) @binding(1) var<storage, read> dynamic: array<f32>;       // [rows, dynamics]: [2, taps, groups], padding
@group(0) @binding(2) var<storage, read> base: array<f32>;          // [2, taps, length]
@group(0) @binding(3) var<storage, read_write> to: array<f32>;      // [rows, width]

@compute @workgroup_size(64)
fn convolve(@builtin(global_invocation_id) id: vec3<u32>) {
    let number = id.x;
    let row = id.y;
    if number >= params.length {
        return;
    }
    let groups = params.length / params.group;
    let at = row * params.width + number;
    var sum = 0.0;
    if params.add != 0u {
        sum = to[at];
    }
    // Rows before the first are 0.
    for (var tap = 0u; tap < min(params.taps, row + 1u); tap++) {
        let which = params.side * params.taps + tap;
        let by_row = dynamic[row * params.dynamics + which * groups + number / params.group];
        let weight = base[which * params.length + number] + by_row;
        sum += opaque(weight * from_rows[(row - tap) * params.stride + number], params.zero);
    }
    to[at] = sum;
}
